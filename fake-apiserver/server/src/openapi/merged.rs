//! Documents of other servers as parts of `/openapi/v2`, put together as Kubernetes' aggregator does (kube-openapi,
//! `pkg/aggregator`).

use std::collections::{BTreeMap, BTreeSet};

use shared_json::{Map, Value, json};

use super::v2::DEFINITIONS;

const KINDS: &str = "x-kubernetes-group-version-kind";

/// The part of a document about the paths that begin so: these, and the definitions that they need. `None` if there are none.
pub(crate) fn part(document: &Value, prefix: &str) -> Option<Value> {
    let paths = document.get("paths")?.as_object()?;
    let paths: Map = paths
        .iter()
        .filter(|(path, _)| path.starts_with(prefix))
        .map(|(path, item)| (path.clone(), item.clone()))
        .collect();
    (!paths.is_empty()).then(|| with_needed(paths, &definitions(document)))
}

/// Adds such a part to a document. A path that the document has stays as it is. A definition that the document has by the same name
/// and with other content gets a number: `…ObjectMeta_v2`.
pub(super) fn merge(into: &mut Value, part: &Value) {
    let own_paths = paths(into);
    let mut added = paths(part);
    added.retain(|path, _| !own_paths.contains_key(path));
    if added.is_empty() {
        return;
    }
    let part = with_needed(added, &definitions(part));
    let own = definitions(into);
    let mut names = BTreeMap::new();
    let new = definitions(&part);
    for (name, schema) in &new {
        names.insert(name.to_string(), free_name(&own, &new, name, schema));
    }
    for (name, schema) in new {
        let schema = renamed(schema, &names);
        let name = &names[name.to_string().as_str()];
        match into["definitions"].get_mut(name) {
            Some(known) => add_kinds(known, &schema),
            None => into["definitions"][name.as_str()] = schema,
        }
    }
    for (path, item) in paths(&part) {
        let path: &str = &path;
        into["paths"][path] = renamed(item, &names);
    }
}

fn object(document: &Value, field: &str) -> Map {
    let found = document.get(field).and_then(Value::as_object);
    found.cloned().unwrap_or_default()
}

fn paths(document: &Value) -> Map {
    object(document, "paths")
}

fn definitions(document: &Value) -> Map {
    object(document, "definitions")
}

fn with_needed(paths: Map, definitions: &Map) -> Value {
    let mut needed = BTreeSet::new();
    let mut left: Vec<&Value> = paths.values().collect();
    let mut found = Vec::new();
    while let Some(value) = left.pop() {
        references(value, &mut found);
        for name in found.drain(..) {
            if let Some(schema) = definitions.get(&name)
                && needed.insert(name)
            {
                left.push(schema);
            }
        }
    }
    let mut definitions = definitions.clone();
    definitions.retain(|name, _| needed.contains(&**name));
    json!({"paths": paths, "definitions": definitions})
}

/// The names of the definitions to which a value refers.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str().filter(|_| &**key == "$ref") {
                    Some(to) => found.extend(to.strip_prefix(DEFINITIONS).map(ToOwned::to_owned)),
                    None => references(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// The value with references to the new names of definitions.
fn renamed(value: Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(map) => {
            let renamed_field = |(key, value): (shared_json::Name, Value)| {
                let to = value.as_str().filter(|_| &*key == "$ref");
                let new = to.and_then(|to| names.get(to.strip_prefix(DEFINITIONS)?));
                let value = match new {
                    Some(new) => Value::from(format!("{DEFINITIONS}{new}")),
                    None => renamed(value, names),
                };
                (key, value)
            };
            Value::Object(map.into_iter().map(renamed_field).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(|value| renamed(value, names)).collect()),
        other => other,
    }
}

/// The name under which a definition of `new` is found or added: its own, or its own with the first number that is free or has the
/// same content.
fn free_name(own: &Map, new: &Map, name: &str, schema: &Value) -> String {
    let numbered = (2..).map(|number| format!("{name}_v{number}"));
    let numbered = numbered.filter(|name| !new.contains_key(name));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let fits = |name: &String| own.get(name).is_none_or(|known| is_alike(known, schema));
    names.find(fits).unwrap_or_else(|| name.to_owned())
}

/// Whether two definitions say the same, but for the kinds for which they stand.
fn is_alike(a: &Value, b: &Value) -> bool {
    let without_kinds = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove(KINDS);
        }
        value
    };
    without_kinds(a) == without_kinds(b)
}

/// Adds the kinds of one definition to those of another.
fn add_kinds(known: &mut Value, other: &Value) {
    let Some(others) = other.get(KINDS).and_then(Value::as_array) else {
        return;
    };
    let mut kinds = known
        .get(KINDS)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for kind in others {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    known[KINDS] = Value::Array(kinds);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn refers(to: &str) -> Value {
        json!({"$ref": format!("{DEFINITIONS}{to}")})
    }

    fn document(path: &str, to: &str, definitions: Value) -> Value {
        json!({"paths": {path: {"get": {"responses": {"200": {"schema": refers(to)}}}}}, "definitions": definitions})
    }

    #[test]
    fn a_part_has_what_its_paths_need() {
        let whole = json!({
            "paths": {"/apis/g/v1/things": {"get": refers("List")}, "/apis/g/v2/things": {"get": refers("Other")}, "/apis/": {}},
            "definitions": {"List": {"items": refers("Thing")}, "Thing": {"properties": {"next": refers("Thing")}}, "Other": {}},
        });
        let expected = json!({
            "paths": {"/apis/g/v1/things": {"get": refers("List")}},
            "definitions": {"List": {"items": refers("Thing")}, "Thing": {"properties": {"next": refers("Thing")}}},
        });
        assert_eq!(part(&whole, "/apis/g/v1/"), Some(expected));
        assert_eq!(part(&whole, "/apis/h/v1/"), None);
    }

    #[rstest]
    #[case::a_new_definition(json!({"B": {"type": "object"}}), "B", &["A", "B"], "B")]
    #[case::the_same_definition(json!({"A": {"type": "object"}}), "A", &["A"], "A")]
    #[case::another_by_the_same_name(json!({"A": {"type": "string"}}), "A", &["A", "A_v2"], "A_v2")]
    #[case::a_number_that_is_taken(
        json!({"A": {"type": "string", "items": refers("A_v2")}, "A_v2": {"type": "array"}}), "A", &["A", "A_v2", "A_v3"], "A_v3"
    )]
    fn definitions_by_their_names(
        #[case] others: Value,
        #[case] to: &str,
        #[case] names: &[&str],
        #[case] expected: &str,
    ) {
        let mut whole = document("/a", "A", json!({"A": {"type": "object"}}));
        let other = document("/b", to, others);
        merge(&mut whole, &other);
        merge(&mut whole, &document("/c", to, other["definitions"].clone()));
        let known: Vec<String> = definitions(&whole).keys().map(ToString::to_string).collect();
        assert_eq!(known, names);
        for path in ["/b", "/c"] {
            let got = &whole["paths"][path]["get"]["responses"]["200"]["schema"];
            assert_eq!(*got, refers(expected));
        }
        assert_eq!(
            whole["paths"]["/a"]["get"]["responses"]["200"]["schema"],
            refers("A")
        );
    }

    #[test]
    fn a_path_that_is_there_stays() {
        let mut whole = document("/a", "A", json!({"A": {}}));
        let before = whole.clone();
        merge(&mut whole, &document("/a", "B", json!({"B": {}})));
        assert_eq!(whole, before);
    }

    #[test]
    fn kinds_of_one_definition_are_joined() {
        let kind = |version: &str| json!({"group": "g", "kind": "Options", "version": version});
        let of = |version: &str| json!({"A": {"type": "object", KINDS: [kind(version)]}});
        let mut whole = document("/a", "A", of("v1"));
        merge(&mut whole, &document("/b", "A", of("v2")));
        merge(&mut whole, &document("/c", "A", of("v2")));
        assert_eq!(whole["definitions"]["A"][KINDS], json!([kind("v1"), kind("v2")]));
    }
}
