//! Daemon sets: the generation of their template is a field that shows as an annotation.

use machinery::meta::{ObjectMeta, at, string_map};
use shared_json::{Value, json};

use super::{Strategy, copy_field};

pub(super) struct DaemonSetStrategy;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &Value) -> i64 {
    let given = string_map(object, "annotations").get(TEMPLATE_GENERATION);
    let given = given.and_then(Value::as_str);
    given.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = object
        .metadata_mut()
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(map) = annotations.as_object_mut() {
        map.insert(
            TEMPLATE_GENERATION.to_owned(),
            Value::from(generation.to_string()),
        );
    } else {
        *annotations = json!({TEMPLATE_GENERATION: generation.to_string()});
    }
}

impl Strategy for DaemonSetStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn normalize(&self, object: &mut Value) {
        let generation = template_generation(object);
        set_template_generation(object, generation);
    }

    fn prepare_create(&self, object: &mut Value) {
        if object.get("status").is_some() {
            object["status"] = json!({});
        }
        let generation = template_generation(object);
        set_template_generation(object, generation.max(1));
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
        let changed = at(object, "spec.template") != at(old, "spec.template");
        set_template_generation(object, template_generation(old) + i64::from(changed));
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        set_template_generation(object, template_generation(old));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn daemon_set(generation: Option<&str>, image: &str) -> Value {
        let mut object = json!({"metadata": {"name": "d"}, "spec": {"template": {"image": image}}});
        if let Some(generation) = generation {
            object["metadata"]["annotations"] = json!({TEMPLATE_GENERATION: generation});
        }
        object
    }

    #[rstest]
    #[case(None, "a", 3)]
    #[case(None, "b", 4)]
    #[case(Some("9"), "a", 3)]
    #[case(Some("x"), "b", 4)]
    fn counts_changes_of_the_template(
        #[case] given: Option<&str>,
        #[case] image: &str,
        #[case] expected: i64,
    ) {
        let mut object = daemon_set(given, image);
        DaemonSetStrategy.normalize(&mut object);
        DaemonSetStrategy.prepare_update(&mut object, &daemon_set(Some("3"), "a"));
        assert_eq!(template_generation(&object), expected);
    }

    #[rstest]
    #[case(None, 1)]
    #[case(Some("7"), 7)]
    #[case(Some("x"), 1)]
    fn starts_as_given(#[case] given: Option<&str>, #[case] expected: i64) {
        let mut object = daemon_set(given, "a");
        DaemonSetStrategy.normalize(&mut object);
        DaemonSetStrategy.prepare_create(&mut object);
        assert_eq!(template_generation(&object), expected);
    }
}
