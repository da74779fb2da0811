//! Device taint eviction: pods whose claims have devices with a taint that the claims do not tolerate go.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use client_kit::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::runtime::claim_object;
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, number, text, time, until};

/// The controller.
#[derive(Default)]
pub(super) struct DeviceTaints {
    /// The pods that have to go later.
    later: BTreeMap<Key, Timestamp>,
}

/// Whether a toleration of a device's is for one of its taints.
fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let key = text(toleration, "key");
    // One without an effect is for every effect, but not here (nor in the real one).
    text(toleration, "effect") == "NoExecute"
        && (key.is_empty() || key == text(taint, "key"))
        && match text(toleration, "operator") {
            "" | "Equal" => text(toleration, "value") == text(taint, "value"),
            operator => operator == "Exists",
        }
}

/// When the users of an allocated device have to leave because of a taint: if it is tolerated for some time, after that.
fn leaves_at(result: &Value, taint: &Value) -> Option<Timestamp> {
    let since = time(taint, "timeAdded")?;
    let matching: Vec<&Value> = list(result, "tolerations")
        .iter()
        .filter(|toleration| tolerates(toleration, taint))
        .collect();
    if matching.iter().any(|one| one.get("tolerationSeconds").is_none()) {
        return None;
    }
    let seconds = matching
        .iter()
        .map(|one| number(one, "tolerationSeconds", 0).max(0));
    let seconds = Duration::from_secs(seconds.min().unwrap_or_default().unsigned_abs());
    since.checked_add(seconds).ok()
}

/// The device that a claim has got, by the newest slices of its pool.
fn device<'a>(slices: &[&'a Value], result: &Value) -> Option<&'a Value> {
    let of_pool = || {
        slices.iter().filter(|slice| {
            text(slice, "spec.driver") == text(result, "driver")
                && text(slice, "spec.pool.name") == text(result, "pool")
        })
    };
    let generation = |slice: &Value| number(slice, "spec.pool.generation", 0);
    let newest = of_pool().map(|slice| generation(slice)).max()?;
    of_pool()
        .filter(|slice| generation(slice) == newest)
        .flat_map(|slice| list(slice, "spec.devices"))
        .find(|device| text(device, "name") == text(result, "device"))
}

/// When a pod has to go because of the devices of these claims of its, if it has to.
fn eviction(pod: &Value, claims: &[&Value], slices: &[&Value]) -> Option<Timestamp> {
    if text(pod, "spec.nodeName").is_empty() {
        return None;
    }
    let reserved = claims.iter().filter(|claim| {
        let users = list(claim, "status.reservedFor");
        users.iter().any(|one| text(one, "uid") == pod.uid())
    });
    let results = reserved.flat_map(|claim| list(claim, "status.allocation.devices.results"));
    let times = results.filter_map(|result| {
        let taints = list(device(slices, result)?, "taints").iter();
        taints
            .filter(|taint| text(taint, "effect") == "NoExecute")
            .filter_map(|taint| leaves_at(result, taint))
            .min()
    });
    times.min()
}

fn has_taints(slice: &Value) -> bool {
    list(slice, "spec.devices")
        .iter()
        .any(|device| !list(device, "taints").is_empty())
}

fn users(claim: &Value) -> impl Iterator<Item = Key> {
    let users = list(claim, "status.reservedFor").iter();
    users
        .filter(|one| text(one, "resource") == "pods")
        .map(|one| Key::new(claim.namespace(), text(one, "name")))
}

/// Says something about a pod that has to do with its devices.
fn tell(cx: &Cx<'_>, pod: &Value, message: &str) {
    let reference = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name().to_owned()),
        namespace: Some(pod.namespace().to_owned()),
        uid: Some(pod.uid().to_owned()),
        ..ObjectReference::default()
    };
    cx.recorder.event(
        &reference,
        EventType::Normal,
        "DeviceTaintManagerEviction",
        message.to_owned(),
    );
}

#[async_trait]
impl Controller for DeviceTaints {
    fn name(&self) -> &'static str {
        "device-taint-eviction-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Pods, Res::ResourceClaims, Res::DeviceSlices]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Pods if list(object, "spec.resourceClaims").is_empty() => Vec::new(),
            Res::Pods => vec![Key::of(object)],
            Res::ResourceClaims => users(object).chain(old.into_iter().flat_map(users)).collect(),
            _ if !has_taints(object) && !old.is_some_and(has_taints) => Vec::new(),
            _ => {
                let is_of_pool = |result: &Value| {
                    text(result, "driver") == text(object, "spec.driver")
                        && text(result, "pool") == text(object, "spec.pool.name")
                };
                let claims = cache.all(Res::ResourceClaims).filter(|claim| {
                    let results = list(claim, "status.allocation.devices.results");
                    results.iter().any(is_of_pool)
                });
                claims.flat_map(|claim| users(claim)).collect()
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(pod) = cx.cache.get(Res::Pods, &key.namespace, &key.name).cloned() else {
            self.later.remove(key);
            return Ok(Next::Change);
        };
        let claims: Vec<&Value> = list(&pod, "spec.resourceClaims")
            .iter()
            .filter_map(|claim| claim_object(&pod, claim))
            .filter_map(|name| cx.cache.get(Res::ResourceClaims, &key.namespace, name))
            .map(|claim| &**claim)
            .collect();
        let slices: Vec<&Value> = cx.cache.all(Res::DeviceSlices).map(|slice| &**slice).collect();
        let Some(when) = eviction(&pod, &claims, &slices) else {
            if self.later.remove(key).is_some() {
                tell(cx, &pod, "Cancelling deletion");
            }
            return Ok(Next::Change);
        };
        if let Some(left) = until(when, cx.now()) {
            self.later.insert(key.clone(), when);
            return Ok(Next::After(left));
        }
        self.later.remove(key);
        if pod.is_terminating() {
            return Ok(Next::Change);
        }
        tell(cx, &pod, "Marking for deletion");
        let mut conditions = list(&pod, "status.conditions").to_vec();
        conditions.retain(|condition| text(condition, "type") != "DisruptionTarget");
        conditions.push(json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint", "lastTransitionTime": cx.stamp(),
        }));
        let patch = json!({"status": {"conditions": conditions}});
        cx.patch(Res::Pods, &pod, "/status", patch).await?;
        cx.delete(Res::Pods, &pod, None).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SINCE: &str = "2026-01-01T00:00:00Z";

    fn slice(generation: i64, taints: Value) -> Value {
        json!({"spec": {
            "driver": "d.io", "pool": {"name": "p", "generation": generation},
            "devices": [{"name": "x", "taints": taints}, {"name": "y"}],
        }})
    }

    fn taint(value: &str, effect: &str, since: &str) -> Value {
        json!({"key": "k", "value": value, "effect": effect, "timeAdded": since})
    }

    fn claim(device: &str, tolerations: Value) -> Value {
        json!({"metadata": {"name": "c"}, "status": {
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "allocation": {"devices": {"results": [
                {"driver": "d.io", "pool": "p", "device": device, "tolerations": tolerations},
            ]}},
        }})
    }

    fn all(effect: &str, seconds: Option<i64>) -> Value {
        let mut toleration = json!({"operator": "Exists"});
        if !effect.is_empty() {
            toleration["effect"] = json!(effect);
        }
        if let Some(seconds) = seconds {
            toleration["tolerationSeconds"] = json!(seconds);
        }
        toleration
    }

    fn no_execute() -> Value {
        json!([taint("v", "NoExecute", SINCE)])
    }

    /// Seconds after the taint came; none if the pod may stay.
    #[rstest]
    #[case::not_tainted("x", json!([]), json!([]), None)]
    #[case::at_once("x", no_execute(), json!([]), Some(0))]
    #[case::another_device("y", no_execute(), json!([]), None)]
    #[case::unknown_device("z", no_execute(), json!([]), None)]
    #[case::only_no_schedule("x", json!([taint("v", "NoSchedule", SINCE)]), json!([]), None)]
    #[case::no_effect("x", json!([taint("v", "None", SINCE)]), json!([]), None)]
    #[case::tolerated("x", no_execute(), json!([all("NoExecute", None)]), None)]
    #[case::tolerated_for_other_effects("x", no_execute(), json!([all("NoSchedule", None)]), Some(0))]
    #[case::tolerated_whatever_the_effect("x", no_execute(), json!([all("", None)]), Some(0))]
    #[case::tolerated_for_a_time("x", no_execute(), json!([all("NoExecute", Some(30))]), Some(30))]
    #[case::tolerated_for_no_time("x", no_execute(), json!([all("NoExecute", Some(0))]), Some(0))]
    #[case::tolerated_for_less_than_none("x", no_execute(), json!([all("NoExecute", Some(-5))]), Some(0))]
    #[case::the_shorter_counts("x", no_execute(), json!([all("NoExecute", Some(30)), all("NoExecute", Some(10))]), Some(10))]
    #[case::for_ever_counts("x", no_execute(), json!([all("NoExecute", Some(30)), all("NoExecute", None)]), None)]
    #[case::by_value("x", no_execute(), json!([{"key": "k", "value": "v", "effect": "NoExecute"}]), None)]
    #[case::by_another_value("x", no_execute(), json!([{"key": "k", "operator": "Equal", "value": "w", "effect": "NoExecute"}]), Some(0))]
    #[case::by_another_key("x", no_execute(), json!([{"key": "l", "operator": "Exists", "effect": "NoExecute"}]), Some(0))]
    #[case::by_every_key("x", no_execute(), json!([{"value": "v", "effect": "NoExecute"}]), None)]
    #[case::the_earlier_taint("x",
        json!([taint("v", "NoExecute", "2026-01-01T00:00:20Z"), taint("w", "NoExecute", "2026-01-01T00:00:05Z")]), json!([]), Some(5))]
    #[case::one_of_two_is_tolerated("x",
        json!([taint("v", "NoExecute", "2026-01-01T00:00:20Z"), taint("w", "NoExecute", "2026-01-01T00:00:05Z")]),
        json!([{"key": "k", "value": "w", "effect": "NoExecute"}]), Some(20))]
    fn goes(
        #[case] device: &str,
        #[case] taints: Value,
        #[case] tolerations: Value,
        #[case] expected: Option<i64>,
    ) {
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n"}});
        let (claim, slice) = (claim(device, tolerations), slice(1, taints));
        let since: Timestamp = SINCE.parse().unwrap();
        let when = eviction(&pod, &[&claim], &[&slice]);
        assert_eq!(when.map(|when| when.as_second() - since.as_second()), expected);
    }

    #[rstest]
    #[case::of_this_pod(json!({"metadata": {"uid": "u"}, "spec": {"nodeName": "n"}}), true)]
    #[case::without_node(json!({"metadata": {"uid": "u"}, "spec": {}}), false)]
    #[case::of_another_pod(json!({"metadata": {"uid": "v"}, "spec": {"nodeName": "n"}}), false)]
    fn of_pods(#[case] pod: Value, #[case] expected: bool) {
        let (claim, slice) = (claim("x", json!([])), slice(1, no_execute()));
        assert_eq!(eviction(&pod, &[&claim], &[&slice]).is_some(), expected);
    }

    #[rstest]
    #[case::newer_without(slice(2, json!([])), false)]
    #[case::older_without(slice(0, json!([])), true)]
    #[case::as_new_of_another_pool(json!({"spec": {"driver": "d.io", "pool": {"name": "q", "generation": 9}}}), true)]
    fn by_the_newest_slices(#[case] other: Value, #[case] expected: bool) {
        let pod = json!({"metadata": {"uid": "u"}, "spec": {"nodeName": "n"}});
        let (claim, slice) = (claim("x", json!([])), slice(1, no_execute()));
        assert_eq!(eviction(&pod, &[&claim], &[&other, &slice]).is_some(), expected);
    }
}
