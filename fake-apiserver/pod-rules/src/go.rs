//! Values as complaints print them: the real server shows its own structs, with every field and by their Go names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use shared_json::{Map, Value};

use super::fields::Fields;
use super::unified;

/// The types of a struct's fields.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    Flag,
    Amount,
    Plain,
    Struct(&'static str),
    Pointer(&'static str),
    List(&'static str),
}

enum Field {
    Own {
        go: &'static str,
        json: &'static str,
        /// The JSON field stands in the enclosing object.
        outer: bool,
        shape: Shape,
    },
    Embedded(&'static str),
    Metadata,
}

/// The fields of `metadata`, in the order of its struct.
pub const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

static STRUCTS: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    include_str!("go_structs.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, fields) = line.split_once(' ')?;
            Some((name, fields.split(' ').filter_map(field).collect()))
        })
        .collect()
});

fn field(text: &'static str) -> Option<Field> {
    if text == "+metadata" {
        return Some(Field::Metadata);
    }
    if let Some(name) = text.strip_prefix("+@") {
        return Some(Field::Embedded(name));
    }
    let (go, rest) = text.split_once(':')?;
    let (json, shape) = rest.split_once(':')?;
    let shape = match shape {
        "s" => Shape::Text,
        "n" => Shape::Number,
        "b" => Shape::Flag,
        "q" => Shape::Amount,
        shape => match (
            shape.strip_prefix("*@"),
            shape.strip_prefix("[]@"),
            shape.strip_prefix('@'),
        ) {
            (Some(name), _, _) => Shape::Pointer(name),
            (_, Some(name), _) => Shape::List(name),
            (_, _, Some(name)) => Shape::Struct(name),
            _ => Shape::Plain,
        },
    };
    Some(Field::Own {
        go,
        json: json.trim_start_matches('^'),
        outer: json.starts_with('^'),
        shape,
    })
}

/// JSON whose fields have an order.
enum Tree {
    Plain(Value),
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
}

fn tree(name: &str, value: Option<&Value>, outer: Option<&Value>) -> Tree {
    let mut out = Vec::new();
    fill(name, value, outer, &mut out);
    Tree::Object(out)
}

fn fill(name: &str, value: Option<&Value>, outer: Option<&Value>, out: &mut Vec<(String, Tree)>) {
    for field in STRUCTS.get(name).map(Vec::as_slice).unwrap_or_default() {
        match field {
            Field::Embedded(name) => fill(name, value, outer, out),
            Field::Metadata => {
                let meta = value.and_then(|value| value.part("metadata"));
                let fields = METADATA
                    .into_iter()
                    .filter_map(|field| Some((field, meta?.get(field)?)));
                for (key, value) in fields.filter(|(_, value)| !value.is_null()) {
                    out.push((key.to_owned(), Tree::Plain(value.clone())));
                }
            }
            Field::Own {
                go,
                json,
                outer: is_outer,
                shape,
            } => {
                let holder = if *is_outer { outer } else { value };
                let present = holder.and_then(|value| value.part(json));
                out.push(((*go).to_owned(), shown(*shape, present, value)));
            }
        }
    }
}

fn shown(shape: Shape, present: Option<&Value>, holder: Option<&Value>) -> Tree {
    match (shape, present) {
        (Shape::Struct(name), present) => tree(name, present, holder),
        (Shape::Pointer(name), Some(present)) => tree(name, Some(present), holder),
        (Shape::List(name), Some(Value::Array(items))) => {
            Tree::List(items.iter().map(|item| tree(name, Some(item), holder)).collect())
        }
        (_, Some(present)) => plain(present),
        (Shape::Text, None) => Tree::Plain(Value::from("")),
        (Shape::Number, None) => Tree::Plain(Value::from(0)),
        (Shape::Flag, None) => Tree::Plain(Value::from(false)),
        (Shape::Amount, None) => Tree::Plain(Value::from("0")),
        (Shape::Plain | Shape::Pointer(_) | Shape::List(_), None) => Tree::Plain(Value::Null),
    }
}

/// JSON of a type that is printed as it is sent. Of these label selectors alone have their fields in another order than that of letters.
fn plain(value: &Value) -> Tree {
    const FIELDS: [&str; 2] = ["matchLabels", "matchExpressions"];
    match FIELDS.map(|field| value.part(field)) {
        [Some(labels), Some(expressions)] => {
            let parts = [labels, expressions].map(|part| Tree::Plain(part.clone()));
            Tree::Object(FIELDS.map(str::to_owned).into_iter().zip(parts).collect())
        }
        _ => Tree::Plain(value.clone()),
    }
}

/// A value of a type that is printed as it is sent.
pub fn plain_text(value: &Value) -> String {
    let mut out = String::new();
    plain(value).compact(&mut out);
    out
}

/// JSON as Go's encoder writes it.
pub fn json(value: &Value) -> String {
    shared_json::to_go_string(value)
}

impl Tree {
    fn compact(&self, out: &mut String) {
        match self {
            Tree::Plain(value) => out.push_str(&json(value)),
            Tree::Object(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&format!("\"{name}\":"));
                    value.compact(out);
                }
                out.push('}');
            }
            Tree::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.compact(out);
                }
                out.push(']');
            }
        }
    }

    /// Indented by one blank a level.
    fn pretty(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        };
        match self {
            Tree::Plain(Value::Array(items)) if !items.is_empty() => {
                Tree::List(items.iter().cloned().map(Tree::Plain).collect()).pretty(depth, out);
            }
            Tree::Plain(Value::Object(map)) if !map.is_empty() => {
                let fields: Vec<(String, Tree)> = map
                    .iter()
                    .map(|(key, value)| (key.to_string(), Tree::Plain(value.clone())))
                    .collect();
                Tree::Object(fields).pretty(depth, out);
            }
            Tree::Plain(value) => out.push_str(&json(value)),
            Tree::Object(fields) if fields.is_empty() => out.push_str("{}"),
            Tree::List(items) if items.is_empty() => out.push_str("[]"),
            Tree::Object(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    indent(depth + 1, out);
                    out.push_str(&format!("\"{name}\": "));
                    value.pretty(depth + 1, out);
                }
                indent(depth, out);
                out.push('}');
            }
            Tree::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    indent(depth + 1, out);
                    item.pretty(depth + 1, out);
                }
                indent(depth, out);
                out.push(']');
            }
        }
    }
}

/// A value as the struct of this name, `core.PodSpec`, in one line.
pub fn text(name: &str, value: Option<&Value>) -> String {
    let mut out = String::new();
    tree(name, value, None).compact(&mut out);
    out
}

/// An object as Go's encoder writes the struct of this name: its fields in the struct's order. Absent fields are left out, and so are
/// fields that the struct does not have.
///
/// ```
/// let container = shared_json::json!({"image": "i", "name": "n", "tty": true, "env": [{"value": "v", "name": "e"}]});
/// let text = pod_rules::go::ordered("core.Container", &container);
/// assert_eq!(text, r#"{"name":"n","image":"i","env":[{"name":"e","value":"v"}],"tty":true}"#);
/// ```
pub fn ordered(name: &str, value: &Value) -> String {
    let mut out = String::new();
    ordered_tree(name, value).compact(&mut out);
    out
}

fn ordered_tree(name: &str, value: &Value) -> Tree {
    let mut out = Vec::new();
    fill_ordered(name, value, &mut out);
    Tree::Object(out)
}

fn fill_ordered(name: &str, value: &Value, out: &mut Vec<(String, Tree)>) {
    for field in STRUCTS.get(name).map(Vec::as_slice).unwrap_or_default() {
        match field {
            Field::Embedded(name) => fill_ordered(name, value, out),
            Field::Own {
                json,
                outer: false,
                shape,
                ..
            } => {
                let Some(part) = value.part(json) else { continue };
                let tree = match (shape, part) {
                    (Shape::Struct(name) | Shape::Pointer(name), part) => ordered_tree(name, part),
                    (Shape::List(name), Value::Array(items)) => {
                        Tree::List(items.iter().map(|item| ordered_tree(name, item)).collect())
                    }
                    (_, part) => Tree::Plain(part.clone()),
                };
                out.push(((*json).to_owned(), tree));
            }
            Field::Own { .. } | Field::Metadata => {}
        }
    }
}

/// Several values as a list of structs of this name.
pub fn list_text(name: &str, values: &[Value]) -> String {
    let mut out = String::new();
    Tree::List(values.iter().map(|value| tree(name, Some(value), None)).collect()).compact(&mut out);
    out
}

/// The difference of two values, as structs of this name, line by line.
pub fn difference(name: &str, old: &Value, new: &Value) -> String {
    let pretty = |value: &Value| {
        let mut out = String::new();
        tree(name, Some(value), None).pretty(0, &mut out);
        out
    };
    unified::difference(&pretty(old), &pretty(new))
}

/// An object with the fields in `fields` and no others.
pub fn only(value: &Value, fields: &[&str]) -> Value {
    let mut out = Map::new();
    for field in fields {
        if let Some(part) = value.part(field) {
            out.insert((*field).to_owned(), part.clone());
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case("apps.DeploymentStrategy", json!({"type": "X"}), r#"{"Type":"X","RollingUpdate":null}"#)]
    #[case("rbac.RoleRef", json!({"kind": "Role", "name": "r<"}), r#"{"APIGroup":"","Kind":"Role","Name":"r\u003c"}"#)]
    #[case("policy.PodDisruptionBudgetSpec", json!({"selector": {"matchExpressions": [], "matchLabels": {"a": "b"}}}), r#"{"MinAvailable":null,"Selector":{"matchLabels":{"a":"b"},"matchExpressions":[]},"MaxUnavailable":null,"UnhealthyPodEvictionPolicy":null}"#)]
    #[case("core.Taint", json!({}), r#"{"Key":"","Value":"","Effect":"","TimeAdded":null}"#)]
    fn every_field_is_shown(#[case] name: &str, #[case] value: Value, #[case] expected: &str) {
        assert_eq!(text(name, Some(&value)), expected);
    }

    #[test]
    fn every_struct_that_is_named_is_there() {
        for (name, fields) in STRUCTS.iter() {
            for field in fields {
                let inner = match field {
                    Field::Embedded(inner) => inner,
                    Field::Own {
                        shape: Shape::Struct(inner) | Shape::Pointer(inner) | Shape::List(inner),
                        ..
                    } => inner,
                    _ => continue,
                };
                assert!(STRUCTS.contains_key(inner), "{name} needs {inner}");
            }
        }
    }

    #[test]
    fn a_pods_security_context_holds_what_the_api_keeps_in_the_spec() {
        let text = text(
            "core.PodSpec",
            Some(&json!({"hostNetwork": true, "securityContext": {}})),
        );
        assert!(
            text.contains(r#""SecurityContext":{"HostNetwork":true,"HostPID":false"#),
            "{text}"
        );
    }
}
