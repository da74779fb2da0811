//! Tells a resize from other updates of a pod.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The resources that containers get more or less of in place.
const RESIZED: [&str; 2] = ["cpu", "memory"];

/// Whether nothing but the CPU and memory of containers changes, and no container restarts for that.
pub(super) fn is_resize(old: &Value, new: &Value) -> bool {
    let specs = [old, new].map(|pod| pod.get("spec").unwrap_or(&Value::Null));
    let pairs: Vec<(&Value, &Value)> = containers(specs[0]).iter().zip(containers(specs[1])).collect();
    specs.map(without_resources)[0] == specs.map(without_resources)[1]
        && ![old, new].into_iter().any(is_static)
        && qos(old) == qos(new)
        && containers(specs[0]).len() == containers(specs[1]).len()
        && pairs.into_iter().all(|(old, new)| changes_in_place(old, new))
}

fn containers(spec: &Value) -> &[Value] {
    let list = spec.get("containers").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The spec without the resources of its containers.
fn without_resources(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if let Some(container) = container.as_object_mut() {
            container.remove("resources");
        }
    }
    spec
}

/// Whether the kubelet has the pod from elsewhere than the API server.
fn is_static(pod: &Value) -> bool {
    let source = pod.pointer("/metadata/annotations/kubernetes.io~1config.source");
    source
        .and_then(Value::as_str)
        .is_some_and(|source| source != "api")
}

fn amounts<'a>(container: &'a Value, list: &str) -> Option<&'a Map<String, Value>> {
    container.get("resources")?.get(list)?.as_object()
}

/// Whether only CPU and memory change, and without a restart.
fn changes_in_place(old: &Value, new: &Value) -> bool {
    let mut changed = BTreeSet::new();
    for list in ["requests", "limits"] {
        let sides = [old, new].map(|container| amounts(container, list));
        let names = sides.iter().flatten().flat_map(|amounts| amounts.keys());
        let at =
            |side: Option<&Map<String, Value>>, name: &str| side.and_then(|side| side.get(name).cloned());
        changed.extend(names.filter(|name| at(sides[0], name) != at(sides[1], name)));
    }
    let policies = new.get("resizePolicy").and_then(Value::as_array);
    let restarts = |resource: &str| {
        policies.into_iter().flatten().any(|policy| {
            let text = |field: &str| policy.get(field).and_then(Value::as_str).unwrap_or_default();
            text("resourceName") == resource && !matches!(text("restartPolicy"), "" | "NotRequired")
        })
    };
    changed
        .into_iter()
        .all(|resource| RESIZED.contains(&resource.as_str()) && !restarts(resource))
}

/// The class of a pod by its requests and limits of CPU and memory.
#[derive(Debug, PartialEq, Eq)]
enum Qos {
    Guaranteed,
    Burstable,
    BestEffort,
}

fn qos(pod: &Value) -> Qos {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let inits = spec.get("initContainers").and_then(Value::as_array);
    let all: Vec<&Value> = containers(spec)
        .iter()
        .chain(inits.into_iter().flatten())
        .collect();
    let amount = |container: &Value, list: &str, resource: &str| {
        let amounts = amounts(container, list);
        amounts.and_then(|amounts| amounts.get(resource).cloned())
    };
    let has_any = |container: &&Value| {
        RESIZED.iter().any(|resource| {
            amount(container, "requests", resource).is_some()
                || amount(container, "limits", resource).is_some()
        })
    };
    let is_guaranteed = |container: &&Value| {
        RESIZED.iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            limit.is_some() && limit == amount(container, "requests", resource).or_else(|| limit.clone())
        })
    };
    if !all.iter().any(has_any) {
        Qos::BestEffort
    } else if all.iter().all(is_guaranteed) {
        Qos::Guaranteed
    } else {
        Qos::Burstable
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn pod(container: Value) -> Value {
        json!({ "metadata": {}, "spec": { "containers": [container] } })
    }

    fn sized(cpu: &str) -> Value {
        json!({ "name": "main", "resources": { "requests": { "cpu": cpu } } })
    }

    #[rstest]
    #[case::more_cpu(sized("20m"), sized("30m"), true)]
    #[case::of_another_container(sized("20m"), json!({ "name": "other", "resources": { "requests": { "cpu": "30m" } } }), false)]
    #[case::with_an_image(sized("20m"), json!({ "name": "main", "image": "x", "resources": { "requests": { "cpu": "30m" } } }), false)]
    #[case::another_class(sized("20m"), json!({ "name": "main" }), false)]
    #[case::a_limit_of_memory(sized("20m"), json!({ "name": "main", "resources": { "requests": { "cpu": "20m" }, "limits": { "memory": "1Gi" } } }), true)]
    #[case::storage(sized("20m"), json!({ "name": "main", "resources": { "requests": { "cpu": "20m", "ephemeral-storage": "1Gi" } } }), false)]
    fn changes(#[case] old: Value, #[case] new: Value, #[case] want: bool) {
        assert_eq!(is_resize(&pod(old), &pod(new)), want);
    }

    #[rstest]
    #[case("NotRequired", true)]
    #[case("", true)]
    #[case("RestartContainer", false)]
    fn restarts(#[case] policy: &str, #[case] want: bool) {
        let container = |cpu: &str| {
            let policy = json!([{ "resourceName": "cpu", "restartPolicy": policy }]);
            json!({ "name": "main", "resizePolicy": policy, "resources": { "requests": { "cpu": cpu } } })
        };
        assert_eq!(is_resize(&pod(container("1")), &pod(container("2"))), want);
    }

    #[test]
    fn a_static_pod_is_not_resized() {
        let is_static = |container| {
            let mut pod = pod(container);
            pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.source": "file" });
            pod
        };
        assert!(!is_resize(&is_static(sized("1")), &is_static(sized("2"))));
    }
}
