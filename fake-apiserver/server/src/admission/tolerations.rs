//! DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or cannot be reached.

use std::sync::LazyLock;

use shared_json::{Value, json};

use super::Attributes;

/// The tolerations, by key. All pods have them in the same memory.
static TOLERATIONS: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
        .map(|key| {
            (
                key,
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            )
        })
        .into()
});

pub(super) fn mutate(attributes: &mut Attributes) {
    let Some(spec) = attributes
        .object
        .as_mut()
        .and_then(|pod| pod.get_mut("spec"))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    for (key, usual) in TOLERATIONS.iter() {
        let tolerated = list.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("key") == *key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            list.push(usual.clone());
        }
    }
}
