//! The types of custom resources.

use machinery::types::published::{self, API_VERSION, COMPONENTS, KIND};
use shared_json::{Map, Value, json};

use crate::resources::Resource;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `com.example.stable.v1.CronTab`: the group's words backwards, the version and the kind.
pub(super) fn definition_name(resource: &Resource, kind: &str) -> String {
    let mut words: Vec<&str> = resource.group.split('.').rev().collect();
    words.extend([resource.version.as_str(), kind]);
    words.join(".")
}

/// The definitions of a custom resource and of its list.
pub(super) fn definitions(resource: &Resource) -> Vec<(String, Value)> {
    let Some(custom) = &resource.custom else {
        return Vec::new();
    };
    let gvk = |kind: &str| json!({"group": resource.group, "version": resource.version, "kind": kind});
    let name = definition_name(resource, &resource.kind);
    let mut schema = match &custom.published {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(
            "apiVersion".to_owned(),
            json!({"type": "string", "description": API_VERSION}),
        );
        properties.insert("kind".to_owned(), json!({"type": "string", "description": KIND}));
        properties.insert(
            "metadata".to_owned(),
            json!({
                "allOf": [{"$ref": format!("{COMPONENTS}{OBJECT_META}")}],
                "description": "Standard object's metadata. More info: \
                    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            }),
        );
    }
    schema.entry("type").or_insert_with(|| Value::from("object"));
    schema.insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([gvk(&resource.kind)]),
    );
    let list = custom_list(resource, &name, &gvk(&resource.list_kind));
    vec![
        (name, Value::Object(schema)),
        (definition_name(resource, &resource.list_kind), list),
    ]
}

fn custom_list(resource: &Resource, item: &str, gvk: &Value) -> Value {
    let mut list = published::list(item, gvk, &resource.kind);
    let (plural, kind) = (&resource.plural, &resource.list_kind);
    list["description"] = Value::from(format!("{kind} is a list of {}", resource.kind));
    list["properties"]["items"] = json!({
        "type": "array",
        "description": format!("List of {plural}. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"),
        "items": {"$ref": format!("{COMPONENTS}{item}")},
    });
    if let Some(metadata) = list["properties"]["metadata"].as_object_mut() {
        metadata.remove("default");
    }
    list
}
