//! The match of volumes and claims, and the users of claims: pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::placement::{attributes_of, class_of, is_bound_to, mode, size, volume_fits as fits};
use shared_json::{Value, json};

use super::runtime::is_over;
use super::runtime::{Cache, Res, controller_of, list, text};

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The volume that serves a claim best: one with no more access modes than need be, kept for the claim, the smallest, the
/// first by name.
pub(super) fn choose<'a>(
    volumes: impl Iterator<Item = &'a Arc<Value>>,
    claim: &Value,
) -> Option<&'a Arc<Value>> {
    volumes.filter(|volume| fits(volume, claim)).min_by_key(|volume| {
        let modes: BTreeSet<&str> = list(volume, "spec.accessModes")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        (
            modes.len(),
            !is_bound_to(volume, claim),
            size(volume, "spec.capacity.storage").nanos(),
            volume.name().to_owned(),
        )
    })
}

pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    string_map(object, "annotations")
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a pod holds a claim, even if it has ended. One that no node has taken does not: it would not start with a claim that goes.
pub(super) fn in_use(cache: &Cache, claim: &Value) -> bool {
    cache
        .in_namespace(Res::Pods, claim.namespace())
        .any(|pod| !text(pod, "spec.nodeName").is_empty() && uses(pod, claim))
}

pub(super) fn uses(pod: &Value, claim: &Value) -> bool {
    // A pod that only waits for its removal waits for no claim of its own.
    let is_shut_down =
        pod.is_terminating() && at(pod, "metadata.deletionGracePeriodSeconds") == Some(&json!(0));
    let owns = controller_of(claim).is_some_and(|owner| text(owner, "uid") == pod.uid());
    list(pod, "spec.volumes").iter().any(|volume| {
        text(volume, "persistentVolumeClaim.claimName") == claim.name()
            || (volume.get("ephemeral").is_some()
                && owns
                && !is_shut_down
                && format!("{}-{}", pod.name(), text(volume, "name")) == claim.name())
    })
}

/// The class of claims that name none: the newest of those that say so, the first by name among equals.
pub(super) fn default_class(cache: &Cache) -> Option<&str> {
    let of = |class: &Value| {
        (
            std::cmp::Reverse(text(class, "metadata.creationTimestamp").to_owned()),
            class.name().to_owned(),
        )
    };
    let defaults = cache
        .all(Res::StorageClasses)
        .filter(|class| annotation(class, DEFAULT_CLASS) == "true");
    defaults.min_by_key(|class| of(class)).map(|class| class.name())
}

/// Why a volume that a claim names cannot be its own, if it cannot.
pub(super) fn mismatch(volume: &Value, claim: &Value) -> Option<String> {
    let (has, wants) = (
        size(volume, "spec.capacity.storage"),
        size(claim, "spec.resources.requests.storage"),
    );
    if volume.is_terminating() {
        return Some(format!("the volume is marked for deletion \"{}\"", volume.name()));
    }
    let modes = list(volume, "spec.accessModes");
    let why = if has.nanos() < wants.nanos() {
        "requested PV is too small"
    } else if class_of(volume) != class_of(claim) {
        "storageClassName does not match"
    } else if attributes_of(volume) != attributes_of(claim) {
        "volumeAttributesClassName does not match"
    } else if mode(volume) != mode(claim) {
        "incompatible volumeMode"
    } else if !list(claim, "spec.accessModes")
        .iter()
        .all(|mode| modes.contains(mode))
    {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The event of a claim whose class waits for its first consumer: names the pods without a node, if there are any.
pub(super) fn waiting(cache: &Cache, claim: &Value) -> (&'static str, String) {
    let mut pods: Vec<&str> = cache
        .in_namespace(Res::Pods, claim.namespace())
        .filter(|pod| text(pod, "spec.nodeName").is_empty() && !is_over(pod) && uses(pod, claim))
        .map(|pod| pod.name())
        .collect();
    pods.sort_unstable();
    match pods.as_slice() {
        [] => (
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding".to_owned(),
        ),
        [pod] => (
            "WaitForPodScheduled",
            format!("waiting for pod {pod} to be scheduled"),
        ),
        pods => (
            "WaitForPodScheduled",
            format!("waiting for pods {} to be scheduled", pods.join(",")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn volume(name: &str, storage: &str, extra: Value) -> Arc<Value> {
        let mut volume = json!({
            "metadata": {"name": name, "labels": {"tier": "gold"}}, "status": {"phase": "Available"},
            "spec": {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"},
        });
        volume.merge(&extra);
        Arc::new(volume)
    }

    #[rstest]
    #[case(volume("v", "1Gi", json!({})), true)]
    #[case(volume("v", "1", json!({})), false)]
    #[case(volume("v", "5Gi", json!({})), true)]
    #[case(volume("v", "1Gi", json!({"spec": {"storageClassName": "d"}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"accessModes": ["ReadOnlyMany"]}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeMode": "Block"}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeAttributesClassName": "gold"}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeAttributesClassName": "gold", "claimRef": {"namespace": "d", "name": "c"}}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "c"}}})), true)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "c", "uid": "9"}}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "x"}}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"storageClassName": "d", "claimRef": {"namespace": "d", "name": "c"}}})), true)]
    #[case(volume("v", "1", json!({"spec": {"claimRef": {"namespace": "d", "name": "c"}}})), false)]
    #[case(volume("v", "1Gi", json!({"metadata": {"labels": {"tier": "tin"}}})), false)]
    #[case(volume("v", "1Gi", json!({"status": {"phase": "Released"}})), false)]
    #[case(volume("v", "1Gi", json!({"metadata": {"deletionTimestamp": "x"}})), false)]
    fn which_volume_serves(#[case] volume: Arc<Value>, #[case] expected: bool) {
        let claim = json!({
            "metadata": {"namespace": "d", "name": "c", "uid": "1"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "c", "selector": {"matchLabels": {"tier": "gold"}},
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        assert_eq!(fits(&volume, &claim), expected);
    }

    #[rstest]
    #[case(volume("v", "1Gi", json!({})), None)]
    #[case(volume("v", "2Gi", json!({"metadata": {"labels": {"tier": "tin"}}})), None)]
    #[case(volume("v", "1Mi", json!({})), Some("requested PV is too small"))]
    #[case(volume("v", "1Gi", json!({"spec": {"storageClassName": null}})), Some("storageClassName does not match"))]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeAttributesClassName": "gold"}})), Some("volumeAttributesClassName does not match"))]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeMode": "Block"}})), Some("incompatible volumeMode"))]
    #[case(volume("v", "1Gi", json!({"spec": {"accessModes": ["ReadOnlyMany"]}})), Some("incompatible accessMode"))]
    #[case(volume("v", "1Mi", json!({"metadata": {"deletionTimestamp": "x"}})), Some("the volume is marked for deletion \"v\""))]
    #[case(volume("v", "1Mi", json!({"spec": {"volumeMode": "Block", "accessModes": []}})), Some("requested PV is too small"))]
    fn why_a_named_volume_does_not_serve(#[case] volume: Arc<Value>, #[case] expected: Option<&str>) {
        let claim = json!({
            "metadata": {"namespace": "d", "name": "c", "uid": "1"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "c", "volumeName": "v",
                "selector": {"matchLabels": {"tier": "gold"}}, "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        assert_eq!(mismatch(&volume, &claim).as_deref(), expected);
    }

    #[test]
    fn who_waits_for_whom() {
        let pod = |name: &str, spec: Value, phase: &str| json!({"metadata": {"namespace": "d", "name": name, "uid": name}, "spec": spec, "status": {"phase": phase}});
        let user = |more: Value| {
            let mut spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
            spec.merge(&more);
            spec
        };
        let mut cache = Cache::default();
        let claim = json!({"metadata": {"namespace": "d", "name": "c", "uid": "1"}});
        for (next, expected, used) in [
            (
                None,
                "waiting for first consumer to be created before binding",
                false,
            ),
            (
                Some(pod("other", json!({"volumes": []}), "Pending")),
                "waiting for first consumer to be created before binding",
                false,
            ),
            (
                Some(pod("b", user(json!({})), "Pending")),
                "waiting for pod b to be scheduled",
                false,
            ),
            (
                Some(pod("a", user(json!({})), "Pending")),
                "waiting for pods a,b to be scheduled",
                false,
            ),
            (
                Some(pod("over", user(json!({"nodeName": "n"})), "Succeeded")),
                "waiting for pods a,b to be scheduled",
                true,
            ),
            (
                Some(pod("a", user(json!({"nodeName": "n"})), "Running")),
                "waiting for pod b to be scheduled",
                true,
            ),
            (
                Some(pod("b", user(json!({})), "Failed")),
                "waiting for first consumer to be created before binding",
                true,
            ),
        ] {
            if let Some(pod) = next {
                cache.put(Res::Pods, pod);
            }
            assert_eq!(
                (waiting(&cache, &claim).1.as_str(), in_use(&cache, &claim)),
                (expected, used)
            );
        }
    }

    #[test]
    fn which_class_is_the_default() {
        let class = |name: &str, default: &str, created: &str| {
            json!({
                "metadata": {"name": name, "uid": name, "creationTimestamp": created, "annotations": {DEFAULT_CLASS: default}},
            })
        };
        let mut cache = Cache::default();
        for (class, expected) in [
            (class("no", "false", "2026-01-09T00:00:00Z"), None),
            (class("old", "true", "2026-01-01T00:00:00Z"), Some("old")),
            (class("new", "true", "2026-01-02T00:00:00Z"), Some("new")),
            (class("also", "true", "2026-01-02T00:00:00Z"), Some("also")),
            (class("older", "true", "2025-01-02T00:00:00Z"), Some("also")),
        ] {
            cache.put(Res::StorageClasses, class);
            assert_eq!(default_class(&cache), expected);
        }
    }

    #[rstest]
    #[case::the_smallest([("a", "5Gi", "O", ""), ("b", "2Gi", "O", ""), ("c", "3Gi", "O", "")], "b")]
    #[case::the_first_of_equals([("c", "2Gi", "O", ""), ("a", "2Gi", "O", ""), ("b", "2Gi", "O", "")], "a")]
    #[case::the_one_kept([("a", "2Gi", "O", ""), ("b", "5Gi", "O", "c"), ("c", "2Gi", "O", "")], "b")]
    #[case::the_fewest_modes([("a", "2Gi", "OM", ""), ("b", "5Gi", "O", ""), ("c", "1Gi", "OMX", "")], "b")]
    #[case::the_fewest_modes_before_the_one_kept([("a", "2Gi", "OM", "c"), ("b", "5Gi", "O", ""), ("c", "5Gi", "O", "")], "b")]
    #[case::a_mode_named_twice_is_one([("a", "5Gi", "OM", ""), ("b", "2Gi", "OO", ""), ("c", "5Gi", "O", "")], "b")]
    #[case::the_modes_asked_for([("a", "5Gi", "OM", ""), ("b", "2Gi", "M", ""), ("c", "5Gi", "X", "")], "a")]
    fn which_volume_is_chosen(#[case] volumes: [(&str, &str, &str, &str); 3], #[case] expected: &str) {
        let claim = json!({
            "metadata": {"namespace": "d", "name": "c", "uid": "1"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}},
        });
        let volumes = volumes.map(|(name, storage, modes, kept)| {
            let modes: Vec<&str> = modes
                .chars()
                .map(|mode| match mode {
                    'O' => "ReadWriteOnce",
                    'M' => "ReadOnlyMany",
                    _ => "ReadWriteMany",
                })
                .collect();
            let mut spec = json!({"accessModes": modes});
            if !kept.is_empty() {
                spec["claimRef"] = json!({"namespace": "d", "name": kept});
            }
            volume(name, storage, json!({"spec": spec}))
        });
        let chosen = choose(volumes.iter(), &claim).map(|volume| volume.name());
        assert_eq!(chosen, Some(expected));
    }
}
