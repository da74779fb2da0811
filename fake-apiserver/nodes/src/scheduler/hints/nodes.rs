//! The hints of filters that look at nodes alone.

use machinery::meta::at;
use machinery::placement::{amounts, node_matches, tolerates, tolerates_all};
use shared_json::{Value, json};

use super::super::cluster::{Amounts, Cluster, PodInfo, list, text};
use super::super::devices::{is_by_devices, stands_for};
use super::super::filters::needed_features;
use super::{Event, tolerates_more};

fn is_cordoned(node: &Value) -> bool {
    at(node, "spec.unschedulable").and_then(Value::as_bool) == Some(true)
}

/// Whether a node was cordoned and is not any more.
pub(super) fn takes_pods_again(old: Option<&Value>, new: Option<&Value>) -> bool {
    old.is_some_and(is_cordoned) && new.is_some_and(|new| !is_cordoned(new))
}

pub(super) fn unschedulable(event: &Event<'_>, _pod: &PodInfo) -> bool {
    match event {
        Event::Node(node) if node.is_new() => node.new.is_some_and(|new| !is_cordoned(new)),
        Event::Node(node) => takes_pods_again(node.old, node.new),
        Event::Own(old, new) => {
            let taint = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
            let tolerations = list(&new.object, "spec.tolerations");
            tolerates_more(old, new) && tolerations.iter().any(|one| tolerates(one, &taint))
        }
        _ => false,
    }
}

pub(super) fn taints(event: &Event<'_>, pod: &PodInfo) -> bool {
    let tolerated = |node: &Value| {
        let taints = list(node, "spec.taints");
        tolerates_all(&pod.object, taints, &["NoSchedule", "NoExecute"])
    };
    match event {
        Event::Node(node) if node.is_new() || node.taints => {
            !node.old.is_some_and(tolerated) && node.new.is_some_and(tolerated)
        }
        Event::Own(old, new) => tolerates_more(old, new),
        _ => false,
    }
}

pub(super) fn affinity(event: &Event<'_>, pod: &PodInfo) -> bool {
    let matches = |node: &Value| node_matches(&pod.object, node);
    match event {
        Event::Node(node) if node.is_new() || node.labels => {
            node.new.is_some_and(matches) && !node.old.is_some_and(matches)
        }
        _ => false,
    }
}

pub(super) fn resources(event: &Event<'_>, pod: &PodInfo, cluster: &Cluster) -> bool {
    let asked = || pod.requests.iter().filter(|(_, amount)| **amount != 0);
    let of = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or_default();
    match event {
        Event::Pod(Some(_), None) => true,
        Event::Pod(Some(old), Some(new)) => {
            asked().any(|(name, _)| of(&old.requests, name) > of(&new.requests, name))
        }
        Event::Own(old, new) => old
            .requests
            .iter()
            .any(|(name, amount)| new.requests.get(name).is_none_or(|now| now < amount)),
        Event::Node(node) if node.is_new() || node.allocatable => {
            let Some(new) = node.new.map(|new| amounts(at(new, "status.allocatable"))) else {
                return false;
            };
            // As if no pod were there.
            let fits = new.get("pods").is_none_or(|room| *room > 0)
                && asked()
                    .all(|(name, amount)| of(&new, name) >= *amount || is_by_devices(name, &new, cluster));
            let Some(old) = node.old.filter(|_| fits) else {
                return fits;
            };
            let old = amounts(at(old, "status.allocatable"));
            of(&new, "pods") > of(&old, "pods")
                || asked()
                    .any(|(name, _)| of(&new, name) > of(&old, name) || is_by_devices(name, &new, cluster))
        }
        Event::DeviceClass(old, new) => {
            let name = |class: &Value| text(class, "spec.extendedResourceName").to_owned();
            let asks = |name: &str| pod.requests.contains_key(name);
            match old {
                None => pod.requests.keys().any(|name| stands_for(new, name)),
                Some(old) => name(old) != name(new) && asks(&name(new)),
            }
        }
        _ => false,
    }
}

pub(super) fn declared_features(event: &Event<'_>) -> bool {
    match event {
        Event::Node(node) => node.is_new() || node.declared,
        Event::Own(old, new) => !needed_features(&old.object).eq(needed_features(&new.object)),
        _ => false,
    }
}
