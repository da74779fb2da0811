//! Node pressure: the conditions that a node shows when it runs short of a resource, and the pod that it evicts. Pure.
//!
//! Thresholds, order and texts are those of the kubelet's eviction manager (`pkg/kubelet/eviction`) with its defaults. The
//! available resources of a node are not measured: a test sets them, as an annotation of the Node
//! (`metrics.fake-apiserver/memory.available: 50Mi`,
//! `metrics.fake-apiserver/nodefs.available: 5Gi`), and the usage of a pod as one of the pod (`metrics.fake-apiserver/memory:
//! 300Mi`, of a container `metrics.fake-apiserver/main.memory`).

use std::collections::BTreeMap;
use std::time::Duration;

use machinery::meta::{ObjectMeta as _, at};
use machinery::types::Quantity;
use shared_json::Value;

/// The period of a node's checks of its available resources.
pub(super) const MONITORING_PERIOD: Duration = Duration::from_secs(10);
/// The time that a condition stays after its shortage has passed.
pub(super) const TRANSITION_PERIOD: Duration = Duration::from_secs(300);
/// How long an evicted pod has to end.
const EVICTION_GRACE: Duration = Duration::from_secs(1);
/// The reason of evictions.
pub(super) const REASON: &str = "Evicted";
/// Pods of this priority and above are never evicted.
pub(super) const CRITICAL: i64 = 2_000_000_000;
/// Where figures are.
const ANNOTATION: &str = "metrics.fake-apiserver/";
/// The toleration with which a pod that guarantees nothing may come to a node that is short of memory.
const MEMORY_TAINT: &str = "node.kubernetes.io/memory-pressure";

/// How little may be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threshold {
    Bytes(i128),
    PercentOfCapacity(i128),
}

/// Something that a node may run short of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signal {
    /// The kubelet's name for it.
    key: &'static str,
    /// The resource that is reclaimed.
    pub resource: &'static str,
    /// The node's condition.
    pub condition: &'static str,
    /// Reason and message of the condition, and the events about its coming and going.
    pub shown: (&'static str, &'static str),
    pub events: (&'static str, &'static str),
    threshold: Threshold,
}

/// Memory comes first.
pub(super) static SIGNALS: [Signal; 2] = [
    Signal {
        key: "memory.available",
        resource: "memory",
        condition: "MemoryPressure",
        shown: (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ),
        events: ("NodeHasInsufficientMemory", "NodeHasSufficientMemory"),
        threshold: Threshold::Bytes(100 << 20),
    },
    Signal {
        key: "nodefs.available",
        resource: "ephemeral-storage",
        condition: "DiskPressure",
        shown: ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        events: ("NodeHasDiskPressure", "NodeHasNoDiskPressure"),
        threshold: Threshold::PercentOfCapacity(10),
    },
];

/// A threshold that is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shortage {
    pub signal: &'static Signal,
    /// Bytes.
    threshold: i128,
    available: i128,
}

fn bytes(text: &Value) -> Option<i128> {
    Some(Quantity::parse(text.as_str()?.trim())?.units())
}

/// A number of bytes as quantities of memory are written.
fn binary(bytes: i128) -> String {
    const UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (mut left, mut unit) = (bytes, "");
    for next in UNITS {
        if left == 0 || left % 1024 != 0 {
            break;
        }
        (left, unit) = (left / 1024, next);
    }
    format!("{left}{unit}")
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object
        .metadata()?
        .get("annotations")?
        .get(format!("{ANNOTATION}{key}"))
}

/// The shortages of a node, by its annotations. `capacity`: bytes by resource, computed where a threshold is a share of it.
pub(super) fn shortages(node: &Value, capacity: impl Fn() -> BTreeMap<String, i128>) -> Vec<Shortage> {
    let met = SIGNALS.iter().filter_map(|signal| {
        let available = bytes(annotation(node, signal.key)?)?;
        let threshold = match signal.threshold {
            Threshold::Bytes(bytes) => bytes,
            Threshold::PercentOfCapacity(percent) => {
                capacity().get(signal.resource).copied().unwrap_or_default() * percent / 100
            }
        };
        (available < threshold).then_some(Shortage {
            signal,
            threshold,
            available,
        })
    });
    met.collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(|field| {
        let list = pod.get("spec").and_then(|spec| spec.get(field));
        list.and_then(Value::as_array).into_iter().flatten()
    })
}

fn name(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn request(container: &Value, resource: &str) -> i128 {
    let requests = at(container, "resources.requests");
    requests
        .and_then(|requests| requests.get(resource))
        .and_then(bytes)
        .unwrap_or_default()
}

/// The usage of a container; an annotation for the pod is its first container's.
fn used(pod: &Value, index: usize, container: &Value, resource: &str) -> Option<i128> {
    let own = annotation(pod, &format!("{}.{resource}", name(container)));
    let of_pod = || annotation(pod, resource).filter(|_| index == 0);
    bytes(own.or_else(of_pod)?)
}

/// Use and request of a pod.
fn totals(pod: &Value, resource: &str) -> (i128, i128) {
    let (mut use_, mut requests) = (0, 0);
    for (index, container) in containers(pod).enumerate() {
        use_ += used(pod, index, container, resource).unwrap_or_default();
        requests += request(container, resource);
    }
    (use_, requests)
}

fn priority(pod: &Value) -> i64 {
    at(pod, "spec.priority")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The pod that has to go first: of those that use more than they asked for, or of all if none does, the one of the lowest priority
/// that uses most above its request. Critical ones stay.
pub(super) fn victim<'a, P: AsRef<Value>>(shortage: &Shortage, pods: &'a [P]) -> Option<&'a P> {
    let evictable = pods.iter().filter(|pod| priority(pod.as_ref()) < CRITICAL);
    evictable.min_by_key(|pod| {
        let pod = pod.as_ref();
        let (used, requested) = totals(pod, shortage.signal.resource);
        (used <= requested, priority(pod), requested - used)
    })
}

/// Why a pod has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Eviction {
    pub reason: &'static str,
    /// In the kubelet's words.
    pub message: String,
    /// The message of the condition `DisruptionTarget`.
    pub disruption: String,
    /// How long the pod may take to end, if not as long as it says itself.
    pub grace: Option<Duration>,
    /// The annotations of the event about it.
    pub annotations: BTreeMap<String, String>,
}

/// Why a pod is evicted: the resource, and the containers that use more than they asked for.
pub(super) fn eviction(shortage: &Shortage, pod: &Value) -> Eviction {
    let resource = shortage.signal.resource;
    let (mut names, mut amounts) = (Vec::new(), Vec::new());
    let mut out = format!(
        "The node was low on resource: {resource}. Threshold quantity: {}, available: {}. ",
        binary(shortage.threshold),
        binary(shortage.available)
    );
    for (index, container) in containers(pod).enumerate() {
        let requested = request(container, resource);
        if let Some(used) = used(pod, index, container, resource).filter(|used| *used > requested) {
            names.push(name(container));
            amounts.push(binary(used));
            out.push_str(&format!(
                "Container {} was using {}, request is {}, has larger consumption of {resource}. ",
                name(container),
                binary(used),
                binary(requested)
            ));
        }
    }
    let annotations = [
        ("starved_resource", resource.to_owned()),
        ("offending_containers", names.join(",")),
        ("offending_containers_usage", amounts.join(",")),
    ];
    Eviction {
        reason: REASON,
        disruption: out.clone(),
        message: out,
        grace: Some(EVICTION_GRACE),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
    }
}

/// Why a pod may not come to a node that shows these conditions; none if it may.
pub(super) fn refusal(pod: &Value, conditions: &[&str]) -> Option<String> {
    if conditions.is_empty() || priority(pod) >= CRITICAL {
        return None;
    }
    if conditions == ["MemoryPressure"] {
        let guarantees = at(pod, "status.qosClass").and_then(Value::as_str) != Some("BestEffort");
        let tolerations = at(pod, "spec.tolerations").and_then(Value::as_array);
        let tolerates = tolerations.into_iter().flatten().any(|toleration| {
            let field = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            matches!(field("key"), "" | MEMORY_TAINT) && matches!(field("effect"), "" | "NoSchedule")
        });
        if guarantees || tolerates {
            return None;
        }
    }
    Some(format!("The node had condition: [{}]. ", conditions.join(" ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn node(annotations: Value) -> Value {
        json!({"metadata": {"annotations": annotations}})
    }

    /// A pod that uses so much memory and asked for so much.
    fn pod(name: &str, used: &str, requested: &str, priority: i64) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"name": name, "annotations": {"metrics.fake-apiserver/memory": used}},
            "spec": {"priority": priority, "containers": [{"name": "main", "resources": {"requests": {"memory": requested}}}]},
        }))
    }

    fn memory(available: &str) -> Shortage {
        let node = node(json!({"metrics.fake-apiserver/memory.available": available}));
        *shortages(&node, BTreeMap::new).first().expect("a shortage")
    }

    #[rstest]
    #[case(json!({}), "")]
    #[case(json!({"metrics.fake-apiserver/memory.available": "100Mi"}), "")]
    #[case(json!({"metrics.fake-apiserver/memory.available": "99Mi"}), "MemoryPressure 100Mi")]
    #[case(json!({"metrics.fake-apiserver/memory.available": "much"}), "")]
    #[case(json!({"metrics.fake-apiserver/nodefs.available": "10Gi"}), "")]
    #[case(json!({"metrics.fake-apiserver/nodefs.available": "9Gi"}), "DiskPressure 10Gi")]
    #[case(json!({"metrics.fake-apiserver/nodefs.available": "1k", "metrics.fake-apiserver/memory.available": "0"}),
        "MemoryPressure 100Mi, DiskPressure 10Gi")]
    fn what_a_node_is_short_of(#[case] annotations: Value, #[case] expected: &str) {
        let capacity = BTreeMap::from([("ephemeral-storage".to_owned(), 100 << 30)]);
        let found: Vec<String> = shortages(&node(annotations), || capacity.clone())
            .iter()
            .map(|shortage| format!("{} {}", shortage.signal.condition, binary(shortage.threshold)))
            .collect();
        assert_eq!(found.join(", "), expected);
    }

    #[rstest]
    #[case::most_above_its_request(vec![pod("a", "300Mi", "200Mi", 0), pod("b", "250Mi", "100Mi", 0)], Some("b"))]
    #[case::above_its_request_before_below(vec![pod("a", "900Mi", "1Gi", 0), pod("b", "2Mi", "1Mi", 0)], Some("b"))]
    #[case::above_comes_before_priority(vec![pod("a", "1Mi", "2Mi", 0), pod("b", "2Mi", "1Mi", 100)], Some("b"))]
    #[case::lowest_priority(vec![pod("a", "3Mi", "1Mi", 10), pod("b", "2Mi", "1Mi", 5)], Some("b"))]
    #[case::nearest_to_its_request(vec![pod("a", "1Mi", "9Mi", 0), pod("b", "8Mi", "9Mi", 0)], Some("b"))]
    #[case::first_of_equals(vec![pod("a", "2Mi", "1Mi", 0), pod("b", "2Mi", "1Mi", 0)], Some("a"))]
    #[case::critical_ones_stay(vec![pod("a", "900Mi", "1Mi", 2_000_000_000)], None)]
    #[case::nobody(vec![], None)]
    fn who_goes_first(#[case] pods: Vec<Arc<Value>>, #[case] expected: Option<&str>) {
        assert_eq!(victim(&memory("1Mi"), &pods).map(|pod| pod.name()), expected);
    }

    #[rstest]
    #[case(
        "50Mi",
        pod("a", "300Mi", "100Mi", 0),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 300Mi, request is 100Mi, has larger consumption of memory. "
    )]
    #[case(
        "51200k",
        pod("a", "1", "0", 0),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50000Ki. Container main was using 1, request is 0, has larger consumption of memory. "
    )]
    #[case(
        "0",
        pod("a", "1Mi", "1Mi", 0),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. "
    )]
    fn messages(#[case] available: &str, #[case] pod: Arc<Value>, #[case] expected: &str) {
        let eviction = eviction(&memory(available), &pod);
        assert_eq!(eviction.message, expected);
        let told = |key: &str| eviction.annotations.get(key).map(String::as_str);
        assert_eq!(told("starved_resource"), Some("memory"));
        let offends = expected.contains("Container main was using");
        assert_eq!(
            told("offending_containers"),
            Some(if offends { "main" } else { "" })
        );
        let usage = told("offending_containers_usage").unwrap();
        assert!(usage.is_empty() != offends && expected.contains(usage), "{usage}");
    }

    #[rstest]
    #[case(json!({}), &[], None)]
    #[case(json!({"status": {"qosClass": "BestEffort"}}), &["MemoryPressure"], Some("The node had condition: [MemoryPressure]. "))]
    #[case(json!({"status": {"qosClass": "Burstable"}}), &["MemoryPressure"], None)]
    #[case(json!({"status": {"qosClass": "BestEffort"}, "spec": {"tolerations": [{"operator": "Exists"}]}}), &["MemoryPressure"], None)]
    #[case(json!({"status": {"qosClass": "BestEffort"}, "spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}), &["MemoryPressure"],
        Some("The node had condition: [MemoryPressure]. "))]
    #[case(json!({"status": {"qosClass": "Guaranteed"}}), &["MemoryPressure", "DiskPressure"], Some("The node had condition: [MemoryPressure DiskPressure]. "))]
    #[case(json!({"spec": {"priority": 2_000_001_000}}), &["DiskPressure"], None)]
    fn who_may_come(#[case] pod: Value, #[case] conditions: &[&str], #[case] expected: Option<&str>) {
        assert_eq!(refusal(&pod, conditions).as_deref(), expected);
    }
}
