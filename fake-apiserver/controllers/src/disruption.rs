//! The status of disruption budgets: the number of allowed disruptions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::selector::matches_selector;
use shared_json::{Value, json};

use super::runtime::{
    Cache, Controller, Cx, Key, Next, Res, condition, controller_of, is_not_found, list, number, text, time,
    until,
};
use super::workloads::pod_control::refusal;
use super::workloads::pods::scaled;
use crate::runtime::{is_over, is_ready};

/// How long an eviction that was allowed is waited for (the real one's).
const DISRUPTION_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a pod may be about to be disrupted without going (the real one's).
const STALE_TIMEOUT: Duration = Duration::from_secs(120);
/// The prefix of keys of pods that may stay although their disruption has begun; no budget has such a name.
const STALE: &str = "stale/";
/// The prefix of keys of pods with several budgets.
const MANY: &str = "many/";

/// The controller. Its keys are budgets, and pods behind a prefix.
pub(super) struct Disruption;

/// Evictions that were allowed, of pods that do not go yet.
#[derive(Debug, Default)]
struct Evictions {
    /// Those that still count, by the pods' names.
    pending: shared_json::Map,
    /// When the first of them counts no more.
    next: Option<Timestamp>,
    /// Pods that were expected to go and have not.
    overdue: Vec<Arc<Value>>,
}

/// The sum of the scales of the workloads that control some pods.
#[derive(Debug, Default, PartialEq)]
struct Scales {
    /// How many pods there should be.
    total: i64,
    /// Whether some pods have no controller.
    unmanaged: bool,
}

/// The size of a pod's controller, and its uid; or why it is unknown.
async fn scale_of(cx: &Cx<'_>, pod: &Value, owner: &Value) -> Result<(String, i64), String> {
    let namespace = pod.namespace();
    let (kind, version, name) = (
        text(owner, "kind"),
        text(owner, "apiVersion"),
        text(owner, "name"),
    );
    let known = match (kind, version.split('/').next().unwrap_or_default()) {
        ("ReplicaSet", "apps") => Some(Res::ReplicaSets),
        ("StatefulSet", "apps") => Some(Res::StatefulSets),
        ("Deployment", "apps") => Some(Res::Deployments),
        _ => None,
    };
    if let Some(object) = known.and_then(|res| cx.cache.get(res, namespace, name)) {
        let whole = controller_of(object)
            .filter(|_| known == Some(Res::ReplicaSets))
            .and_then(|owner| cx.cache.get(Res::Deployments, namespace, text(owner, "name")));
        let object = whole.unwrap_or(object);
        return Ok((object.uid().to_owned(), number(object, "spec.replicas", 1)));
    }
    let no_kind = || format!("no matches for kind \"{kind}\" in version \"{version}\"");
    let root = if version.contains('/') { "apis" } else { "api" };
    let resources = cx
        .read(&format!("/{root}/{version}"))
        .await
        .map_err(|_| no_kind())?;
    let plural = list(&resources, "resources")
        .iter()
        .find(|found| text(found, "kind") == kind && !text(found, "name").contains('/'))
        .map(|found| text(found, "name").to_owned())
        .ok_or_else(no_kind)?;
    let scale = format!("{plural}/scale");
    if !list(&resources, "resources")
        .iter()
        .any(|found| text(found, "name") == scale)
    {
        let group = version
            .split_once('/')
            .map(|(group, _)| format!(".{group}"))
            .unwrap_or_default();
        return Err(format!(
            "{plural}{group} does not implement the scale subresource"
        ));
    }
    let path = format!("/{root}/{version}/namespaces/{namespace}/{plural}/{name}/scale");
    match cx.read(&path).await {
        Ok(scale) if scale.uid() == text(owner, "uid") => {
            Ok((scale.uid().to_owned(), number(&scale, "spec.replicas", 0)))
        }
        Err(error) if !is_not_found(&error) => Err(refusal(&error)),
        _ => Err(format!("found no controllers for pod \"{}\"", pod.name())),
    }
}

/// The sum of the scales of the pods' controllers, each counted once.
async fn scales(cx: &Cx<'_>, pods: &[Arc<Value>]) -> Result<Scales, String> {
    let mut seen: Vec<String> = Vec::new();
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    let mut out = Scales::default();
    for pod in pods {
        let Some(owner) = controller_of(pod) else {
            out.unmanaged = true;
            continue;
        };
        let uid = text(owner, "uid").to_owned();
        if seen.contains(&uid) {
            continue;
        }
        seen.push(uid);
        let (uid, size) = scale_of(cx, pod, owner).await?;
        found.insert(uid, size);
    }
    out.total = found.values().sum();
    Ok(out)
}

/// Whether the budget counts the replicas of controllers instead of the existing pods.
fn counts_controllers(budget: &Value) -> bool {
    at(budget, "spec.maxUnavailable").is_some()
        || at(budget, "spec.minAvailable").is_some_and(Value::is_string)
}

/// A selector as Go prints it.
pub(super) fn printed(selector: Option<&Value>) -> String {
    let labels = selector
        .and_then(|selector| selector.get("matchLabels"))
        .and_then(Value::as_object);
    let mut labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort();
    let expressions = selector
        .and_then(|selector| selector.get("matchExpressions"))
        .and_then(Value::as_array);
    let expressions: Vec<String> = expressions
        .into_iter()
        .flatten()
        .map(|one| {
            let values: Vec<&str> = list(one, "values").iter().filter_map(Value::as_str).collect();
            let (key, operator) = (text(one, "key"), text(one, "operator"));
            format!(
                "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.concat()
    )
}

/// The status of a budget whose pods cannot be counted: nothing may be evicted.
fn failed_status(budget: &Value, why: &str, stamp: &str) -> Value {
    let mut status = budget.get("status").cloned().unwrap_or_else(|| json!({}));
    let old = condition(budget, "DisruptionAllowed");
    let since = old
        .filter(|old| text(old, "status") == "False")
        .map_or(stamp, |old| text(old, "lastTransitionTime"));
    let mut told = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why,
        "lastTransitionTime": since,
    });
    if let Some(generation) = status.get("observedGeneration") {
        told["observedGeneration"] = generation.clone();
    }
    status["conditions"] = json!([told]);
    for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        if status.get(field).is_none() {
            status[field] = json!(0);
        }
    }
    status["disruptionsAllowed"] = json!(0);
    status
}

/// The evictions of a budget's pods.
fn evictions(budget: &Value, pods: &[Arc<Value>], now: Timestamp) -> Evictions {
    let mut out = Evictions::default();
    let Some(allowed) = at(budget, "status.disruptedPods").and_then(Value::as_object) else {
        return out;
    };
    for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
        let Some(since) = allowed.get(pod.name()) else {
            continue;
        };
        let end = since
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
            .and_then(|since| since.saturating_add(DISRUPTION_TIMEOUT).ok())
            .filter(|end| *end > now);
        match end {
            Some(end) => {
                out.pending.insert(pod.name().to_owned(), since.clone());
                out.next = Some(out.next.map_or(end, |next| next.min(end)));
            }
            None => out.overdue.push(Arc::clone(pod)),
        }
    }
    out
}

/// Whether a pod says that it is about to be disrupted, and does not go yet.
fn is_about_to_go(pod: &Value) -> bool {
    condition(pod, "DisruptionTarget").is_some_and(|told| {
        // A node takes its time to end a pod, and says so before.
        text(told, "status") == "True" && text(told, "reason") != "TerminationByKubelet"
    }) && !pod.is_terminating()
        && !is_over(pod)
}

/// How long a pod that is about to be disrupted may still stay.
fn stale_after(pod: &Value, now: Timestamp) -> Option<Duration> {
    let since = time(condition(pod, "DisruptionTarget")?, "lastTransitionTime")?;
    until(since.saturating_add(STALE_TIMEOUT).ok()?, now)
}

/// The budgets that a pod's labels match, in the order of their names.
fn budgets_of<'a>(cache: &'a Cache, pod: &'a Value) -> Vec<&'a Arc<Value>> {
    cache
        .in_namespace(Res::Budgets, pod.namespace())
        .filter(|budget| selects(budget, pod))
        .collect()
}

/// Whether a budget is about a pod.
fn selects(budget: &Value, pod: &Value) -> bool {
    matches_selector(budget.pointer("/spec/selector"), string_map(pod, "labels"))
}

/// Tells that a pod has several budgets.
fn tell_of_budgets(cx: &Cx<'_>, namespace: &str, name: &str) {
    let Some(pod) = cx.cache.get(Res::Pods, namespace, name) else {
        return;
    };
    if let [first, _, ..] = budgets_of(cx.cache, pod).as_slice() {
        let text = format!(
            "Pod \"{namespace}\"/\"{name}\" matches multiple PodDisruptionBudgets.  Chose \"{}\" arbitrarily.",
            first.name()
        );
        cx.warning(Res::Pods, pod, "MultiplePodDisruptionBudgets", text);
    }
}

/// Takes back that a pod is about to go when it has not gone.
async fn calm(cx: &mut Cx<'_>, namespace: &str, name: &str) -> Result<Next, kube::Error> {
    let Some(pod) = cx.cache.get(Res::Pods, namespace, name).cloned() else {
        return Ok(Next::Change);
    };
    if !is_about_to_go(&pod) {
        return Ok(Next::Change);
    }
    if let Some(left) = stale_after(&pod, cx.now()) {
        return Ok(Next::After(left));
    }
    let mut changed = (*pod).clone();
    let told = changed
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
        .and_then(|conditions| {
            conditions
                .iter_mut()
                .find(|told| text(told, "type") == "DisruptionTarget")
        });
    if let Some(told) = told {
        *told = json!({
            "type": "DisruptionTarget", "status": "False", "observedGeneration": pod.generation(),
            "lastProbeTime": null, "lastTransitionTime": cx.stamp(),
        });
    }
    cx.put_status(Res::Pods, changed).await?;
    Ok(Next::Change)
}

/// The status of a budget over its pods, of which some are about to go.
fn status(
    budget: &Value,
    pods: &[Arc<Value>],
    expected_by_owners: i64,
    pending: &shared_json::Map,
    stamp: &str,
) -> Value {
    let count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let spec = |field: &str| at(budget, &format!("spec.{field}"));
    let (expected, desired) = match (spec("maxUnavailable"), spec("minAvailable")) {
        (Some(max), _) => {
            let expected = expected_by_owners;
            (expected, (expected - scaled(Some(max), expected, true, 0)).max(0))
        }
        (None, Some(min @ Value::String(_))) => {
            (expected_by_owners, scaled(Some(min), expected_by_owners, true, 0))
        }
        (None, Some(min)) => (count, scaled(Some(min), count, true, 0)),
        (None, None) => (0, 0),
    };
    let healthy = pods
        .iter()
        .filter(|pod| is_ready(pod) && !pod.is_terminating() && !pending.contains_key(pod.name()))
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let (met, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let old = list(budget, "status.conditions")
        .iter()
        .find(|condition| text(condition, "type") == "DisruptionAllowed");
    let since = old
        .filter(|old| text(old, "status") == met)
        .map_or(stamp, |old| text(old, "lastTransitionTime"));
    let mut status = json!({
        "observedGeneration": budget.generation(), "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected, "disruptionsAllowed": allowed,
        "conditions": [{
            "type": "DisruptionAllowed", "status": met, "reason": reason, "message": "",
            "observedGeneration": budget.generation(), "lastTransitionTime": since,
        }],
    });
    if !pending.is_empty() {
        status["disruptedPods"] = Value::Object(pending.clone());
    }
    status
}

#[async_trait]
impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "controllermanager"
    }

    fn watches(&self) -> &'static [Res] {
        &[
            Res::Budgets,
            Res::Pods,
            Res::ReplicaSets,
            Res::Deployments,
            Res::StatefulSets,
        ]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Budgets => vec![Key::of(object)],
            Res::Pods => {
                let pod_key = |prefix| Key::new(object.namespace(), &format!("{prefix}{}", object.name()));
                let mut matching = 0;
                let mut keys: Vec<Key> = cache
                    .in_namespace(Res::Budgets, object.namespace())
                    .filter(|budget| {
                        let matches = selects(budget, object);
                        matching += usize::from(matches);
                        matches || old.is_some_and(|old| selects(budget, old))
                    })
                    .map(|budget| Key::of(budget))
                    .collect();
                if matching > 1 {
                    keys.push(pod_key(MANY));
                }
                if is_about_to_go(object) {
                    keys.push(pod_key(STALE));
                }
                keys
            }
            // The sizes of workloads matter only where there are budgets.
            _ if old.is_some_and(|old| old.pointer("/spec/replicas") == object.pointer("/spec/replicas")) => {
                Vec::new()
            }
            _ => cache
                .in_namespace(Res::Budgets, object.namespace())
                .map(|budget| Key::of(budget))
                .collect(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if let Some(pod) = key.name.strip_prefix(STALE) {
            return calm(cx, &key.namespace, pod).await;
        }
        if let Some(pod) = key.name.strip_prefix(MANY) {
            tell_of_budgets(cx, &key.namespace, pod);
            return Ok(Next::Change);
        }
        let Some(budget) = cx.cache.get(Res::Budgets, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let pods: Vec<Arc<Value>> = cx
            .cache
            .in_namespace(Res::Pods, &key.namespace)
            .filter(|pod| selects(&budget, pod))
            .cloned()
            .collect();
        if pods.is_empty() {
            cx.normal(
                Res::Budgets,
                &budget,
                "NoPods",
                "No matching pods found".to_owned(),
            );
        }
        let counted = if counts_controllers(&budget) {
            scales(cx, &pods).await
        } else {
            Ok(Scales::default())
        };
        let evictions = evictions(&budget, &pods, cx.now());
        let status = match counted {
            Ok(scales) => {
                if scales.unmanaged {
                    let text = format!(
                        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, \
                         the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To \
                         account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
                        printed(budget.pointer("/spec/selector"))
                    );
                    cx.warning(Res::Budgets, &budget, "UnmanagedPods", text);
                }
                for pod in &evictions.overdue {
                    // The real one's words: twice the namespace.
                    let text = format!(
                        "Pod was expected by PDB {0}/{0} to be deleted but it wasn't",
                        budget.namespace()
                    );
                    cx.warning(Res::Pods, pod, "NotDeleted", text);
                }
                status(&budget, &pods, scales.total, &evictions.pending, &cx.stamp())
            }
            Err(why) => {
                let text = format!("Failed to calculate the number of expected pods: {why}");
                cx.warning(Res::Budgets, &budget, "CalculateExpectedPodCountFailed", text);
                failed_status(&budget, &why, &cx.stamp())
            }
        };
        // The real one looks again at what it has just written, and tells the same again.
        if cx.set_status(Res::Budgets, &budget, &status).await? {
            return Ok(Next::After(std::time::Duration::ZERO));
        }
        Ok(Next::from(evictions.next.and_then(|next| until(next, cx.now()))))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A budget's spec and status; pods as `name` with `r` (ready), `t` (on its way out) and `f` (failed); how many their controllers ask
    /// for; the expected numbers: pods in all, needed, healthy, allowed disruptions; and the evictions that still count.
    #[rstest]
    #[case(json!({"minAvailable": 1}), json!({}), &["a r", "b r"], 0, (2, 1, 2, 1), "")]
    // Pods that have failed are there as well.
    #[case(json!({"minAvailable": 1}), json!({}), &["a r", "b", "c f"], 0, (3, 1, 1, 0), "")]
    #[case(json!({"minAvailable": 1}), json!({}), &["a rt", "b r"], 0, (2, 1, 1, 0), "")]
    #[case(json!({"minAvailable": 5}), json!({}), &["a r", "b r"], 0, (2, 5, 2, 0), "")]
    #[case(json!({"minAvailable": 0}), json!({}), &["a r"], 0, (1, 0, 1, 1), "")]
    #[case(json!({"minAvailable": "100%"}), json!({}), &["a r", "b r"], 2, (2, 2, 2, 0), "")]
    #[case(json!({"minAvailable": "1%"}), json!({}), &["a r", "b r"], 2, (2, 1, 2, 1), "")]
    #[case(json!({"minAvailable": "50%"}), json!({}), &["a r", "b r"], 3, (3, 2, 2, 0), "")]
    #[case(json!({"maxUnavailable": "10%"}), json!({}), &["a r", "b r", "c r"], 3, (3, 2, 3, 1), "")]
    #[case(json!({"maxUnavailable": "100%"}), json!({}), &["a r", "b"], 2, (2, 0, 1, 1), "")]
    #[case(json!({"maxUnavailable": 9}), json!({}), &["a r", "b r"], 2, (2, 0, 2, 2), "")]
    // Controllers ask for more than is there yet.
    #[case(json!({"maxUnavailable": 1}), json!({}), &["a r", "b r"], 4, (4, 3, 2, 0), "")]
    #[case(json!({"maxUnavailable": 1}), json!({}), &["a r"], 0, (0, 0, 1, 0), "")]
    // Neither number.
    #[case(json!({}), json!({}), &["a r"], 1, (0, 0, 1, 0), "")]
    // Evictions of the last two minutes count, those of pods that are gone or going do not.
    #[case(json!({"minAvailable": 1}), json!({"a": 250}), &["a r", "b r"], 0, (2, 1, 1, 0), "a")]
    #[case(json!({"minAvailable": 1}), json!({"a": 100}), &["a r", "b r"], 0, (2, 1, 2, 1), "")]
    #[case(json!({"minAvailable": 1}), json!({"a": 250}), &["a rt", "b r"], 0, (2, 1, 1, 0), "")]
    #[case(json!({"minAvailable": 1}), json!({"x": 250, "b": 299}), &["a r", "b r"], 0, (2, 1, 1, 0), "b")]
    fn counts(
        #[case] spec: Value,
        #[case] disrupted: Value,
        #[case] pods: &[&str],
        #[case] owners: i64,
        #[case] expected: (i64, i64, i64, i64),
        #[case] left: &str,
    ) {
        let pods: Vec<Arc<Value>> = pods
            .iter()
            .map(|short| {
                let (name, marks) = short.split_once(' ').unwrap_or((short, ""));
                let ready = if marks.contains('r') { "True" } else { "False" };
                let mut pod = json!({
                    "metadata": {"name": name},
                    "status": {
                        "phase": if marks.contains('f') { "Failed" } else { "Running" },
                        "conditions": [{"type": "Ready", "status": ready}],
                    },
                });
                if marks.contains('t') {
                    pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
                }
                Arc::new(pod)
            })
            .collect();
        let disrupted: shared_json::Map = disrupted
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, second)| {
                let at = Timestamp::from_second(second.as_i64().unwrap()).unwrap();
                (name.clone(), json!(at.to_string()))
            })
            .collect();
        let budget =
            json!({"metadata": {"generation": 1}, "spec": spec, "status": {"disruptedPods": disrupted}});
        let now = Timestamp::from_second(300).unwrap();
        let pending = evictions(&budget, &pods, now).pending;
        let status = status(&budget, &pods, owners, &pending, "now");
        let of = |field: &str| number(&status, field, -1);
        let found = (
            of("expectedPods"),
            of("desiredHealthy"),
            of("currentHealthy"),
            of("disruptionsAllowed"),
        );
        assert_eq!(found, expected, "{budget}");
        let still: Vec<&str> = status["disruptedPods"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(still.join(" "), left, "{budget}");
    }

    #[rstest]
    #[case(json!({"minAvailable": 1}), 2, 1, (2, 1, 1, 0))]
    #[case(json!({"minAvailable": 1}), 2, 2, (2, 1, 2, 1))]
    #[case(json!({"minAvailable": "50%"}), 4, 4, (4, 2, 4, 2))]
    #[case(json!({"minAvailable": "34%"}), 4, 3, (4, 2, 3, 1))]
    #[case(json!({"maxUnavailable": 1}), 4, 4, (4, 3, 4, 1))]
    #[case(json!({"maxUnavailable": "30%"}), 4, 4, (4, 2, 4, 2))]
    #[case(json!({"maxUnavailable": 0}), 4, 4, (4, 4, 4, 0))]
    #[case(json!({"minAvailable": 0}), 0, 0, (0, 0, 0, 0))]
    fn statuses(
        #[case] spec: Value,
        #[case] total: usize,
        #[case] ready: usize,
        #[case] expected: (i64, i64, i64, i64),
    ) {
        let pods: Vec<Arc<Value>> = (0..total)
            .map(|n| {
                let status = if n < ready { "True" } else { "False" };
                Arc::new(json!({"metadata": {"name": format!("p{n}")}, "status": {"conditions": [{"type": "Ready", "status": status}]}}))
            })
            .collect();
        let owners = i64::try_from(total).unwrap();
        let status = status(
            &json!({"spec": spec}),
            &pods,
            owners,
            &shared_json::Map::new(),
            "now",
        );
        let of = |field: &str| number(&status, field, -1);
        assert_eq!(
            (
                of("expectedPods"),
                of("desiredHealthy"),
                of("currentHealthy"),
                of("disruptionsAllowed")
            ),
            expected
        );
    }
}
