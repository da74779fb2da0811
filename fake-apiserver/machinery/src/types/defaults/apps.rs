//! Deployments, DaemonSets, StatefulSets.

use super::builtin::{object, set, text};
use shared_json::{Map, Value, json};

pub(super) fn fill(kind: &str, map: &mut Map) {
    let strategy = match kind {
        "v1.Deployment" => "strategy",
        "v1.DaemonSet" | "v1.StatefulSet" => "updateStrategy",
        _ => return,
    };
    if kind == "v1.StatefulSet" {
        set(map, &["spec", strategy], &json!({}));
    }
    let Some(spec) = object(map, "spec") else { return };
    if let Some(strategy) = object(spec, strategy) {
        let is_said = !text(strategy, "type").is_empty();
        if kind == "v1.StatefulSet" && !is_said {
            strategy.insert("type".to_owned(), json!("RollingUpdate"));
        }
        // A StatefulSet that says the type and nothing else is left as it is.
        if text(strategy, "type") == "RollingUpdate" && !(kind == "v1.StatefulSet" && is_said) {
            set(strategy, &["rollingUpdate"], &json!({}));
        }
    }
    if kind == "v1.StatefulSet" {
        let claims = spec
            .get_mut("volumeClaimTemplates")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for claim in claims.filter_map(Value::as_object_mut) {
            set(claim, &["apiVersion"], &json!("v1"));
            set(claim, &["kind"], &json!("PersistentVolumeClaim"));
        }
    }
}
