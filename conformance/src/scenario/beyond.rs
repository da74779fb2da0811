//! The parts of Chainsaw that are not played: those that need a machine or another cluster.
//!
//! A test that uses such a part is skipped, and the part named. Output for people is passed over, and so are programs
//! that run when a test has failed or is over: the cluster goes with the test.

use shared_json::Value;

use crate::assertion::expression::inner;

/// Fields of a test, a step or an action that say where it is played.
const PLACES: [&str; 2] = ["cluster", "clusters"];
/// Operations that run a program or ask the network.
const PROGRAMS: [&str; 3] = ["script", "command", "proxy"];

/// The words of a test that are not played, each once, in order; none for a test that is.
#[must_use]
pub fn words(test: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = test.get("spec").unwrap_or(&Value::Null);
    // Which cluster an expression names is known when the test is played.
    if spec
        .get("cluster")
        .and_then(Value::as_str)
        .and_then(inner)
        .is_none()
    {
        place(spec, &mut found);
    }
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
                }
            }
        }
    }
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
        // The one cluster there is has an empty name.
        let own = match value.get(name) {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(other) => other.is_null(),
        };
        if !own {
            add(found, name);
        }
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
    #[case::the_own_cluster(json!({"cluster": "", "clusters": {}, "steps": [{"cluster": ""}]}), &[])]
    #[case::named_by_an_expression(json!({"cluster": "($cluster)", "steps": []}), &[])]
    #[case::languages(json!({"compiler": "cel", "steps": [{"try": [{"compiler": "cel", "apply": {}}]}]}), &[])]
    #[case::only_tried(json!({"steps": [{"try": [{"apply": {"dryRun": true}}]}]}), &[])]
    fn are_told(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(words(&json!({"spec": spec})), expected);
    }
}
