//! The number of replicas that the usage of the pods asks for. Pure.
//!
//! Rules and texts are those of kube-controller-manager's `replica_calculator.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::asked as asked_of_node;
use machinery::types::Quantity;
use shared_json::Value;

use crate::runtime::{condition, list, text, time};

/// The annotation by which a test sets the usage of a pod: `metrics.fake-apiserver/cpu: 250m`.
pub(super) const ANNOTATION: &str = "metrics.fake-apiserver/";
/// A ratio this near to one changes nothing, unless an autoscaler says otherwise.
const TOLERANCE: f64 = 0.1;
/// How long after its start a pod's use of CPU may be that of the start (5 min).
const CPU_INITIALIZATION_S: i64 = 300;
/// How soon after its start a pod that is not ready has never been (30 s).
const INITIAL_READINESS_S: i64 = 30;
/// The assumed least usage of a pod without figures when the target is to shrink, in percent of its request.
const MISSING_PERCENT: i64 = 100;

/// The target of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// A percentage of the pods' requests.
    Utilization(i64),
    /// An average, in thousandths.
    Average(i64),
}

/// How near to one a ratio must be to change nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    /// Those of an autoscaler.
    pub(super) fn of(autoscaler: &Value) -> Self {
        let said = |direction: &str| {
            let tolerance = at(autoscaler, &format!("spec.behavior.{direction}.tolerance"));
            // Far below what a float holds exactly.
            tolerance
                .filter(|tolerance| !tolerance.is_null())
                .map_or(TOLERANCE, |tolerance| {
                    Quantity::of(tolerance).nanos() as f64 / 1e9
                })
        };
        Self {
            down: said("scaleDown"),
            up: said("scaleUp"),
        }
    }

    pub(super) fn allow(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// The proposed number of replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Proposal {
    pub replicas: i64,
    /// In percent of the requests, where that was asked for.
    pub utilization: Option<i64>,
    /// In thousandths.
    pub average: i64,
}

struct Groups {
    /// By name: use in thousandths.
    used: BTreeMap<String, i64>,
    ready: i64,
    unready: Vec<String>,
    missing: Vec<String>,
}

/// A quantity in thousandths, rounded up.
pub(super) fn thousandths(quantity: Quantity) -> i64 {
    let nanos = quantity.nanos();
    i64::try_from((nanos + 999_999).div_euclid(1_000_000)).unwrap_or(i64::MAX)
}

/// The usage in a pod's annotation, in thousandths. `key`: the annotation's name after its prefix.
fn used(pod: &Value, key: &str) -> Option<i64> {
    let annotations = at(pod, "metadata.annotations")?;
    let said = annotations.get(format!("{ANNOTATION}{key}"))?.as_str()?;
    Quantity::parse(said).map(thousandths)
}

/// Whether any of the pods has an annotation of its usage.
pub(super) fn is_measured(pods: &[Arc<Value>]) -> bool {
    pods.iter()
        .filter_map(|pod| at(pod, "metadata.annotations")?.as_object())
        .any(|annotations| annotations.keys().any(|key| key.starts_with(ANNOTATION)))
}

/// Whether the figures of a pod are too early to count.
fn is_unready(pod: &Value, metric: &str, now: Timestamp) -> bool {
    if metric != "cpu" {
        return false;
    }
    let (Some(ready), Some(started)) = (condition(pod, "Ready"), time(pod, "status.startTime")) else {
        return true;
    };
    let is_false = text(ready, "status") == "False";
    let since = time(ready, "lastTransitionTime").unwrap_or(started);
    let soon_after = |start: Timestamp, seconds: i64, then: Timestamp| {
        then.duration_since(start) < SignedDuration::from_secs(seconds)
    };
    // The figures are of this very moment.
    is_false
        && (soon_after(started, CPU_INITIALIZATION_S, now) || soon_after(started, INITIAL_READINESS_S, since))
}

fn groups(pods: &[Arc<Value>], metric: &str, key: &str, now: Timestamp) -> Groups {
    let mut groups = Groups {
        used: BTreeMap::new(),
        ready: 0,
        unready: Vec::new(),
        missing: Vec::new(),
    };
    for pod in pods {
        if pod.is_terminating() || text(pod, "status.phase") == "Failed" {
            continue;
        }
        let name = pod.name().to_owned();
        let found = used(pod, key);
        if text(pod, "status.phase") == "Pending" {
            groups.unready.push(name.clone());
        } else if found.is_none() {
            groups.missing.push(name.clone());
        } else if is_unready(pod, metric, now) {
            groups.unready.push(name.clone());
        } else {
            groups.ready += 1;
        }
        if let Some(found) = found {
            groups.used.insert(name, found);
        }
    }
    groups
}

/// Whether a pod asks for something as a whole. Only for these it can.
fn asks_as_a_whole(pod: &Value) -> bool {
    let asked = at(pod, "spec.resources.requests").and_then(Value::as_object);
    asked.is_some_and(|asked| {
        asked
            .keys()
            .any(|name| matches!(&**name, "cpu" | "memory") || name.starts_with("hugepages-"))
    })
}

/// The request of each pod, in thousandths: its own, if it asks as a whole, and otherwise that of its containers.
fn requests(pods: &[Arc<Value>], metric: &str) -> Result<BTreeMap<String, i64>, String> {
    let of = |pod: &Value| {
        if asks_as_a_whole(pod) {
            let asked = requests_of_pod(pod, metric);
            asked.ok_or_else(|| format!("missing pod-level request for {metric} in Pod {}", pod.name()))
        } else {
            requests_of_containers(pod, metric)
        }
    };
    let all = pods.iter().map(|pod| Ok((pod.name().to_owned(), of(pod)?)));
    all.collect()
}

fn requests_of_pod(pod: &Value, metric: &str) -> Option<i64> {
    let nanos = asked_of_node(pod, metric)?;
    i64::try_from((nanos + 999_999).div_euclid(1_000_000)).ok()
}

fn requests_of_containers(pod: &Value, metric: &str) -> Result<i64, String> {
    let mut sum = 0_i64;
    let sidecars = list(pod, "spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always");
    for container in list(pod, "spec.containers").iter().chain(sidecars) {
        let Some(request) = at(container, &format!("resources.requests.{metric}")) else {
            return Err(format!(
                "missing request for {metric} in container {} of Pod {}",
                text(container, "name"),
                pod.name()
            ));
        };
        sum = sum.saturating_add(thousandths(Quantity::of(request)));
    }
    Ok(sum)
}

/// The ratio of the usage to its target, the utilization in percent if that is the measure, and the average.
fn ratio(
    used: &BTreeMap<String, i64>,
    requests: Option<&BTreeMap<String, i64>>,
    target: Target,
) -> Result<(f64, Option<i64>, i64), String> {
    let total: i64 = used.values().sum();
    let count = i64::try_from(used.len()).unwrap_or(i64::MAX).max(1);
    let average = total / count;
    match target {
        Target::Average(wanted) => Ok((average as f64 / wanted.max(1) as f64, None, average)),
        Target::Utilization(wanted) => {
            let asked: i64 = used
                .keys()
                .filter_map(|name| requests.and_then(|requests| requests.get(name)))
                .sum();
            if asked == 0 {
                return Err("no metrics returned matched known pods".to_owned());
            }
            let percent = total.saturating_mul(100) / asked;
            Ok((percent as f64 / wanted.max(1) as f64, Some(percent), average))
        }
    }
}

pub(super) fn ceil(value: f64) -> i64 {
    // Sizes of workloads are far below what a float holds exactly.
    value.ceil() as i64
}

/// The message where there are figures, but none of these pods.
pub(super) const NONE_RECEIVED: &str = "did not receive metrics for targeted pods (pods might be unready)";

/// How many replicas the use of `metric` by `pods` asks for, when there are `current`. `key`: the name of their annotation.
///
/// # Errors
/// The real controller's text when the number cannot be computed.
pub(super) fn propose(
    current: i64,
    pods: &[Arc<Value>],
    metric: &str,
    key: &str,
    target: Target,
    within: Tolerances,
    now: Timestamp,
) -> Result<Proposal, String> {
    if pods.iter().all(|pod| used(pod, key).is_none()) {
        return Err(format!(
            "unable to get metrics for resource {metric}: unable to fetch metrics from resource metrics API: the server \
             could not find the requested resource (get pods.metrics.k8s.io)"
        ));
    }
    let groups = groups(pods, metric, key, now);
    let mut counted = groups.used.clone();
    counted.retain(|name, _| !groups.unready.contains(name));
    if counted.is_empty() {
        return Err(NONE_RECEIVED.to_owned());
    }
    let requests = match target {
        Target::Utilization(_) => Some(requests(pods, metric)?),
        Target::Average(_) => None,
    };
    let (first, utilization, average) = ratio(&counted, requests.as_ref(), target)?;
    let proposal = |replicas: i64| Proposal {
        replicas,
        utilization,
        average,
    };
    let count_unready = !groups.unready.is_empty() && first > 1.0;
    if !count_unready && groups.missing.is_empty() {
        return Ok(proposal(if within.allow(first) {
            current
        } else {
            ceil(first * groups.ready as f64)
        }));
    }
    let full = |name: &String| match target {
        Target::Average(wanted) => wanted,
        Target::Utilization(wanted) => {
            let request = requests.as_ref().and_then(|requests| requests.get(name)).copied();
            request.unwrap_or(0).saturating_mul(wanted.max(MISSING_PERCENT)) / 100
        }
    };
    for name in &groups.missing {
        // Whatever they use must not be the reason to do more.
        let taken = if first < 1.0 { full(name) } else { 0 };
        counted.insert(name.clone(), taken);
    }
    if count_unready {
        counted.extend(groups.unready.iter().map(|name| (name.clone(), 0)));
    }
    let (second, _, _) = ratio(&counted, requests.as_ref(), target)?;
    let turned = (first < 1.0 && second > 1.0) || (first > 1.0 && second < 1.0);
    if within.allow(second) || turned {
        return Ok(proposal(current));
    }
    let replicas = ceil(second * counted.len() as f64);
    let against = (second < 1.0 && replicas > current) || (second > 1.0 && replicas < current);
    Ok(proposal(if against { current } else { replicas }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    /// `used/request` in millicores; `-` for no figures; a trailing `!` for a pod that was never ready.
    fn pods(text: &str) -> Vec<Arc<Value>> {
        let pod = |(index, word): (usize, &str)| {
            let (word, ready) = match word.strip_suffix('!') {
                Some(word) => (word, "False"),
                None => (word, "True"),
            };
            let (used, request) = word.split_once('/').unwrap_or((word, ""));
            let mut pod = json!({
                "metadata": {"name": format!("p{index}")},
                "spec": {"containers": [{"name": "c"}]},
                "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                    "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:01Z"}]},
            });
            if used != "-" {
                pod["metadata"]["annotations"] = json!({"metrics.fake-apiserver/cpu": format!("{used}m")});
            }
            if !request.is_empty() {
                pod["spec"]["containers"][0]["resources"] =
                    json!({"requests": {"cpu": format!("{request}m")}});
            }
            Arc::new(pod)
        };
        text.split(' ').enumerate().map(pod).collect()
    }

    // The rows follow the cases of the real one's table: up, down, tolerance, pods that are not ready, without figures.
    #[rstest]
    #[case::up("300/1000 500/1000 700/1000", Target::Utilization(30), 3, Ok(5))]
    #[case::up_average("300 500 700", Target::Average(300), 3, Ok(5))]
    #[case::down(
        "100/1000 300/1000 500/1000 250/1000 250/1000",
        Target::Utilization(50),
        5,
        Ok(3)
    )]
    #[case::just_so("1010/1000 1030/1000 1020/1000", Target::Utilization(100), 3, Ok(3))]
    #[case::unready_damps("300/1000! 500/1000 700/1000", Target::Utilization(30), 3, Ok(4))]
    #[case::unready_stops("400/1000! 500/1000! 700/1000", Target::Utilization(30), 3, Ok(3))]
    #[case::missing_damps_up("-/1000 500/1000 700/1000", Target::Utilization(30), 3, Ok(4))]
    #[case::missing_stops_down("-/1000 100/1000 200/1000 300/1000", Target::Utilization(50), 4, Ok(4))]
    #[case::missing_does_not_turn("-/1000 -/1000 -/1000 1000/1000", Target::Utilization(50), 4, Ok(4))]
    #[case::missing_counts_as_nothing_up("-/1000 -/1000 900/1000", Target::Utilization(30), 3, Ok(3))]
    #[case::missing_counts_as_all_down("-/1000 100/1000 100/1000", Target::Utilization(150), 3, Ok(2))]
    #[case::missing_average_down("- 100 200 300", Target::Average(500), 4, Ok(3))]
    #[case::missing_average_up("- 500 700", Target::Average(300), 3, Ok(4))]
    #[case::exactly_one_and_a_tenth("1100/1000", Target::Utilization(100), 1, Ok(1))]
    #[case::more_than_a_tenth("1110/1000", Target::Utilization(100), 1, Ok(2))]
    #[case::nine_tenths("900/1000 900/1000", Target::Utilization(100), 2, Ok(2))]
    #[case::less_than_nine_tenths("400/1000 400/1000", Target::Utilization(100), 2, Ok(1))]
    #[case::without_figures_and_not_ready("-/1000! 700/1000 700/1000", Target::Utilization(50), 3, Ok(3))]
    #[case::without_figures_and_not_ready_down("-/1000! 100/1000", Target::Utilization(50), 2, Ok(2))]
    #[case::never_ready_says_nothing("900/1000! 100/1000", Target::Utilization(50), 2, Ok(1))]
    #[case::none(
        "-/1000 -/1000",
        Target::Utilization(50),
        2,
        Err(
            "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
    )]
    #[case::no_request(
        "100 100/1000",
        Target::Utilization(50),
        2,
        Err("missing request for cpu in container c of Pod p0")
    )]
    #[case::nobody_is_ready(
        "100/1000! -/1000!",
        Target::Utilization(50),
        2,
        Err("did not receive metrics for targeted pods (pods might be unready)")
    )]
    fn proposals(
        #[case] text: &str,
        #[case] target: Target,
        #[case] current: i64,
        #[case] expected: Result<i64, &str>,
    ) {
        let now = NOW.parse().expect("a time");
        let got = propose(
            current,
            &pods(text),
            "cpu",
            "cpu",
            target,
            Tolerances::of(&json!({})),
            now,
        )
        .map(|proposal| proposal.replicas);
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    /// A pod's request against which its usage is measured, or the error. `$` stands for a container of 100m.
    #[rstest]
    #[case::of_its_containers(json!({"containers": ["$", "$"]}), Ok(200))]
    #[case::and_of_sidecars(json!({"containers": ["$"], "initContainers": [{"name": "s", "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "50m"}}}]}), Ok(150))]
    #[case::not_of_init_containers(json!({"containers": ["$"], "initContainers": [{"name": "i",
        "resources": {"requests": {"cpu": "5"}}}]}), Ok(100))]
    #[case::not_of_overhead(json!({"containers": ["$"], "overhead": {"cpu": "7m"}}), Ok(100))]
    #[case::one_asks_for_nothing(json!({"containers": ["$", {"name": "d"}]}),
        Err("missing request for cpu in container d of Pod p"))]
    #[case::a_sidecar_asks_for_nothing(json!({"containers": ["$"], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}),
        Err("missing request for cpu in container s of Pod p"))]
    #[case::as_a_whole(json!({"resources": {"requests": {"cpu": "500m"}}, "containers": ["$"]}), Ok(500))]
    #[case::as_a_whole_alone(json!({"resources": {"requests": {"cpu": "500m"}}, "containers": [{"name": "c"}]}), Ok(500))]
    #[case::as_a_whole_with_overhead(
        json!({"resources": {"requests": {"cpu": "500m"}}, "containers": ["$"], "overhead": {"cpu": "7m"}}), Ok(507))]
    #[case::something_else_as_a_whole(json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": ["$", "$"]}), Ok(200))]
    #[case::something_else_as_a_whole_and_one_asks_for_nothing(
        json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": ["$", {"name": "d"}]}), Ok(100))]
    #[case::something_else_as_a_whole_and_init_containers(
        json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": ["$"], "initContainers": [{"name": "i",
            "resources": {"requests": {"cpu": "5"}}}]}), Ok(5000))]
    #[case::nobody_asks(json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": [{"name": "d"}]}),
        Err("missing pod-level request for cpu in Pod p"))]
    #[case::limits_as_a_whole(json!({"resources": {"limits": {"cpu": "1"}}, "containers": ["$"]}), Ok(100))]
    #[case::nothing_as_a_whole(json!({"resources": {"requests": {}}, "containers": ["$"]}), Ok(100))]
    #[case::huge_pages_as_a_whole(
        json!({"resources": {"requests": {"hugepages-2Mi": "4Mi"}}, "containers": ["$", {"name": "d"}]}), Ok(100))]
    fn what_pods_ask_for(#[case] mut spec: Value, #[case] expected: Result<i64, &str>) {
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            if *container == "$" {
                *container = json!({"name": "c", "resources": {"requests": {"cpu": "100m"}}});
            }
        }
        let pod = Arc::new(json!({"metadata": {"name": "p"}, "spec": spec}));
        let found = requests(&[pod], "cpu").map(|all| all["p"]);
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}
