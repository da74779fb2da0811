//! The built-in types as OpenAPI v3 publishes them: `k8s-openapi`'s types with the extensions and defaults of the facts.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use shared_json::{Map, Value, json};

use super::builtin::{DEFINITIONS, Definitions, builtin, builtin_kinds, with_definitions};
use super::enums;
use super::facts::{self, FieldFacts};
use super::schema::Written;

/// Where a document of OpenAPI v3 keeps its types.
pub const COMPONENTS: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The name of a built-in kind's definition (`io.k8s.api.apps.v1.Deployment`).
pub fn definition_name(gvk: (&str, &str, &str)) -> Option<String> {
    builtin(gvk)?.name.as_deref().map(str::to_owned)
}

/// Every built-in definition in the form of OpenAPI v3, by name. Made once, when first asked for.
pub fn definitions() -> &'static BTreeMap<String, Value> {
    static ALL: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    ALL.get_or_init(|| {
        let kinds: BTreeMap<String, (&str, &str, &str)> = builtin_kinds()
            .filter_map(|gvk| Some((definition_name(gvk)?, gvk)))
            .collect();
        let all = |raw: &Definitions| -> BTreeMap<String, Value> {
            raw.iter()
                .map(|(name, schema)| (name.clone(), definition(name, &schema.clone().into())))
                .collect()
        };
        let mut out = with_definitions(all);
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        generator.subschema_for::<meta::v1::APIGroupList>();
        generator.subschema_for::<meta::v1::APIResourceList>();
        generator.subschema_for::<meta::v1::APIVersions>();
        generator.subschema_for::<k8s_openapi::apimachinery::pkg::version::Info>();
        out.extend(all(generator.definitions()));
        for (name, (group, version, kind)) in kinds {
            let has_items = !matches!(
                kind,
                "DeleteOptions" | "Status" | "ObjectMeta" | "Binding" | "Eviction" | "Scale" | "TokenRequest"
            ) && !kind.ends_with("Review");
            if kind == "ObjectMeta" {
                continue;
            }
            if has_items {
                out.insert(
                    format!("{name}List"),
                    list(&name, &gvk(group, version, &format!("{kind}List")), kind),
                );
            }
            if let Some(schema) = out.get_mut(&name) {
                schema["x-kubernetes-group-version-kind"] = json!([gvk(group, version, kind)]);
            }
        }
        for kind in ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions"] {
            if let Some(schema) = out.get_mut(&format!("{META}{kind}")) {
                schema["x-kubernetes-group-version-kind"] = json!([gvk("", "v1", kind)]);
            }
        }
        for (name, schema) in others() {
            out.insert(format!("{META}{name}"), schema);
        }
        out
    })
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// The list of a kind.
pub fn list(item: &str, gvk: &Value, kind: &str) -> Value {
    json!({
        "description": format!("{kind}List is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "items": {
                "type": "array", "description": format!("List of {kind} objects."),
                "items": {"$ref": format!("{COMPONENTS}{item}")},
            },
            "kind": {"type": "string", "description": KIND},
            "metadata": {
                "allOf": [{"$ref": format!("{COMPONENTS}{META}ListMeta")}], "default": {},
                "description": "Standard list metadata. More info: \
                    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
            },
        },
        "x-kubernetes-group-version-kind": [gvk],
    })
}

/// The description of every object's `apiVersion`.
pub const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should \
    convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
/// The description of every object's `kind`.
pub const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this \
    from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The types of the API machinery that no object contains.
fn others() -> [(&'static str, Value); 2] {
    let raw = format!("{COMPONENTS}io.k8s.apimachinery.pkg.runtime.RawExtension");
    [
        (
            "Patch",
            json!({
                "type": "object",
                "description": "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.",
            }),
        ),
        (
            "WatchEvent",
            json!({
                "type": "object", "description": "Event represents a single event to a watched resource.",
                "required": ["type", "object"],
                "properties": {
                    "object": {
                        "allOf": [{"$ref": raw}],
                        "description": "Object is:\n * If Type is Added or Modified: the new state of the object.\n * If Type is \
                            Deleted: the state of the object immediately before deletion.\n * If Type is Error: *Status is \
                            recommended; other types may make sense\n   depending on context.",
                    },
                    "type": {"type": "string", "default": ""},
                },
            }),
        ),
    ]
}

fn definition(name: &str, raw: &Value) -> Value {
    let description = raw.get("description").cloned();
    let mut out = match name.rsplit('.').next().unwrap_or(name) {
        "Quantity" => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        "IntOrString" => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        short if ANYTHING.contains(&short) => json!({}),
        _ => object(name, raw),
    };
    if let Some(description) = description {
        out["description"] = description;
    }
    out
}

/// Types that stand for more than one of JSON's: they are published without one.
const ANYTHING: [&str; 4] = [
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
];

fn object(name: &str, raw: &Value) -> Value {
    let facts = facts::of(name);
    let nothing = FieldFacts::default();
    let mut out = Map::new();
    for key in ["type", "format"] {
        if let Some(value) = raw.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    // `k8s-openapi` demands metadata of every object, the real server only of those whose Go field is always written.
    let always = |field: &str| {
        facts
            .fields
            .get(field)
            .is_some_and(|known| known.written == Written::Always)
    };
    // It also demands the names of references that may be missing.
    let defaulted = |field: &str| {
        facts
            .fields
            .get(field)
            .is_some_and(|known| known.zero.is_some() && known.written != Written::Always)
    };
    let required = raw
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let required: Vec<&str> = required
        .filter_map(Value::as_str)
        .filter(|field| *field != "metadata" || always(field))
        .filter(|field| !defaulted(field))
        .collect();
    if !required.is_empty() {
        out.insert("required".to_owned(), json!(required));
    }
    if facts.atomic {
        out.insert("x-kubernetes-map-type".to_owned(), Value::from("atomic"));
    }
    if let Some(properties) = raw.get("properties").and_then(Value::as_object) {
        let fields: Map = properties
            .iter()
            .map(|(field, schema)| {
                let known = facts.fields.get(field.as_str()).unwrap_or(&nothing);
                (field.clone(), property(schema, known, (name, field)))
            })
            .collect();
        out.insert("properties".to_owned(), Value::Object(fields));
    }
    if !out.contains_key("type") {
        out.insert("type".to_owned(), Value::from("object"));
    }
    Value::Object(out)
}

/// The schema of a field, an item or a map's value, without its properties as a field.
fn plain(raw: &Value) -> Map {
    let mut out = Map::new();
    if let Some(name) = reference(raw) {
        out.insert("$ref".to_owned(), Value::from(format!("{COMPONENTS}{name}")));
        return out;
    }
    for key in ["type", "format"] {
        if let Some(value) = raw.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = raw.get(key).filter(|inner| inner.is_object()) {
            out.insert(key.to_owned(), Value::Object(plain(inner)));
        }
    }
    out
}

fn reference(raw: &Value) -> Option<&str> {
    raw.get("$ref").and_then(Value::as_str)?.strip_prefix(DEFINITIONS)
}

/// Go's zero value of a type, as the published schemas give it: of structs and of plain scalars.
fn zero(raw: &Value, schema: &Map) -> Option<Value> {
    if let Some(name) = reference(raw) {
        let short = name.rsplit('.').next().unwrap_or(name);
        return (!matches!(
            short,
            "Time" | "MicroTime" | "Quantity" | "IntOrString" | "RawExtension" | "JSON" | "FieldsV1"
        ))
        .then(|| json!({}));
    }
    match schema.get("type").and_then(Value::as_str)? {
        "string" if schema.get("format").is_none() => Some(Value::from("")),
        "integer" | "number" => Some(Value::from(0)),
        "boolean" => Some(Value::from(false)),
        _ => None,
    }
}

/// Adds a default and a description; next to a reference they need `allOf`.
fn wrap(schema: &mut Map, default: Option<Value>, description: Option<Value>) {
    if default.is_none() && description.is_none() {
        return;
    }
    if let Some(reference) = schema.remove("$ref") {
        schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    for (key, value) in [("default", default), ("description", description)] {
        if let Some(value) = value {
            schema.insert(key.to_owned(), value);
        }
    }
}

/// A field of a definition: `place` is the names of both.
fn property(raw: &Value, facts: &FieldFacts, place: (&str, &str)) -> Value {
    let mut out = plain(raw);
    let always = facts.written == Written::Always;
    let default = match (facts.default.as_ref().or(facts.zero.as_ref()), facts.pointer) {
        (Some(default), _) => Some(default.clone()),
        (None, true) => None,
        (None, false) => zero(raw, &out).filter(|zero| always || zero.is_object()),
    };
    let mut extend = |key: &str, value: Value| out.insert(format!("x-kubernetes-{key}"), value);
    if let Some(kind) = facts.list {
        extend("list-type", Value::from(kind));
    }
    if !facts.keys.is_empty() {
        extend("list-map-keys", json!(facts.keys));
    }
    if let Some(kind) = facts.map {
        extend("map-type", Value::from(kind));
    }
    let strategies = [
        (facts.patch.replace, "replace"),
        (facts.patch.merge, "merge"),
        (facts.patch.retain_keys, "retainKeys"),
    ];
    let strategies: Vec<&str> = strategies
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, word)| *word)
        .collect();
    if !strategies.is_empty() {
        extend("patch-strategy", Value::from(strategies.join(",")));
    }
    if let Some(key) = &facts.patch.key {
        extend("patch-merge-key", Value::from(key.clone()));
    }
    if !facts.allowed.is_empty() {
        out.insert("enum".to_owned(), json!(facts.allowed));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(items) = out.get_mut(key).filter(|_| !facts.allowed_items.is_empty()) {
            items["enum"] = json!(facts.allowed_items);
        }
    }
    let description = raw
        .get("description")
        .map(|description| match description.as_str() {
            Some(text) if !facts.allowed.is_empty() => {
                Value::from(enums::described(text, place.0, place.1, &facts.allowed))
            }
            _ => description.clone(),
        });
    wrap(&mut out, default, description);
    Value::Object(out)
}
