//! The quality of service that a pod gets.

use shared_json::Value;

use crate::meta::at;
use crate::types::Quantity;

/// `Guaranteed`, `Burstable` or `BestEffort`, by the containers' cpu and memory.
pub fn qos_class(pod: &Value) -> &'static str {
    // Resources of the whole pod count instead of those of its containers.
    let whole = at(pod, "spec").filter(|spec| spec.get("resources").is_some_and(Value::is_object));
    let containers = ["spec.containers", "spec.initContainers"]
        .iter()
        .filter(|_| whole.is_none())
        .filter_map(|path| at(pod, path).and_then(Value::as_array))
        .flatten()
        .chain(whole);
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let get =
                |part: &str| at(container, &format!("resources.{part}")).and_then(|list| list.get(resource));
            let counts = |amount: &&Value| Quantity::of(amount).nanos() > 0;
            let (request, limit) = (get("requests"), get("limits").filter(counts));
            any |= request.is_some_and(|request| counts(&request)) || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!([{}]), "BestEffort")]
    #[case(json!([{"resources": {"requests": {"cpu": "1"}}}]), "Burstable")]
    #[case(json!([{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]), "Guaranteed")]
    #[case(json!([{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, {}]), "Burstable")]
    #[case(json!([{"resources": {"requests": {"cpu": "-1"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]), "Burstable")]
    #[case(json!([{"resources": {"requests": {"cpu": "0"}}}]), "BestEffort")]
    fn classes(#[case] containers: Value, #[case] expected: &str) {
        assert_eq!(qos_class(&json!({"spec": {"containers": containers}})), expected);
    }
}
