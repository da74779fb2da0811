//! The hints of filters that look at volumes.

use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::Value;

use super::super::cluster::{PodInfo, list, text};
use super::super::filters::VOLUME_PLACES;
use super::Event;

/// Drivers that replace plugins of Kubernetes' own tree.
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";

fn uses(pod: &PodInfo, claim: &Value) -> bool {
    claim.namespace() == pod.object.namespace() && pod.claims.iter().any(|name| name == claim.name())
}

pub(super) fn in_use(event: &Event<'_>, pod: &PodInfo) -> bool {
    match event {
        Event::Node(node) => node.is_new(),
        Event::Pod(Some(gone), None) => {
            gone.object.namespace() == pod.object.namespace()
                && gone.claims.iter().any(|name| pod.claims.contains(name))
        }
        Event::Claim(None, claim) => uses(pod, claim),
        _ => false,
    }
}

pub(super) fn limits(event: &Event<'_>, pod: &PodInfo) -> bool {
    match event {
        Event::Drivers(None, _) => true,
        Event::Drivers(Some(old), new) => {
            let most = |driver: Option<&Value>| {
                let count = driver.and_then(|driver| at(driver, "allocatable.count"));
                count.and_then(Value::as_i64).unwrap_or_default()
            };
            list(new, "spec.drivers").iter().any(|driver| {
                let before = list(old, "spec.drivers")
                    .iter()
                    .find(|before| text(before, "name") == text(driver, "name"));
                most(Some(driver)) > most(before)
            })
        }
        Event::Pod(Some(gone), None) => !gone.claims.is_empty(),
        Event::Claim(None, claim) => uses(pod, claim),
        _ => false,
    }
}

pub(super) fn binding(event: &Event<'_>, pod: &PodInfo) -> bool {
    match event {
        Event::Node(node) => node.is_new() || node.labels,
        Event::Volume(_, _) | Event::Class(None, _) | Event::Drivers(None, _) => true,
        Event::Claim(_, claim) => uses(pod, claim),
        Event::Class(Some(old), new) => list(old, "allowedTopologies") != list(new, "allowedTopologies"),
        Event::Drivers(Some(old), new) => {
            let migrated = |drivers: &Value| string_map(drivers, "annotations").get(MIGRATED).cloned();
            migrated(old) != migrated(new)
        }
        _ => false,
    }
}

pub(super) fn zone(event: &Event<'_>, pod: &PodInfo) -> bool {
    match event {
        Event::Node(node) => node.is_new() || node.labels,
        Event::Class(None, class) => text(class, "volumeBindingMode") == "WaitForFirstConsumer",
        Event::Claim(_, claim) => uses(pod, claim),
        Event::Volume(None, _) => true,
        Event::Volume(Some(old), new) => VOLUME_PLACES.iter().any(|(key, _)| {
            let place = |volume: &Value| string_map(volume, "labels").get(*key).cloned();
            place(old) != place(new)
        }),
        _ => false,
    }
}
