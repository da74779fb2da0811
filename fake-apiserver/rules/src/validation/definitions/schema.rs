//! The allowed fields of a custom resource's schema, besides being structural.

use machinery::cel;
use machinery::types::{Kind, Schema};
use pod_rules::field_error::FieldError;
use shared_json::{Value, json};

use super::structural::{at, fields, flag, is_readable, is_set, list, text};
use super::{go_structs, json_path, structural};
use crate::validation::embedded;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// The allowed fields of the root where the status is a subresource, as the real server's own struct names them, and as JSON.
const ROOT_FIELDS: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Every complaint about the schema of a version. `has_status` is whether its status is a resource of its own.
pub(super) fn check(schema: &Value, has_status: bool, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        root(schema, path, &mut errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(
            at(path, "nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let mut typed = None;
    if is_readable(schema) {
        let complaints = structural::check(schema, path);
        if complaints.is_empty() {
            let read = Schema::from_openapi_v3_unchecked(schema);
            let mut wrong = read.wrong_defaults();
            wrong_resources(&read, "", &mut wrong);
            let mut broken = Vec::new();
            broken_by_defaults(&read, "", &wrong, &mut broken);
            wrong.extend(broken);
            if wrong.is_empty() {
                typed = Some(read);
            }
            errors.extend(wrong.into_iter().map(|error| error.under(path)));
        }
        errors.extend(complaints);
    }
    let mut walk = Walk {
        errors: &mut errors,
        wrong: Vec::new(),
        below: 0,
    };
    let root = Place {
        is_root: true,
        ..Place::default()
    };
    walk.walk(schema, path, &root);
    let wrong = walk.wrong;
    // This is found last, where nothing else is wrong.
    if errors.is_empty() && names_a_schema(schema) {
        let detail = "OpenAPIV3Schema 'schema' is not supported";
        errors.push(FieldError::invalid(path, "", detail));
    }
    // Rules are read only where everything else is right with what they see.
    if let Some(typed) = typed {
        let below = |wrong: &String| {
            let rest = wrong.strip_prefix(path)?;
            Some(rest.trim_start_matches('.').to_owned())
        };
        let wrong: Vec<String> = wrong.iter().filter_map(below).collect();
        errors.extend(
            cel::check::check(&typed, true, &wrong)
                .into_iter()
                .map(|error| placed(error.under(path), path)),
        );
    }
    errors
}

/// The same complaint where its words name a place, too.
fn placed(mut error: FieldError, path: &str) -> FieldError {
    let words = "oldSelf cannot be used on the uncorrelatable portion of the schema within ";
    if let Some(within) = error.detail.strip_prefix(words) {
        error.detail = format!("{words}{path}.{within}");
    }
    error
}

/// The errors in resources within the defaults of a schema.
fn wrong_resources(schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let below = |part: &str| match path {
        "" => part.to_owned(),
        path => format!("{path}.{part}"),
    };
    if schema.name.is_some() {
        return;
    }
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let resources = embedded::validate(schema, default, path.is_empty());
        errors.extend(resources.into_iter().map(|error| error.under(&below("default"))));
    }
    match &schema.kind {
        Kind::Object(object) => {
            for (name, field) in &object.fields {
                wrong_resources(&field.schema, &below(&format!("properties[{name}]")), errors);
            }
        }
        Kind::Array(array) => wrong_resources(&array.items, &below("items"), errors),
        _ => {}
    }
}

/// The rules of a schema that its own defaults break, or that cannot be read to tell: where nothing else is `wrong` with them.
fn broken_by_defaults(schema: &Schema, path: &str, wrong: &[FieldError], errors: &mut Vec<FieldError>) {
    let below = |part: &str| match path {
        "" => part.to_owned(),
        path => format!("{path}.{part}"),
    };
    if schema.name.is_some() {
        return;
    }
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let place = below("default");
        let is_valid = |error: &FieldError| {
            let rest = error.path.strip_prefix(&place);
            let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            !is_below || error.detail == "must not have unknown fields"
        };
        if wrong.iter().all(is_valid) {
            let mut found = cel::check::unread(schema, default, path.is_empty());
            if found.is_empty() {
                found = cel::rules::RuleSet::of(schema).check(schema, default, None).0;
            }
            errors.extend(found.into_iter().map(|error| match error.path.as_str() {
                "<nil>" | "" => FieldError {
                    path: place.clone(),
                    ..error
                },
                _ => error.under(&place),
            }));
        }
    }
    match &schema.kind {
        Kind::Object(object) => {
            for (name, field) in &object.fields {
                let path = below(&format!("properties[{name}]"));
                broken_by_defaults(&field.schema, &path, wrong, errors);
            }
        }
        Kind::Array(array) => broken_by_defaults(&array.items, &below("items"), wrong, errors),
        _ => {}
    }
}

/// Whether a schema, or one inside of it, says by which other one it was written.
fn names_a_schema(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(field, part)| match field.as_str() {
            "$schema" => part.as_str().is_some_and(|text| !text.is_empty()),
            "default" | "enum" | "example" => false,
            _ => names_a_schema(part),
        }),
        Value::Array(parts) => parts.iter().any(names_a_schema),
        _ => false,
    }
}

fn root(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    for field in go_structs::set_fields(schema) {
        if field == "type" && kind != "object" {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            errors.push(FieldError::invalid(at(path, "type"), kind, detail));
            return;
        }
        if !ROOT_FIELDS.iter().any(|(_, known)| *known == field) {
            let names: Vec<&str> = ROOT_FIELDS.iter().map(|(name, _)| *name).collect();
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                names.join(" ")
            );
            errors.push(FieldError {
                shown: Some(go_structs::schema(schema)),
                ..FieldError::invalid(path, Value::Null, detail)
            });
            return;
        }
    }
}

/// Whether a schema, or one inside of it, has a default.
pub(super) fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(field, part)| match field.as_str() {
            "default" => !part.is_null(),
            "enum" | "example" => false,
            "properties" | "patternProperties" | "definitions" => part
                .as_object()
                .is_some_and(|parts| parts.values().any(has_defaults)),
            _ => has_defaults(part),
        }),
        Value::Array(parts) => parts.iter().any(has_defaults),
        _ => false,
    }
}

/// Where the walk is.
#[derive(Clone, Default)]
struct Place {
    is_root: bool,
    /// Why there may be no defaults here.
    no_defaults: Option<String>,
    in_metadata: bool,
}

struct Walk<'a> {
    errors: &'a mut Vec<FieldError>,
    /// The paths of the schemas with which something is wrong, and how many complaints there are about them.
    wrong: Vec<String>,
    below: usize,
}

impl Walk<'_> {
    fn forbid(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn walk(&mut self, schema: &Value, path: &str, place: &Place) {
        let before = (self.errors.len(), self.below);
        self.look(schema, path, place);
        let own = (self.errors.len() - before.0) - (self.below - before.1);
        if own > 0 {
            self.wrong.push(path.to_owned());
        }
        self.below += own;
    }

    fn look(&mut self, schema: &Value, path: &str, place: &Place) {
        self.standard(schema, path, place);
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(at(path, "uniqueItems"), detail);
        }
        let inner = Place {
            is_root: false,
            ..place.clone()
        };
        if let Some(additional) = schema
            .get("additionalProperties")
            .filter(|given| !given.is_null())
        {
            let path = at(path, "additionalProperties");
            if fields(schema).next().is_some() && *additional != Value::Bool(true) {
                self.forbid(
                    path.clone(),
                    "additionalProperties and properties are mutual exclusive",
                );
            }
            if additional.is_object() {
                let mut inner = inner.clone();
                if place.in_metadata {
                    inner.no_defaults =
                        Some("inside additionalProperties applying to object metadata".to_owned());
                }
                self.walk(additional, &path, &inner);
            }
        }
        for (name, part) in fields(schema) {
            let mut inner = inner.clone();
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if is_meta && (place.is_root || flag(schema, "x-kubernetes-embedded-resource")) {
                inner.in_metadata = true;
                if place.is_root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.walk(part, &at(path, &format!("properties[{name}]")), &inner);
        }
        if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
            self.walk(part, &at(path, "not"), &inner);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (index, part) in list(schema, name).iter().enumerate() {
                self.walk(part, &at(path, &format!("{name}[{index}]")), &inner);
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.walk(items, &at(path, "items"), &inner);
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = at(path, "x-kubernetes-preserve-unknown-fields");
            self.errors
                .push(FieldError::invalid(path, false, "must be true or undefined"));
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        self.list_keys(schema, path);
        for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            let path = at(path, &format!("x-kubernetes-validations[{index}]"));
            cel::check::written(rule, &path, self.errors);
            let field = text(rule, "fieldPath");
            if !field.is_empty() && is_readable(schema) && json_path::follow(field, schema, true).is_err() {
                let path = format!("{path}.fieldPath");
                self.errors
                    .push(FieldError::invalid(path, field, "must be a valid path"));
            }
        }
    }

    /// The fields that no schema may have.
    fn standard(&mut self, schema: &Value, path: &str, place: &Place) {
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors
                .push(FieldError::not_supported(at(path, "type"), kind, &TYPES));
        }
        if let Some(why) = &place.no_defaults
            && schema.get("default").is_some_and(|default| !default.is_null())
        {
            self.forbid(at(path, "default"), &format!("must not be set {why}"));
        }
        for name in [
            "id",
            "additionalItems",
            "patternProperties",
            "definitions",
            "dependencies",
            "$ref",
        ] {
            if is_set(schema, name) {
                self.forbid(at(path, name), &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(
                at(path, "type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if !list(schema, "items").is_empty() {
            self.forbid(
                at(path, "items"),
                "items must be a schema object and not an array",
            );
        }
        if place.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            self.forbid(
                at(path, "x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            );
        }
    }

    /// An extension that only one type may have.
    fn only_of(&mut self, schema: &Value, path: &str, extension: &str, wanted: &str) -> bool {
        let kind = text(schema, "type");
        if kind == wanted {
            return true;
        }
        let detail = format!("must be {wanted} if {extension} is specified");
        let path = at(path, "type");
        self.errors.push(if kind.is_empty() {
            FieldError::required(path, detail)
        } else {
            FieldError::invalid(path, kind, detail)
        });
        false
    }

    fn map_type(&mut self, schema: &Value, path: &str) {
        const NAME: &str = "x-kubernetes-map-type";
        let Some(given) = schema.get(NAME).and_then(Value::as_str) else {
            return;
        };
        self.only_of(schema, path, NAME, "object");
        if !matches!(given, "atomic" | "granular") {
            self.errors.push(FieldError::not_supported(
                at(path, NAME),
                given,
                &["atomic", "granular"],
            ));
        }
    }

    fn list_type(&mut self, schema: &Value, path: &str) {
        const NAME: &str = "x-kubernetes-list-type";
        let Some(given) = schema.get(NAME).and_then(Value::as_str) else {
            return;
        };
        let items = schema.get("items").filter(|items| items.is_object());
        if self.only_of(schema, path, NAME, "array")
            && given == "set"
            && let Some(items) = items
        {
            let own = |name: &str| items.get(name).and_then(Value::as_str);
            let name = match text(items, "type") {
                "array" => own(NAME).filter(|own| *own != "atomic").map(|_| NAME),
                "object" => {
                    (own("x-kubernetes-map-type") != Some("atomic")).then_some("x-kubernetes-map-type")
                }
                _ => None,
            };
            if let Some(name) = name {
                // The real server shows the type of the list in both cases.
                let shown = items.get(NAME).cloned().unwrap_or_default();
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.errors.push(FieldError::invalid(
                    at(path, &format!("items.{name}")),
                    shown,
                    detail,
                ));
            }
        }
        if !matches!(given, "atomic" | "set" | "map") {
            self.errors.push(FieldError::not_supported(
                at(path, NAME),
                given,
                &["atomic", "set", "map"],
            ));
        }
    }

    fn list_keys(&mut self, schema: &Value, path: &str) {
        const TYPE: &str = "x-kubernetes-list-type";
        const KEYS: &str = "x-kubernetes-list-map-keys";
        let given = schema.get(TYPE).and_then(Value::as_str);
        let keys: Vec<&str> = list(schema, KEYS).iter().filter_map(Value::as_str).collect();
        if !keys.is_empty() && given != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match given {
                None => FieldError::required(at(path, TYPE), detail),
                Some(given) => FieldError::invalid(at(path, TYPE), given, detail),
            });
        }
        let items = schema.get("items").filter(|items| items.is_object());
        if given == Some("map") {
            if keys.is_empty() {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                self.errors.push(FieldError::required(at(path, KEYS), detail));
            }
            match items {
                None if schema.get("items").is_none() => {
                    let detail = "must have a schema if x-kubernetes-list-type is map";
                    self.errors.push(FieldError::required(at(path, "items"), detail));
                }
                None => {}
                Some(items) if text(items, "type") != "object" => {
                    let detail = "must be object if parent array's x-kubernetes-list-type is map";
                    let kind = text(items, "type");
                    self.errors
                        .push(FieldError::invalid(at(path, "items.type"), kind, detail));
                }
                Some(items) => self.keys_of(items, &keys, path),
            }
        }
        if let (Some(given @ ("set" | "map")), Some(items)) = (given, items) {
            self.items_are_there(items, given, &keys, path);
        }
    }

    fn keys_of(&mut self, items: &Value, keys: &[&str], path: &str) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        for (index, key) in keys.iter().enumerate() {
            match items.get("properties").and_then(|fields| fields.get(key)) {
                Some(part) if matches!(text(part, "type"), "array" | "object") => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let path = at(path, &format!("items.properties[{key}].type"));
                    // The real server shows the type of the item.
                    self.errors
                        .push(FieldError::invalid(path, text(items, "type"), detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors
                        .push(FieldError::invalid(at(path, KEYS), json!(keys), detail));
                }
            }
            if keys.get(..index).is_some_and(|before| before.contains(key)) {
                let detail = "must not contain duplicate entries";
                self.errors
                    .push(FieldError::invalid(at(path, KEYS), json!(keys), detail));
            }
        }
    }

    /// Items that are identified by keys must have them.
    fn items_are_there(&mut self, items: &Value, list_type: &str, keys: &[&str], path: &str) {
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(at(path, "items.nullable"), &detail);
        }
        if list_type != "map" {
            return;
        }
        let required: Vec<&str> = list(items, "required").iter().filter_map(Value::as_str).collect();
        for key in keys {
            let Some(part) = items.get("properties").and_then(|fields| fields.get(key)) else {
                continue;
            };
            let path = at(path, &format!("items.properties[{key}]"));
            if !required.contains(key) && part.get("default").is_none_or(Value::is_null) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                              property";
                self.errors
                    .push(FieldError::required(at(&path, "default"), detail));
            }
            if flag(part, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(at(&path, "nullable"), detail);
            }
        }
    }
}
