//! Reading the schema of a custom resource from a CustomResourceDefinition, and the errors in it.

use super::builtin::object_meta;
use super::schema::{Array, Field, Kind, Limits, ListType, Logic, Object, Schema};
use pod_rules::field_error::{FieldError, FieldErrorKind};
use shared_json::{Map, Value};
use std::sync::Arc;

/// The deepest schema taken.
const DEPTH_MAX: usize = 200;
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

impl Schema {
    /// Reads `openAPIV3Schema` of a CustomResourceDefinition's version.
    ///
    /// The root gets `apiVersion`, `kind` and `metadata`, which every custom resource has. The errors are those of the real server for
    /// schemas that are not structural or contradict themselves, with paths relative to the schema (`properties[spec].type`, empty
    /// for the root; see [`FieldError::under`]). `x-kubernetes-validations` are kept and neither compiled nor evaluated.
    ///
    /// ```
    /// use machinery::types::Schema;
    /// use shared_json::json;
    /// let schema = Schema::from_openapi_v3(&json!({
    ///     "type": "object",
    ///     "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}}}},
    /// })).unwrap();
    /// let mut object = json!({"kind": "Widget", "spec": {"unknown": true}});
    /// assert_eq!(schema.prune(&mut object), ["spec.unknown"]);
    /// schema.default(&mut object);
    /// assert_eq!(object, json!({"kind": "Widget", "spec": {"replicas": 1}}));
    /// ```
    pub fn from_openapi_v3(schema: &Value) -> Result<Schema, Vec<FieldError>> {
        let mut reader = Reader {
            errors: Vec::new(),
            depth: 0,
        };
        let mut root = reader.read(schema, "", Position::Root);
        if reader.errors.is_empty() {
            reader.check_defaults(&root, "");
        }
        if !reader.errors.is_empty() {
            return Err(reader.errors);
        }
        add_root_fields(&mut root);
        Ok(root)
    }
}

impl Schema {
    /// The same for a schema that is known to be right, or of which other complaints are made.
    pub fn from_openapi_v3_unchecked(schema: &Value) -> Schema {
        let mut reader = Reader {
            errors: Vec::new(),
            depth: 0,
        };
        let mut root = reader.read(schema, "", Position::Root);
        add_root_fields(&mut root);
        root
    }

    /// Complaints about defaults that are no values of their own type, with paths relative to the schema.
    pub fn wrong_defaults(&self) -> Vec<FieldError> {
        let mut reader = Reader {
            errors: Vec::new(),
            depth: 0,
        };
        reader.check_defaults(self, "");
        reader.errors
    }
}

/// Every custom resource has these.
fn add_root_fields(root: &mut Schema) {
    if let Kind::Object(object) = &mut root.kind {
        for name in ["apiVersion", "kind"] {
            object.fields.insert(
                name,
                Field {
                    schema: Schema::of(Kind::String).into(),
                    ..Field::default()
                },
            );
        }
        object.fields.insert(
            "metadata",
            Field {
                schema: object_meta().into(),
                ..Field::default()
            },
        );
    }
}

/// The place of a schema, which decides its required fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    Field,
    Items,
    /// Inside `allOf`, `anyOf`, `oneOf` or `not`, where only values may be validated.
    Logic,
    /// Directly inside those of an int-or-string, where `type: integer` and `type: string` may be spelled out.
    Alternative,
}

impl Position {
    fn is_logic(self) -> bool {
        matches!(self, Position::Logic | Position::Alternative)
    }
}

struct Reader {
    errors: Vec<FieldError>,
    depth: usize,
}

fn at(path: &str, part: &str) -> String {
    match path.is_empty() {
        true => part.to_owned(),
        false => format!("{path}.{part}"),
    }
}

fn flag(map: &Map, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}

impl Reader {
    fn error(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    fn read(&mut self, schema: &Value, path: &str, position: Position) -> Schema {
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.error(FieldError::forbidden(path, "schema is nested too deeply"));
            self.depth -= 1;
            return Schema::default_any();
        }
        if map.get("$ref").is_some() {
            self.error(FieldError::forbidden(at(path, "$ref"), "$ref is not supported"));
        }
        let read = Schema {
            kind: self.kind(map, path, position),
            nullable: flag(map, "nullable"),
            default: map.get("default").cloned(),
            allowed: map
                .get("enum")
                .and_then(Value::as_array)
                .map(|allowed| allowed.to_vec())
                .unwrap_or_default(),
            format: map.get("format").and_then(Value::as_str).map(Arc::from),
            description: map.get("description").and_then(Value::as_str).map(Arc::from),
            limits: limits(map),
            logic: self.logic(map, path, position),
            validations: map
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .map(|rules| rules.to_vec())
                .unwrap_or_default(),
            untyped: map.get("type").and_then(Value::as_str).is_none_or(str::is_empty)
                && !flag(map, "x-kubernetes-int-or-string"),
            ..Schema::default_any()
        };
        self.depth -= 1;
        read
    }

    fn kind(&mut self, map: &Map, path: &str, position: Position) -> Kind {
        let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
        let preserve = flag(map, "x-kubernetes-preserve-unknown-fields");
        let int_or_string = flag(map, "x-kubernetes-int-or-string");
        if !map.contains_key("$ref") {
            self.check_type(map, kind, path, position);
        }
        if int_or_string {
            return Kind::IntOrString;
        }
        match kind {
            "object" => self.object(map, path, position),
            "array" => self.array(map, path, position),
            "string" => Kind::String,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            _ if position.is_logic() && map.contains_key("items") => self.array(map, path, position),
            _ if position.is_logic() && (map.contains_key("properties") || map.contains_key("required")) => {
                self.object(map, path, position)
            }
            _ if preserve && map.contains_key("properties") => self.object(map, path, position),
            _ => Kind::Any,
        }
    }

    fn check_type(&mut self, map: &Map, kind: &str, path: &str, position: Position) {
        let loose =
            flag(map, "x-kubernetes-preserve-unknown-fields") || flag(map, "x-kubernetes-int-or-string");
        let type_path = at(path, "type");
        let embedded = flag(map, "x-kubernetes-embedded-resource");
        if embedded {
            if !flag(map, "x-kubernetes-preserve-unknown-fields")
                && map
                    .get("properties")
                    .and_then(Value::as_object)
                    .is_none_or(Map::is_empty)
            {
                let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                              x-kubernetes-preserve-unknown-fields";
                self.error(FieldError::required(at(path, "properties"), detail));
            }
            if kind != "object" {
                let detail = "must be object if x-kubernetes-embedded-resource is true";
                self.error(FieldError::invalid(type_path.clone(), kind, detail));
                return;
            }
        }
        match (kind, position) {
            ("", Position::Root) => {
                self.error(FieldError::required(type_path, "must not be empty at the root"))
            }
            (kind, Position::Root) if kind != "object" && TYPES.contains(&kind) => {
                self.error(FieldError::invalid(type_path, kind, "must be object at the root"));
            }
            ("integer" | "string", Position::Alternative) => {}
            (_, Position::Logic | Position::Alternative) => {
                for name in [
                    "type",
                    "default",
                    "additionalProperties",
                    "nullable",
                    "title",
                    "description",
                ] {
                    let says = match map.get(name) {
                        None | Some(Value::Null) | Some(Value::Bool(false)) => false,
                        Some(Value::String(text)) => !text.is_empty(),
                        Some(_) => true,
                    };
                    if says {
                        self.error(FieldError::forbidden(at(path, name), forbidden_in_logic(name)));
                    }
                }
            }
            ("", Position::Field) if !loose => {
                self.error(FieldError::required(
                    type_path,
                    "must not be empty for specified object fields",
                ));
            }
            ("", Position::Items) if !loose => {
                self.error(FieldError::required(
                    type_path,
                    "must not be empty for specified array items",
                ));
            }
            ("", _) => {}
            (kind, _) if !TYPES.contains(&kind) => {
                self.error(FieldError::not_supported(type_path, kind, &TYPES));
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &Map, path: &str, position: Position) -> Kind {
        let inner = |position: Position| {
            if position.is_logic() {
                Position::Logic
            } else {
                Position::Field
            }
        };
        let mut object = Object {
            preserve_unknown: flag(map, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag(map, "x-kubernetes-embedded-resource"),
            atomic: map.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            required: strings(map.get("required")),
            ..Object::default()
        };
        let properties = map.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let read = self.read(schema, &at(path, &format!("properties[{name}]")), inner(position));
            object.fields.insert(
                name.clone(),
                Field {
                    schema: read.into(),
                    ..Field::default()
                },
            );
        }
        let additional_path = at(path, "additionalProperties");
        match map.get("additionalProperties") {
            Some(Value::Object(_)) if properties.is_some_and(|properties| !properties.is_empty()) => {
                let detail = "additionalProperties and properties are mutual exclusive";
                self.error(FieldError::forbidden(additional_path, detail));
            }
            Some(schema @ Value::Object(_)) => {
                object.additional = Some(self.read(schema, &additional_path, inner(position)).into());
            }
            Some(Value::Bool(true)) => object.preserve_unknown = true,
            _ => {}
        }
        if position.is_logic() {
            object.preserve_unknown = true;
        }
        Kind::Object(object)
    }

    fn array(&mut self, map: &Map, path: &str, position: Position) -> Kind {
        let items_path = at(path, "items");
        let inner = if position.is_logic() {
            Position::Logic
        } else {
            Position::Items
        };
        let items = match map.get("items") {
            Some(Value::Array(_)) => {
                let detail = "items must be a schema object and not an array";
                self.error(FieldError::forbidden(items_path.clone(), detail));
                Schema::default_any()
            }
            Some(items) => self.read(items, &items_path, inner),
            None => {
                if !position.is_logic() {
                    self.error(FieldError::required(items_path.clone(), "must be specified"));
                }
                Schema::default_any()
            }
        };
        let list_type = self.list_type(map, &items, path);
        Kind::Array(Array {
            items: items.into(),
            list_type,
        })
    }

    fn list_type(&mut self, map: &Map, items: &Schema, path: &str) -> ListType {
        let keys_path = at(path, "x-kubernetes-list-map-keys");
        match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("map") => {
                let keys = strings(map.get("x-kubernetes-list-map-keys"));
                if keys.is_empty() {
                    let detail = "must not be empty if x-kubernetes-list-type is map";
                    self.error(FieldError::required(keys_path, detail));
                } else if keys.iter().any(|key| items.field(key).is_none()) {
                    self.error(FieldError::invalid(
                        keys_path,
                        keys.clone(),
                        "entries must all be names of item properties",
                    ));
                }
                ListType::Map(keys)
            }
            Some("set") => {
                let whole = match &items.kind {
                    Kind::Object(object) => object.atomic,
                    Kind::Array(array) => array.list_type == ListType::Atomic,
                    _ => true,
                };
                if !whole {
                    let name = match items.kind {
                        Kind::Array(_) => "items.x-kubernetes-list-type",
                        _ => "items.x-kubernetes-map-type",
                    };
                    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                    self.error(FieldError::new(
                        FieldErrorKind::Invalid,
                        at(path, name),
                        None,
                        detail,
                    ));
                }
                ListType::Set
            }
            Some("atomic") | None => ListType::Atomic,
            Some(other) => {
                let path = at(path, "x-kubernetes-list-type");
                self.error(FieldError::not_supported(path, other, &["atomic", "set", "map"]));
                ListType::Atomic
            }
        }
    }

    fn logic(&mut self, map: &Map, path: &str, position: Position) -> Option<Box<Logic>> {
        let alternative = flag(map, "x-kubernetes-int-or-string") || position == Position::Alternative;
        let position = if alternative {
            Position::Alternative
        } else {
            Position::Logic
        };
        let mut read = |name: &str| -> Vec<Schema> {
            let schemas = map
                .get(name)
                .and_then(Value::as_array)
                .map_or(&[][..], |items| items.as_slice());
            let read = schemas.iter().enumerate();
            read.map(|(i, schema)| self.read(schema, &at(path, &format!("{name}[{i}]")), position))
                .collect()
        };
        let mut logic = Logic {
            all_of: read("allOf"),
            any_of: read("anyOf"),
            one_of: read("oneOf"),
            not: None,
        };
        logic.not = map
            .get("not")
            .map(|not| self.read(not, &at(path, "not"), position));
        let empty = logic.all_of.is_empty()
            && logic.any_of.is_empty()
            && logic.one_of.is_empty()
            && logic.not.is_none();
        (!empty).then(|| Box::new(logic))
    }

    /// A default must be a value of its own type.
    fn check_defaults(&mut self, schema: &Schema, path: &str) {
        if let Some(default) = &schema.default
            && !(default.is_null() && schema.nullable)
        {
            let path = at(path, "default");
            let mut pruned = default.clone();
            if schema.drops(&mut pruned) {
                self.error(FieldError::invalid(
                    path.clone(),
                    default.clone(),
                    "must not have unknown fields",
                ));
            }
            // Whether items are there twice is not asked of a default, nor whether it is a number or text.
            let is_asked = |error: &FieldError| {
                error.kind != FieldErrorKind::Duplicate
                    && !(matches!(schema.kind, Kind::IntOrString)
                        && (default.is_number() || error.kind == FieldErrorKind::TypeInvalid))
            };
            for error in schema.validate(default).into_iter().filter(is_asked) {
                let below = if error.path.is_empty() || error.path == "<nil>" {
                    path.clone()
                } else {
                    at(&path, error.path.trim_start_matches('.'))
                };
                self.error(FieldError { path: below, ..error });
            }
        }
        match &schema.kind {
            Kind::Object(object) => {
                for (name, field) in &object.fields {
                    self.check_defaults(&field.schema, &at(path, &format!("properties[{name}]")));
                }
                if let Some(values) = &object.additional {
                    self.check_defaults(values, &at(path, "additionalProperties"));
                }
            }
            Kind::Array(array) => self.check_defaults(&array.items, &at(path, "items")),
            _ => {}
        }
    }
}

fn forbidden_in_logic(name: &str) -> &'static str {
    match name {
        "nullable" => "must be false to be structural",
        "default" | "additionalProperties" => "must be undefined to be structural",
        _ => "must be empty to be structural",
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value
        .and_then(Value::as_array)
        .map_or(&[][..], |items| items.as_slice());
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn limits(map: &Map) -> Option<Box<Limits>> {
    let number = |name: &str| map.get(name).and_then(Value::as_f64);
    let count = |name: &str| map.get(name).and_then(Value::as_i64);
    let limits = Limits {
        minimum: number("minimum"),
        exclusive_minimum: flag(map, "exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag(map, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: map
            .get("pattern")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(map, "uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    };
    (limits != Limits::default()).then(|| Box::new(limits))
}
