//! HorizontalPodAutoscalers of `autoscaling/v2`.

use super::builtin::{object, set};
use shared_json::{Array, Map, Value, json};

pub(super) fn fill(kind: &str, map: &mut Map) {
    if kind != "v2.HorizontalPodAutoscaler" {
        return;
    }
    let Some(spec) = object(map, "spec") else { return };
    if spec
        .get("metrics")
        .and_then(Value::as_array)
        .is_none_or(Array::is_empty)
    {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    if let Some(behavior) = object(spec, "behavior") {
        let up = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        set(behavior, &["scaleUp", "policies"], &up);
        set(behavior, &["scaleUp", "selectPolicy"], &json!("Max"));
        set(behavior, &["scaleUp", "stabilizationWindowSeconds"], &json!(0));
        set(
            behavior,
            &["scaleDown", "policies"],
            &json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
        set(behavior, &["scaleDown", "selectPolicy"], &json!("Max"));
    }
}
