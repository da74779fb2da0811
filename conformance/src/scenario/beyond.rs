//! What of Chainsaw is not played: whatever needs a machine, another cluster or another language of expressions.
//!
//! A test that uses some of it is skipped, by its words. What only shows something to people is passed over, and so are programs
//! that run when a test has failed or is over: the cluster goes with the test.

use shared_json::Value;

/// Fields of a test, a step or an action that say where it is played.
const PLACES: [&str; 2] = ["cluster", "clusters"];
/// Operations that run a program or ask the network.
const PROGRAMS: [&str; 3] = ["script", "command", "proxy"];
/// How functions begin that ask a cluster within an expression.
const ASKING: &str = "x_k8s_";

/// The words of a test that are not played, each once, in order; none for a test that is.
#[must_use]
pub fn words(test: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = test.get("spec").unwrap_or(&Value::Null);
    place(spec, &mut found);
    for step in list(spec, "steps") {
        place(step, &mut found);
        for block in ["try", "finally"] {
            for operation in list(step, block) {
                for name in PROGRAMS {
                    if operation.get(name).is_some() {
                        add(&mut found, name);
                    }
                }
                place(operation, &mut found);
                for action in operation.as_object().into_iter().flat_map(|map| map.values()) {
                    place(action, &mut found);
                    if action.get("dryRun").and_then(Value::as_bool) == Some(true) {
                        add(&mut found, "dryRun");
                    }
                }
            }
        }
    }
    asking(spec, &mut found);
    found
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn add(found: &mut Vec<String>, word: &str) {
    if !found.iter().any(|known| known == word) {
        found.push(word.to_owned());
    }
}

fn place(value: &Value, found: &mut Vec<String>) {
    for name in PLACES {
        if value.get(name).is_some() {
            add(found, name);
        }
    }
    if value.get("compiler").and_then(Value::as_str) == Some("cel") {
        add(found, "compiler: cel");
    }
    if list(value, "bindings").any(|binding| binding.get("compiler").and_then(Value::as_str) == Some("cel")) {
        add(found, "compiler: cel");
    }
}

/// Finds functions that ask a cluster, in any text and any key.
fn asking(value: &Value, found: &mut Vec<String>) {
    let mut look = |text: &str| {
        for (at, _) in text.match_indices(ASKING) {
            let name: String = text[at..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            add(found, &name);
        }
    };
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| asking(item, found)),
        Value::Object(fields) => {
            fields.keys().for_each(|key| look(key));
            fields.values().for_each(|below| asking(below, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::nothing(json!({"steps": [{"try": [{"apply": {"file": "a.yaml"}}]}]}), &[])]
    #[case::script(json!({"steps": [{"try": [{"script": {"content": "true"}}]}]}), &["script"])]
    #[case::after_a_failure(json!({"steps": [{"try": [], "catch": [{"script": {"content": "true"}}]}]}), &[])]
    #[case::when_it_is_over(json!({"steps": [{"try": [], "cleanup": [{"command": {"entrypoint": "rm"}}]}]}), &[])]
    #[case::in_any_case(json!({"steps": [{"try": [], "finally": [{"command": {"entrypoint": "rm"}}]}]}), &["command"])]
    #[case::once(json!({"steps": [{"try": [{"script": {}}, {"proxy": {}}, {"script": {}}]}]}), &["script", "proxy"])]
    #[case::elsewhere(json!({"cluster": "b", "steps": []}), &["cluster"])]
    #[case::elsewhere_in_an_action(json!({"steps": [{"try": [{"apply": {"cluster": "b"}}]}]}), &["cluster"])]
    #[case::language(json!({"steps": [{"try": [{"compiler": "cel", "apply": {}}]}]}), &["compiler: cel"])]
    #[case::own_language(json!({"steps": [{"compiler": "jp", "try": []}]}), &[])]
    #[case::language_of_a_value(json!({"bindings": [{"name": "a", "compiler": "cel", "value": 1}], "steps": []}), &["compiler: cel"])]
    #[case::only_tried(json!({"steps": [{"try": [{"apply": {"dryRun": true}}]}]}), &["dryRun"])]
    #[case::really_done(json!({"steps": [{"try": [{"apply": {"dryRun": false}}]}]}), &[])]
    #[case::asking_in_a_key(json!({"steps": [{"try": [{"assert": {"resource": {"(x_k8s_list($client, 'v1', 'Node'))": {}}}}]}]}), &["x_k8s_list"])]
    fn are_told(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(words(&json!({"spec": spec})), expected);
    }
}
