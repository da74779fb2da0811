//! A container's control group: the few files of it that tell of the container's limits. They are views of the pod's object, and are made
//! when they are read.

use machinery::meta::at;
use machinery::types::Quantity;
use shared_json::Value;

/// Where a container finds its own.
pub(super) const FOLDER: &str = "/sys/fs/cgroup";
/// The files.
pub(super) const NAMES: [&str; 4] = ["cgroup.controllers", "cpu.max", "cpu.weight", "memory.max"];

/// The period of a limit of processors, in microseconds.
const PERIOD_US: i128 = 100_000;
/// The least part of a period that a limit may be.
const QUOTA_US_MIN: i128 = 1_000;
/// The least and the largest number of shares that the kubelet gives a container.
const SHARES: (i128, i128) = (2, 262_144);
const NANOS: i128 = 1_000_000_000;

/// The content of a file of a container.
pub(super) fn content(pod: &Value, container: &str, name: &str) -> Option<String> {
    let limit = |resource: &str| {
        let own = resources(pod, container).and_then(|own| amount(own, "limits", resource));
        own.or_else(|| amount(at(pod, "spec.resources")?, "limits", resource))
    };
    let request = |resource: &str| amount(resources(pod, container)?, "requests", resource);
    let text = match name {
        "cgroup.controllers" => "cpuset cpu io memory hugetlb pids rdma misc".to_owned(),
        "cpu.max" => match limit("cpu") {
            None => format!("max {PERIOD_US}"),
            Some(nanos) => {
                let millis = in_millis(nanos);
                let quota = (millis * PERIOD_US / 1000).max(QUOTA_US_MIN);
                format!("{quota} {PERIOD_US}")
            }
        },
        "cpu.weight" => weight(request("cpu").or_else(|| limit("cpu")).unwrap_or_default()).to_string(),
        "memory.max" => limit("memory").map_or_else(|| "max".to_owned(), |nanos| (nanos / NANOS).to_string()),
        _ => return None,
    };
    Some(format!("{text}\n"))
}

/// The resources that a container runs with: its status has them once the kubelet has reported it, until then its spec.
fn resources<'p>(pod: &'p Value, container: &str) -> Option<&'p Value> {
    let named = |list: &str| {
        let all = at(pod, list).and_then(Value::as_array)?;
        let found = all
            .iter()
            .find(|one| one.get("name").and_then(Value::as_str) == Some(container));
        found?.get("resources")
    };
    let lists = [
        "status.containerStatuses",
        "status.initContainerStatuses",
        "spec.containers",
        "spec.initContainers",
    ];
    lists.into_iter().find_map(named)
}

/// An amount of a list, which counts if it is not zero.
fn amount(resources: &Value, list: &str, resource: &str) -> Option<i128> {
    let nanos = Quantity::of(resources.get(list)?.get(resource)?).nanos();
    (nanos != 0).then_some(nanos)
}

fn in_millis(nanos: i128) -> i128 {
    (nanos + NANOS / 1000 - 1) / (NANOS / 1000)
}

/// The weight of a container at the processors: its shares, of the older control groups, on the scale from 1 to 10,000.
fn weight(nanos: i128) -> i128 {
    let shares = (in_millis(nanos) * 1024 / 1000).clamp(SHARES.0, SHARES.1);
    1 + (shares - SHARES.0) * 9_999 / (SHARES.1 - SHARES.0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), "max 100000", "1", "max")]
    #[case(json!({"limits": {"cpu": "500m", "memory": "64Mi"}}), "50000 100000", "20", "67108864")]
    #[case(json!({"limits": {"cpu": "5m"}, "requests": {"cpu": "1"}}), "1000 100000", "39", "max")]
    fn limits(#[case] resources: Value, #[case] cpu: &str, #[case] weight: &str, #[case] memory: &str) {
        let pod = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
        let expected = [("cpu.max", cpu), ("cpu.weight", weight), ("memory.max", memory)];
        for (name, text) in expected {
            assert_eq!(content(&pod, "c", name), Some(format!("{text}\n")), "{name}");
        }
        assert_eq!(content(&pod, "c", "cpu.shares"), None);
    }

    #[test]
    fn what_a_container_has_counts_until_a_resize_is_done() {
        let mut pod = json!({
            "spec": {"resources": {"limits": {"memory": "1Gi"}}, "containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]},
            "status": {"containerStatuses": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
        });
        assert_eq!(content(&pod, "c", "cpu.max").as_deref(), Some("100000 100000\n"));
        assert_eq!(content(&pod, "c", "memory.max").as_deref(), Some("1073741824\n"));
        pod = json!({"spec": pod.get("spec")});
        assert_eq!(content(&pod, "c", "cpu.max").as_deref(), Some("200000 100000\n"));
    }
}
