//! Versions and schemas as complaints print them: as the real server's own structs, with every field.

use machinery::cel;
use shared_json::Value;

use super::{flag, text};
use crate::validation::fields::same_in_definitions;
use crate::validation::go;

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    /// A pointer or a list: null unless there is something.
    Plain,
    Schema,
    Schemas,
    Properties,
    /// `items`: one schema, or one for each place.
    Items,
    /// A schema, or whether anything is allowed.
    OrBool,
    Rules,
}

/// The fields of `JSONSchemaProps`, in their order.
const SCHEMA: [(&str, &str, Shape); 44] = [
    ("ID", "id", Shape::Text),
    ("Schema", "$schema", Shape::Text),
    ("Ref", "$ref", Shape::Plain),
    ("Description", "description", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Nullable", "nullable", Shape::Flag),
    ("Format", "format", Shape::Text),
    ("Title", "title", Shape::Text),
    ("Default", "default", Shape::Plain),
    ("Maximum", "maximum", Shape::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Shape::Flag),
    ("Minimum", "minimum", Shape::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Shape::Flag),
    ("MaxLength", "maxLength", Shape::Plain),
    ("MinLength", "minLength", Shape::Plain),
    ("Pattern", "pattern", Shape::Text),
    ("MaxItems", "maxItems", Shape::Plain),
    ("MinItems", "minItems", Shape::Plain),
    ("UniqueItems", "uniqueItems", Shape::Flag),
    ("MultipleOf", "multipleOf", Shape::Plain),
    ("Enum", "enum", Shape::Plain),
    ("MaxProperties", "maxProperties", Shape::Plain),
    ("MinProperties", "minProperties", Shape::Plain),
    ("Required", "required", Shape::Plain),
    ("Items", "items", Shape::Items),
    ("AllOf", "allOf", Shape::Schemas),
    ("OneOf", "oneOf", Shape::Schemas),
    ("AnyOf", "anyOf", Shape::Schemas),
    ("Not", "not", Shape::Schema),
    ("Properties", "properties", Shape::Properties),
    ("AdditionalProperties", "additionalProperties", Shape::OrBool),
    ("PatternProperties", "patternProperties", Shape::Properties),
    ("Dependencies", "dependencies", Shape::Plain),
    ("AdditionalItems", "additionalItems", Shape::OrBool),
    ("Definitions", "definitions", Shape::Properties),
    ("ExternalDocs", "externalDocs", Shape::Plain),
    ("Example", "example", Shape::Plain),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Shape::Plain,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Shape::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shape::Plain),
    ("XListType", "x-kubernetes-list-type", Shape::Plain),
    ("XMapType", "x-kubernetes-map-type", Shape::Plain),
    ("XValidations", "x-kubernetes-validations", Shape::Rules),
];

/// A version; values that all versions share are kept elsewhere.
pub(super) fn version(version: &Value, versions: &[Value]) -> String {
    let own = |field: &str| {
        let value = version.get(field);
        let is_shared = versions
            .iter()
            .all(|other| same_in_definitions(other.get(field), value));
        value.filter(|value| !is_shared && !value.is_null())
    };
    let plain = |field: &str| go::json(own(field).unwrap_or(&Value::Null));
    let validation = own("schema").map_or_else(
        || "null".to_owned(),
        |validation| {
            let shown = validation.get("openAPIV3Schema").filter(|it| !it.is_null());
            let shown = shown.map_or_else(|| "null".to_owned(), schema);
            format!("{{\"OpenAPIV3Schema\":{shown}}}")
        },
    );
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{validation},\
         \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        Value::from(text(version, "name")),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        version.get("deprecationWarning").cloned().unwrap_or_default(),
        plain("subresources"),
        plain("additionalPrinterColumns"),
        plain("selectableFields"),
    )
}

/// The fields of a schema that say something, in the order of the struct.
pub(super) fn set_fields(schema: &Value) -> impl Iterator<Item = &'static str> {
    let says = |shape: Shape, value: &Value| match shape {
        Shape::Text => value != "",
        Shape::Flag => *value != Value::Bool(false),
        _ => !value.is_null(),
    };
    SCHEMA.into_iter().filter_map(move |(_, json, shape)| {
        schema
            .get(json)
            .is_some_and(|value| says(shape, value))
            .then_some(json)
    })
}

/// A schema as its struct prints.
pub(super) fn schema(schema: &Value) -> String {
    let fields = SCHEMA.iter().map(|(go, json, shape)| {
        let value = schema.get(*json).filter(|value| !value.is_null());
        format!("\"{go}\":{}", shown(*shape, value))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn list(items: &[Value], item: fn(&Value) -> String) -> String {
    format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(","))
}

fn shown(shape: Shape, value: Option<&Value>) -> String {
    match (shape, value) {
        (Shape::Text, None) => "\"\"".to_owned(),
        (Shape::Flag, None) => "false".to_owned(),
        (_, None) => "null".to_owned(),
        (Shape::Schema, Some(value)) => schema(value),
        (Shape::Schemas, Some(Value::Array(items))) => list(items, schema),
        (Shape::Rules, Some(Value::Array(items))) => list(items, cel::check::shown),
        (Shape::Properties, Some(Value::Object(map))) => {
            let parts = map
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name), schema(value)));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
        }
        (Shape::Items, Some(Value::Array(items))) => {
            format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(items, schema))
        }
        (Shape::Items, Some(value)) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Shape::OrBool, Some(Value::Bool(allowed))) => {
            format!("{{\"Allows\":{allowed},\"Schema\":null}}")
        }
        (Shape::OrBool, Some(value)) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        (_, Some(value)) => go::json(value),
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    #[test]
    fn a_version_shows_what_it_has_alone() {
        let one = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}}});
        let two = json!({"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        let alone = version(&one, std::slice::from_ref(&one));
        assert!(alone.contains("\"Schema\":null"), "{alone}");
        let shown = version(&one, &[one.clone(), two]);
        for part in [
            "\"Schema\":{\"OpenAPIV3Schema\":{\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,",
            "\"Properties\":{\"a\":{",
            "\"Items\":{\"Schema\":{\"ID\":\"\"",
            "\"JSONSchemas\":null}",
            "\"XValidations\":null}},\"Subresources\":null",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
