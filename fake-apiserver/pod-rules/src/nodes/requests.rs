//! The requests of pods to a node: pure.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::fields::{Fields as _, path};
use crate::quantity::Quantity;

/// Amounts by resource, in parts of 10^-9.
pub type Amounts = BTreeMap<String, i128>;

/// One whole, and one thousandth.
const WHOLE: i128 = 1_000_000_000;
const THOUSANDTH: i128 = 1_000_000;

/// The amounts of an object such as `requests`.
pub fn amounts(value: Option<&Value>) -> Amounts {
    let entries = value.and_then(Value::as_object);
    entries
        .into_iter()
        .flatten()
        .map(|(name, amount)| (name.to_string(), Quantity::of(amount).nanos()))
        .collect()
}

/// Adds amounts to a sum.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

fn at_least(sum: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let present = sum.entry(name.clone()).or_default();
        *present = (*present).max(*amount);
    }
}

/// Which of a pod's requests count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// The maximum of requested, allocated and actual resources: a resize that is under way counts both ways.
    Most,
    /// Allocated and actual resources: a resize that its node has not taken up does not count.
    Given,
    /// Requested resources.
    Asked,
}

/// A container's requests, or by `count` those in its status, if it has one and can be resized.
fn of_container(pod: &Value, container: &Value, statuses: &str, count: Count) -> Amounts {
    let asked = path(container, "/resources/requests");
    let shown = (count != Count::Asked)
        .then(|| path(pod, statuses).and_then(Value::as_array))
        .flatten();
    let status = shown.and_then(|all| {
        all.iter()
            .find(|status| status.text("name") == container.text("name"))
    });
    let Some(status) = status.filter(|status| status.get("resources").is_some()) else {
        return amounts(asked);
    };
    let given = [
        path(status, "/resources/requests"),
        status.get("allocatedResources"),
    ];
    if count == Count::Most && given.iter().all(|one| *one == asked) {
        return amounts(asked);
    }
    let mut most = amounts(asked.filter(|_| count == Count::Most));
    for one in given {
        at_least(&mut most, &amounts(one));
    }
    most
}

/// A pod's requests: its containers and sidecars together, or the largest init container if that is more, and overhead.
pub fn requests(pod: &Value, count: Count) -> Amounts {
    let infeasible = || {
        let pending = pod
            .map("status")
            .list("conditions")
            .iter()
            .find(|condition| condition.text("type") == "PodResizePending")?;
        Some(pending.get("reason")? == "Infeasible")
    };
    let count = match count {
        Count::Most if infeasible() == Some(true) => Count::Given,
        other => other,
    };
    let mut total = Amounts::new();
    for container in pod.map("spec").list("containers") {
        add(
            &mut total,
            &of_container(pod, container, "/status/containerStatuses", count),
        );
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in pod.map("spec").list("initContainers") {
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            let own = of_container(pod, container, "/status/initContainerStatuses", count);
            add(&mut sidecars, &own);
            at_least(&mut peak, &sidecars);
        } else {
            let mut now = amounts(path(container, "/resources/requests"));
            add(&mut now, &sidecars);
            at_least(&mut peak, &now);
        }
    }
    add(&mut total, &sidecars);
    at_least(&mut total, &peak);
    at_least(&mut total, &amounts(path(pod, "/spec/resources/requests")));
    add(&mut total, &amounts(path(pod, "/spec/overhead")));
    total
}

/// How much of a resource a pod asks for, in parts of 10^-9; none if it does not ask for it.
pub fn asked(pod: &Value, resource: &str) -> Option<i128> {
    requests(pod, Count::Asked).get(resource).copied()
}

/// Processors and memory that a pod is taken to need where nodes are compared: each container that does not say counts for a
/// tenth of a core, or 200 MiB (the real one's).
pub fn scored(pod: &Value) -> [i128; 2] {
    let leasts = [("cpu", WHOLE / 10), ("memory", 200 * 1024 * 1024 * WHOLE)];
    leasts.map(|(name, least)| {
        let of = |container: &Value| {
            let asked = path(container, "/resources/requests").and_then(|asked| asked.get(name));
            asked.map_or(least, |amount| Quantity::of(amount).nanos())
        };
        let plain: i128 = pod.map("spec").list("containers").iter().map(of).sum();
        let (mut sidecars, mut peak) = (0, 0);
        for container in pod.map("spec").list("initContainers") {
            if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
                sidecars += of(container);
                peak = peak.max(sidecars);
            } else {
                peak = peak.max(sidecars + of(container));
            }
        }
        let whole = path(pod, "/spec/resources/requests").and_then(|asked| asked.get(name));
        let over = path(pod, "/spec/overhead").and_then(|over| over.get(name));
        let amount = |value: Option<&Value>| value.map(|value| Quantity::of(value).nanos());
        amount(whole).unwrap_or((plain + sidecars).max(peak)) + amount(over).unwrap_or_default()
    })
}

/// Something that a node has too little of for a pod.
#[derive(Debug, PartialEq, Eq)]
pub struct Insufficient {
    /// The lacking resource.
    pub resource: String,
    /// How much more is wanted: thousandths of processors, whole numbers of everything else.
    pub missing: i128,
    /// The reason by which a pod is not taken (`OutOfcpu`).
    pub reason: String,
    /// The shortage, in the kubelet's words.
    pub message: String,
}

/// An amount as nodes compare it, rounded up: thousandths of processors, whole numbers of everything else.
pub fn in_units(resource: &str, amount: i128) -> i128 {
    let part = if resource == "cpu" { THOUSANDTH } else { WHOLE };
    amount.div_euclid(part) + i128::from(amount.rem_euclid(part) != 0)
}

/// The resources that a node with `others` of these requests on it lacks, in the order of the kubelet's checks. A resource that
/// the node does not have at all does not count, unless every node has it.
pub fn insufficient(asked: &Amounts, allocatable: &Amounts, others: &[Amounts]) -> Vec<Insufficient> {
    let lacking = |name: &str, asked: i128, used: i128, capacity: i128| {
        let message = format!(
            "Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {capacity}"
        );
        Some(Insufficient {
            resource: name.to_owned(),
            missing: asked + used - capacity,
            reason: format!("OutOf{name}"),
            message,
        })
    };
    let count = i128::try_from(others.len()).unwrap_or(i128::MAX);
    let room = allocatable.get("pods").map_or(i128::MAX, |room| room / WHOLE);
    let places = (count >= room).then(|| lacking("pods", 1, count, room)).flatten();
    let plain = ["cpu", "memory", "ephemeral-storage"];
    let more = asked
        .keys()
        .map(String::as_str)
        .filter(|name| !plain.contains(name) && allocatable.contains_key(*name));
    let others = plain.into_iter().chain(more).filter_map(|name| {
        let up = |amount: i128| in_units(name, amount);
        let asked = up(asked.get(name).copied().unwrap_or_default());
        let capacity = up(allocatable.get(name).copied().unwrap_or_default());
        let used = others
            .iter()
            .map(|other| up(other.get(name).copied().unwrap_or_default()))
            .sum();
        if asked == 0 || asked + used <= capacity {
            return None;
        }
        lacking(name, asked, used, capacity)
    });
    places.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn cpu(pod: &Value, count: Count) -> i128 {
        requests(pod, count).get("cpu").copied().unwrap_or_default() / THOUSANDTH
    }

    #[rstest]
    // asked, given, running with, reason of a pending resize; most, given, asked
    #[case("200m", None, None, "", [200, 200, 200])]
    #[case("200m", Some("100m"), Some("100m"), "", [200, 100, 200])]
    #[case("100m", Some("100m"), Some("200m"), "", [200, 200, 100])]
    #[case("100m", Some("300m"), Some("200m"), "Deferred", [300, 300, 100])]
    #[case("900m", Some("300m"), Some("200m"), "Deferred", [900, 300, 900])]
    #[case("900m", Some("300m"), Some("200m"), "Infeasible", [300, 300, 900])]
    fn of_a_pod_that_is_resized(
        #[case] asked: &str,
        #[case] given: Option<&str>,
        #[case] running: Option<&str>,
        #[case] pending: &str,
        #[case] expected: [i128; 3],
    ) {
        let mut pod = json!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": asked}}}]},
            "status": {"conditions": []},
        });
        if let (Some(given), Some(running)) = (given, running) {
            pod["status"]["containerStatuses"] = json!([
                {"name": "a", "allocatedResources": {"cpu": given}, "resources": {"requests": {"cpu": running}}},
            ]);
        }
        if !pending.is_empty() {
            pod["status"]["conditions"] =
                json!([{"type": "PodResizePending", "status": "True", "reason": pending}]);
        }
        assert_eq!(
            [Count::Most, Count::Given, Count::Asked].map(|count| cpu(&pod, count)),
            expected
        );
    }

    #[rstest]
    #[case(json!({"containers": [["1", null]]}), 1000)]
    #[case(json!({"containers": [["1", null], ["500m", null]]}), 1500)]
    #[case(json!({"containers": [["1", null]], "init": [["2", null]]}), 2000)]
    #[case(json!({"containers": [["1", null]], "init": [["1", "Always"], ["1", null]]}), 2000)]
    #[case(json!({"containers": [["1", null]], "init": [["1", "Always"], ["3", null]]}), 4000)]
    #[case(json!({"containers": [["1", null]], "overhead": "100m"}), 1100)]
    #[case(json!({"containers": [["1", null]], "pod": "4"}), 4000)]
    fn of_all_containers(#[case] short: Value, #[case] expected: i128) {
        let containers = |list: &Value| -> Vec<Value> {
            let all = list.as_array().cloned().unwrap_or_default();
            let one = |entry: &Value| json!({"restartPolicy": entry[1], "resources": {"requests": {"cpu": entry[0]}}});
            all.iter().map(one).collect()
        };
        let mut spec = json!({"containers": containers(&short["containers"]), "initContainers": containers(&short["init"])});
        if short["overhead"].is_string() {
            spec["overhead"] = json!({"cpu": short["overhead"]});
        }
        if short["pod"].is_string() {
            spec["resources"] = json!({"requests": {"cpu": short["pod"]}});
        }
        assert_eq!(cpu(&json!({"spec": spec}), Count::Most), expected);
    }

    #[rstest]
    #[case(json!({"cpu": "1"}), &[], None)]
    #[case(json!({"cpu": "2"}), &["1"], Some("OutOfcpu cpu, requested: 2000, used: 1000, capacity: 2000"))]
    #[case(json!({"cpu": "1"}), &["1"], None)]
    #[case(json!({"cpu": "3"}), &[], Some("OutOfcpu cpu, requested: 3000, used: 0, capacity: 2000"))]
    #[case(json!({"memory": "2Gi"}), &[], Some("OutOfmemory memory, requested: 2147483648, used: 0, capacity: 1073741824"))]
    #[case(json!({"cpu": "9", "memory": "2Gi"}), &[], Some("OutOfcpu cpu, requested: 9000, used: 0, capacity: 2000"))]
    #[case(json!({"cpu": "1m"}), &["1", "0", "0"], Some("OutOfpods pods, requested: 1, used: 3, capacity: 3"))]
    #[case(json!({"ephemeral-storage": "1"}), &[], Some("OutOfephemeral-storage ephemeral-storage, requested: 1, used: 0, capacity: 0"))]
    #[case(json!({"example.com/gpu": "2"}), &[], Some("OutOfexample.com/gpu example.com/gpu, requested: 2, used: 0, capacity: 1"))]
    #[case(json!({"example.com/unknown": "2"}), &[], None)]
    #[case(json!({}), &["2"], None)]
    fn what_is_lacking(#[case] asked: Value, #[case] others: &[&str], #[case] expected: Option<&str>) {
        let allocatable = json!({"cpu": "2", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"});
        let others: Vec<Amounts> = others
            .iter()
            .map(|cpu| amounts(Some(&json!({"cpu": cpu}))))
            .collect();
        let found = insufficient(&amounts(Some(&asked)), &amounts(Some(&allocatable)), &others);
        let found = found.into_iter().next().map(|found| {
            format!(
                "{} {}",
                found.reason,
                found
                    .message
                    .trim_start_matches("Node didn't have enough resource: ")
            )
        });
        assert_eq!(found.as_deref(), expected);
    }
}
