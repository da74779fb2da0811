//! The judge's view of a pod with sidecars.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::history::{number, text};

/// The container of a pod that is none of the sidecars.
pub(super) const MAIN: &str = "main";

/// A container at some moment, with its past.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Container {
    pub(super) image: String,
    /// How often its image changed.
    pub(super) images: i64,
    pub(super) restarts: i64,
    /// Whether it runs the image that it is to run.
    pub(super) runs: bool,
}

/// A pod at some moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pod {
    pub(super) containers: BTreeMap<String, Container>,
    pub(super) ready: bool,
    /// Whether it terminates, or has ended.
    pub(super) ends: bool,
    /// Whether its sidecars were changed after its creation.
    pub(super) upgraded: bool,
}

fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

impl Pod {
    /// The pod after a change.
    pub(super) fn of(object: &Value, before: Option<&Self>) -> Self {
        let mut containers = BTreeMap::new();
        for spec in list(object, "/spec/containers") {
            let (name, image) = (text(spec, "/name"), text(spec, "/image"));
            let status =
                list(object, "/status/containerStatuses").find(|status| text(status, "/name") == name);
            let last = before.and_then(|pod| pod.containers.get(&name));
            let changed = last.is_some_and(|last| last.image != image);
            let shown = status.map(|status| text(status, "/image")).unwrap_or_default();
            let container = Container {
                images: last.map_or(0, |last| last.images) + i64::from(changed),
                restarts: status.map_or(0, |status| number(status, "/restartCount")),
                runs: shown.ends_with(&image)
                    && status
                        .is_some_and(|status| status.pointer("/state/running").is_some_and(Value::is_object)),
                image,
            };
            containers.insert(name, container);
        }
        let is_ready =
            |condition: &Value| text(condition, "/type") == "Ready" && text(condition, "/status") == "True";
        let changes = |pod: &Self| -> i64 { pod.containers.values().map(|container| container.images).sum() };
        let mut pod = Self {
            containers,
            ready: list(object, "/status/conditions").any(is_ready),
            ends: !text(object, "/metadata/deletionTimestamp").is_empty()
                || matches!(text(object, "/status/phase").as_str(), "Failed" | "Succeeded"),
            upgraded: false,
        };
        pod.upgraded = changes(&pod) > 0;
        pod
    }

    /// The images of these sidecars.
    pub(super) fn has(&self, images: &BTreeMap<String, String>) -> bool {
        images.iter().all(|(name, image)| {
            let container = self.containers.get(name);
            container.is_some_and(|container| container.image == *image)
        })
    }

    /// Whether all of its containers run as they should, and it is ready.
    pub(super) fn serves(&self) -> bool {
        self.ready && self.containers.values().all(|container| container.runs)
    }
}
