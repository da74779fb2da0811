//! The parts of an answer that a step looks at.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use shared_json::{Array, Map, Value, json};

use super::compare::sorted_text;
use super::encoded::Expression;
use super::pointer;

/// The value where a view finds nothing.
const ABSENT: &str = "<absent>";
/// How deep the view `shape` looks.
const SHAPE_DEPTH: u32 = 9;

/// One way to look at an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum View {
    /// These pointers.
    Pick(Vec<String>),
    /// The value at the pointer.
    At(String),
    /// The sorted keys of the value at the pointer.
    Keys(String),
    /// Types instead of values.
    Shape(Flag),
    /// The items of a list that have a certain value somewhere.
    Keep(Keep),
    /// Some of the entries of an object.
    KeepKeys(KeepKeys),
    /// The items of a list in the order of their texts, or of a part of theirs.
    Sort(Sort),
    /// All but these pointers.
    Del(Vec<String>),
    /// The length of the value at the pointer.
    Length(String),
    /// Which of these texts the answer contains.
    Contains(Vec<String>),
    /// The lines that match.
    Lines(Expression),
    /// The text as it is.
    Text(Flag),
    /// The first bytes, as hexadecimal digits.
    Hex(usize),
    /// The structure of these schemas of an OpenAPI v3 document.
    Openapi(Vec<String>),
    /// Whether there is nothing.
    Empty(Flag),
    /// The claims of the token at the pointer.
    Jwt(String),
}

/// The value of a view that has none: true, or 1.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
pub(super) enum Flag {
    On,
}

impl TryFrom<Value> for Flag {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value == true || value == 1 {
            Ok(Self::On)
        } else {
            Err(format!("expected true or 1, not {value}"))
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Keep {
    at: String,
    by: String,
    #[serde(rename = "in")]
    of: Option<Vec<Value>>,
    re: Option<Expression>,
    #[serde(default)]
    not: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct KeepKeys {
    at: String,
    #[serde(rename = "in")]
    of: Option<Vec<String>>,
    re: Option<Expression>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Sort {
    at: String,
    #[serde(default)]
    by: String,
}

/// Applies these views in turn to `body` (null for invalid JSON) and `text`, the whole answer.
pub(super) fn look(views: &[View], body: Value, text: &str) -> Value {
    views.iter().fold(body, |body, view| view.look(body, text))
}

impl View {
    fn look(&self, mut body: Value, text: &str) -> Value {
        let absent = || Value::from(ABSENT);
        match self {
            Self::Pick(pointers) => {
                let picked = pointers.iter().map(|pointer| {
                    let value = if pointer.contains('*') {
                        json!(pointer::find(&body, pointer))
                    } else {
                        pointer::get(&body, pointer).cloned().unwrap_or_else(absent)
                    };
                    (pointer.clone(), value)
                });
                Value::Object(picked.collect())
            }
            Self::At(pointer) => pointer::get(&body, pointer).cloned().unwrap_or_else(absent),
            Self::Keys(pointer) => match pointer::get(&body, pointer) {
                Some(Value::Object(map)) => map.keys().cloned().collect(),
                _ => Value::from("<not an object>"),
            },
            Self::Shape(Flag::On) => shape(&body, SHAPE_DEPTH),
            Self::Keep(keep) => {
                if let Some(Value::Array(items)) = pointer::get_mut(&mut body, &keep.at) {
                    items.retain(|item| keep.keeps(item));
                }
                body
            }
            Self::KeepKeys(keep) => {
                if let Some(Value::Object(map)) = pointer::get_mut(&mut body, &keep.at) {
                    map.retain(|key, _| {
                        keep.of
                            .as_ref()
                            .is_none_or(|of| of.iter().any(|name| name == key))
                            && keep.re.as_ref().is_none_or(|re| re.is_in(key))
                    });
                }
                body
            }
            Self::Sort(sort) => {
                pointer::for_each_list(&mut body, &sort.at, &mut |items| {
                    items.sort_by_cached_key(|item| {
                        sorted_text(pointer::get(item, &sort.by).unwrap_or(&Value::Null))
                    });
                });
                body
            }
            Self::Del(pointers) => {
                pointers
                    .iter()
                    .for_each(|pointer| pointer::remove(&mut body, pointer));
                body
            }
            Self::Length(pointer) => match pointer::get(&body, pointer) {
                Some(Value::Array(items)) => Value::from(items.len()),
                Some(Value::Object(map)) => Value::from(map.len()),
                Some(Value::String(text)) => Value::from(text.chars().count()),
                _ => absent(),
            },
            Self::Contains(texts) => {
                let found = texts
                    .iter()
                    .map(|part| (part.clone(), Value::from(text.contains(part.as_str()))));
                Value::Object(found.collect())
            }
            Self::Lines(expression) => {
                let mut lines: Vec<&str> = text.lines().filter(|line| expression.is_in(line)).collect();
                lines.sort_unstable();
                json!(lines)
            }
            Self::Text(Flag::On) => Value::from(text),
            Self::Hex(bytes) => {
                // The text of a binary answer has one character a byte.
                let hex = text
                    .chars()
                    .take(*bytes)
                    .map(|char| format!("{:02x}", u32::from(char)));
                Value::from(hex.collect::<String>())
            }
            Self::Openapi(names) => {
                let schemas = pointer::get(&body, "/components/schemas");
                let structure = |name: &String| {
                    let schema = schemas.and_then(|schemas| schemas.get(name));
                    (name.clone(), schema.map_or_else(absent, schema_structure))
                };
                Value::Object(names.iter().map(structure).collect())
            }
            Self::Empty(Flag::On) => Value::from(text.is_empty()),
            Self::Jwt(pointer) => claims(pointer::text(&body, pointer)),
        }
    }
}

impl Keep {
    fn keeps(&self, item: &Value) -> bool {
        let value = pointer::get(item, &self.by).unwrap_or(&Value::Null);
        match (&self.of, &self.re) {
            (Some(of), _) => of.contains(value),
            (None, Some(re)) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                re.is_in(&text) != self.not
            }
            (None, None) => true,
        }
    }
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap_or_default();
    URL_SAFE_NO_PAD
        .decode(payload)
        .ok()
        .and_then(|bytes| shared_json::from_slice(&bytes).ok())
        .unwrap_or_else(|| Value::from("<not a jwt>"))
}

fn shape(value: &Value, depth: u32) -> Value {
    match value {
        Value::Object(_) if depth == 0 => Value::from("object"),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), shape(value, depth - 1)))
            .collect::<Map>()
            .into(),
        Value::Array(items) => {
            let mut shapes = Vec::new();
            for shape in items.iter().map(|item| shape(item, depth.saturating_sub(1))) {
                if !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
            Value::from(shapes)
        }
        Value::String(_) => Value::from("string"),
        Value::Bool(_) => Value::from("boolean"),
        Value::Number(_) => Value::from("number"),
        Value::Null => Value::from("null"),
    }
}

/// The keywords of a schema that describe the structure of objects.
const STRUCTURAL: [&str; 17] = [
    "type",
    "format",
    "required",
    "enum",
    "nullable",
    "default",
    "oneOf",
    "anyOf",
    "not",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

fn schema_structure(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let reference = |schema: &Value| {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        Some(Value::from(name))
    };
    let mut out: BTreeMap<String, Value> = BTreeMap::new();
    let only = map.get("allOf").and_then(Value::as_array).map(Array::as_slice);
    if let Some([only]) = only
        && let Some(name) = reference(only)
    {
        out.insert("ref".to_owned(), name);
    }
    if let Some(name) = reference(schema) {
        out.insert("ref".to_owned(), name);
    }
    for (key, value) in map {
        let extension = key.starts_with("x-kubernetes-") && key != "x-kubernetes-unions";
        if !extension && !STRUCTURAL.contains(&key.as_str()) {
            continue;
        }
        let mut value = value.clone();
        if let (true, Value::Array(items)) = (matches!(key.as_str(), "required" | "enum"), &mut value) {
            items.sort_by_key(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
        }
        out.insert(key.to_string(), value);
    }
    if let Some(items) = map.get("items") {
        out.insert("items".to_owned(), schema_structure(items));
    }
    if let Some(more @ Value::Object(_)) = map.get("additionalProperties") {
        out.insert("additionalProperties".to_owned(), schema_structure(more));
    }
    if let Some(Value::Object(properties)) = map.get("properties") {
        let properties = properties
            .iter()
            .map(|(name, schema)| (name.clone(), schema_structure(schema)));
        out.insert("properties".to_owned(), Value::Object(properties.collect()));
    }
    Value::Object(out.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"pick": ["/a/b", "/none", "/l/*/n"]}), json!({"/a/b": 1, "/none": "<absent>", "/l/*/n": ["y", "x"]}))]
    #[case(json!({"at": "/l/0"}), json!({"n": "y"}))]
    #[case(json!({"keys": "/a"}), json!(["b"]))]
    #[case(json!({"shape": true}), json!({"a": {"b": "number"}, "l": [{"n": "string"}]}))]
    #[case(json!({"keep": {"at": "/l", "by": "/n", "in": ["x"]}}), json!({"a": {"b": 1}, "l": [{"n": "x"}]}))]
    #[case(json!({"keep": {"at": "/l", "by": "/n", "re": "^x", "not": true}}), json!({"a": {"b": 1}, "l": [{"n": "y"}]}))]
    #[case(json!({"keepKeys": {"at": "", "re": "^l"}}), json!({"l": [{"n": "y"}, {"n": "x"}]}))]
    #[case(json!({"sort": {"at": "/l", "by": "/n"}}), json!({"a": {"b": 1}, "l": [{"n": "x"}, {"n": "y"}]}))]
    #[case(json!({"del": ["/l"]}), json!({"a": {"b": 1}}))]
    #[case(json!({"length": "/l"}), json!(2))]
    #[case(json!({"contains": ["tex", "no"]}), json!({"tex": true, "no": false}))]
    #[case(json!({"hex": 2}), json!("7465"))]
    #[case(json!({"empty": true}), json!(false))]
    fn looks(#[case] view: Value, #[case] expected: Value) {
        let view: View = shared_json::from_value(view).expect("a view");
        let body = json!({"a": {"b": 1}, "l": [{"n": "y"}, {"n": "x"}]});
        assert_eq!(look(&[view], body, "text"), expected);
    }
}
