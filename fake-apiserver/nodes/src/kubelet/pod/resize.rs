//! Resizes in place: the node's decision about a pod's requested resources, and the conditions for that.
//!
//! As the kubelet's allocation manager: a resize for which there is room is under way at once, one for which there is none waits
//! (`Deferred`) and is looked at again when something leaves or shrinks, and every three minutes.

use std::time::Duration;

use client_kit::EventType;
use machinery::meta::ObjectMeta as _;
use machinery::placement::Insufficient;
use machinery::types::rfc3339;
use shared_json::Value;
use tokio::time::Instant;

use super::worker::PodWorker;
use crate::status::{ContainerRecord, Kind, ResizeCondition, items, name_of};

/// When a resize that waits is looked at again, if nothing happens before.
const RETRY_AFTER: Duration = Duration::from_secs(180);
/// The reason of one that waits.
const DEFERRED: &str = "Deferred";

fn resources_of<'a>(pod: &'a Value, container: &ContainerRecord) -> Option<&'a Value> {
    let mut specs = items(pod, container.kind.field()).iter();
    specs
        .find(|spec| name_of(spec) == container.name)?
        .get("resources")
}

impl PodWorker {
    /// Notes a change of the pod's requested resources, and decides about them.
    pub(super) fn note_resize(&mut self, old: &Value) {
        if old.get("spec") == self.pod.get("spec") || self.is_terminating() || self.record.over {
            return;
        }
        let mut asked = false;
        for container in self.record.containers.iter_mut().filter(|one| one.is_resizable()) {
            let (before, now) = (resources_of(old, container), resources_of(&self.pod, container));
            if before == now {
                continue;
            }
            asked = true;
            let given = container.allocated.take().or_else(|| before.cloned());
            // What it has already, it need not be given.
            container.allocated = given.filter(|given| Some(given) != now);
        }
        if asked {
            self.consider_resize();
        }
    }

    /// Gives the pod its requested resources, if there is room.
    pub(super) fn consider_resize(&mut self) {
        self.resize_at = None;
        let differs = self.record.containers.iter().any(|one| one.allocated.is_some());
        if !differs || self.record.over {
            // What was asked for has been taken back.
            self.kubelet.resized(self.pod.uid());
            let was = self.record.resizing.as_mut().and_then(|all| all.pending.take());
            if was.is_some() {
                self.sync_next();
            }
            return;
        }
        match self.kubelet.room_for(&self.pod) {
            None => self.start_resize(),
            Some(lacking) => self.defer_resize(lacking),
        }
    }

    fn start_resize(&mut self) {
        self.kubelet.resized(self.pod.uid());
        for container in &mut self.record.containers {
            container.allocated = None;
        }
        let now = rfc3339(self.kubelet.clock.now_seconds());
        let generation = self.pod.generation();
        let resizing = self.record.resizing.get_or_insert_default();
        resizing.pending = None;
        resizing.progress = Some(ResizeCondition {
            reason: String::new(),
            message: String::new(),
            generation,
            probed: now.clone(),
            since: now,
        });
        let summary = self.summary(generation, "");
        self.pod_event(
            EventType::Normal,
            "ResizeStarted",
            format!("Pod resize started: {summary}"),
        );
        self.sync_next();
    }

    fn defer_resize(&mut self, lacking: Insufficient) {
        self.kubelet.deferred(self.pod.uid());
        self.resize_at = Some(Instant::now() + RETRY_AFTER);
        let now = rfc3339(self.kubelet.clock.now_seconds());
        let generation = self.pod.generation();
        let before = self.record.resizing.get_or_insert_default().pending.take();
        let known = before
            .as_ref()
            .is_some_and(|before| before.generation == generation);
        let pending = ResizeCondition {
            reason: DEFERRED.to_owned(),
            message: lacking.message.clone(),
            generation,
            probed: now.clone(),
            since: before.map_or(now, |before| before.since),
        };
        self.record.resizing.get_or_insert_default().pending = Some(pending);
        if !known {
            let summary = self.summary(generation, &lacking.message);
            let message = format!("Pod resize {}: {summary}", lacking.reason);
            self.pod_event(EventType::Warning, "ResizeDeferred", message);
        }
        self.sync_next();
    }

    /// A resize is done once every running container has its new resources.
    pub(super) fn finish_resize(&mut self) {
        let Some(resizing) = &mut self.record.resizing else {
            return;
        };
        let pod = &self.pod;
        let under_way = self.record.containers.iter().any(|container| {
            let given = container
                .allocated
                .as_ref()
                .or_else(|| resources_of(pod, container));
            container.is_resizable()
                && container.is_running()
                && given.is_some_and(|given| *given != container.resources)
        });
        if under_way {
            return;
        }
        let done = resizing.progress.take();
        if resizing.pending.is_none() {
            self.record.resizing = None;
        }
        if let Some(done) = done {
            let summary = self.summary(done.generation, "");
            let message = format!("Pod resize completed: {summary}");
            self.pod_event(EventType::Normal, "ResizeCompleted", message);
        }
    }

    /// The resources of all containers, as events print them.
    fn summary(&self, generation: i64, error: &str) -> String {
        let of = |kinds: &[Kind]| {
            let all = self
                .record
                .containers
                .iter()
                .filter(|one| kinds.contains(&one.kind));
            let one = |container: &ContainerRecord| {
                let waits = error.is_empty().then_some(container.allocated.as_ref()).flatten();
                let resources = waits.or_else(|| resources_of(&self.pod, container));
                (container.name.clone(), resources.cloned().unwrap_or(Value::Null))
            };
            all.map(one).collect::<Vec<_>>()
        };
        summary(
            &of(&[Kind::Init, Kind::Sidecar]),
            &of(&[Kind::Regular]),
            generation,
            error,
        )
    }
}

/// Containers with their resources as JSON, in the order of Go's structs.
fn summary(init: &[(String, Value)], regular: &[(String, Value)], generation: i64, error: &str) -> String {
    let container = |(name, resources): &(String, Value)| {
        let fields = ["limits", "requests", "claims"].into_iter().filter_map(|field| {
            let value = resources.get(field)?;
            Some(format!("\"{field}\":{}", sorted(value)))
        });
        let fields: Vec<String> = fields.collect();
        format!("{{\"name\":\"{name}\",\"resources\":{{{}}}}}", fields.join(","))
    };
    let mut parts = Vec::new();
    for (field, list) in [("initContainers", init), ("containers", regular)] {
        if !list.is_empty() {
            let list: Vec<String> = list.iter().map(container).collect();
            parts.push(format!("\"{field}\":[{}]", list.join(",")));
        }
    }
    parts.push(format!("\"generation\":{generation}"));
    if !error.is_empty() {
        parts.push(format!("\"error\":{}", Value::from(error)));
    }
    format!("{{{}}}", parts.join(","))
}

/// A value as JSON, with the keys of an object in order.
fn sorted(value: &Value) -> String {
    let Some(map) = value.as_object() else {
        return value.to_string();
    };
    let mut pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
        .collect();
    pairs.sort();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!([]), json!([["a", {"requests": {"cpu": "1"}}]]), "", r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"generation":2}"#)]
    #[case(json!([]), json!([["a", {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"cpu": "2"}}]]), "",
        r#"{"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"1","memory":"1Gi"}}}],"generation":2}"#)]
    #[case(json!([["i", {}]]), json!([["a", {}], ["b", {}]]), "",
        r#"{"initContainers":[{"name":"i","resources":{}}],"containers":[{"name":"a","resources":{}},{"name":"b","resources":{}}],"generation":2}"#)]
    #[case(json!([]), json!([["a", {}]]), "no \"room\"", r#"{"containers":[{"name":"a","resources":{}}],"generation":2,"error":"no \"room\""}"#)]
    fn summaries(#[case] init: Value, #[case] regular: Value, #[case] error: &str, #[case] expected: &str) {
        let list = |value: Value| -> Vec<(String, Value)> { shared_json::from_value(value).unwrap() };
        assert_eq!(summary(&list(init), &list(regular), 2, error), expected);
    }
}
