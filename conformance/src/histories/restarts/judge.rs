//! The invariants of a history, checked after every change.
//!
//! A container never restarts but for a request, and not more often than requests have stopped it. Of the requests of a pod one is
//! carried out at a time. In the end every request has ended, and a pod is in service.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::{Array, Value};

use crate::history::{Change, ChangeKind, number, text};

/// ContainerRecreateRequests, as histories name them.
pub(super) const RESOURCE: &str = "containerrecreaterequests";

/// The label with the uid of a request's pod.
const POD: &str = "/metadata/labels/crr.apps.kruise.io~1pod-uid";

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}

/// The requests that were seen so far.
#[derive(Default)]
struct Seen {
    /// Those that are there.
    requests: BTreeMap<String, Value>,
    /// The requests that may have stopped each container of a pod: by the pod's uid and the container.
    stops: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Seen {
    /// Takes in a request; gives the error in it.
    fn request(&mut self, change: &Change) -> Option<String> {
        let (name, request) = (change.name(), &change.object);
        if change.kind == ChangeKind::Deleted {
            self.requests.remove(&name);
            return None;
        }
        self.requests.insert(name.clone(), Value::clone(request));
        let pod = text(request, POD);
        if text(request, "/status/phase") != "Recreating" {
            return None;
        }
        // The daemon stops a container first and writes that down then.
        for state in list(request, "/status/containerRecreateStates") {
            let key = (pod.clone(), text(state, "/name"));
            self.stops.entry(key).or_default().insert(name.clone());
        }
        let others = self.requests.iter().filter(|(other, request)| {
            **other != name && text(request, POD) == pod && text(request, "/status/phase") == "Recreating"
        });
        let others: Vec<&str> = others.map(|(other, _)| other.as_str()).collect();
        (!others.is_empty()).then(|| format!("is carried out together with {}", others.join(", ")))
    }

    /// The error in the restarts of a pod.
    fn pod(&self, pod: &Value) -> Option<String> {
        let uid = text(pod, "/metadata/uid");
        list(pod, "/status/containerStatuses").iter().find_map(|status| {
            let name = text(status, "/name");
            let restarts = number(status, "/restartCount");
            let stops = self
                .stops
                .get(&(uid.clone(), name.clone()))
                .map_or(0, BTreeSet::len);
            let is_excess = restarts > i64::try_from(stops).unwrap_or(i64::MAX);
            is_excess.then(|| format!("{name} restarted {restarts} times for {stops} requests"))
        })
    }

    /// The requests that have not ended.
    fn left(&self) -> impl Iterator<Item = String> {
        let left = self
            .requests
            .iter()
            .filter(|(_, request)| text(request, "/status/completionTime").is_empty());
        left.map(|(name, request)| format!("at the end {name} is {:?}", text(request, "/status/phase")))
    }
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change]) -> Vec<String> {
    let mut seen = Seen::default();
    let mut out = Vec::new();
    for change in history {
        let fault = match change.resource.as_str() {
            RESOURCE => seen.request(change),
            "pods" if change.kind != ChangeKind::Deleted => seen.pod(&change.object),
            _ => None,
        };
        out.extend(fault.map(|fault| format!("at {} ms, {}: {fault}", change.at_ms, change.name())));
    }
    out.extend(seen.left());
    out
}

/// The differences between the wanted pods and those at the end.
pub(super) fn unlike(pods: &[Value], desired: i64) -> Vec<String> {
    let is_ready = |pod: &&Value| {
        let mut conditions = list(pod, "/status/conditions").iter();
        conditions
            .any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True")
    };
    let ready = i64::try_from(pods.iter().filter(is_ready).count()).unwrap_or(i64::MAX);
    match ready < desired {
        true => vec![format!("at the end {ready} of {desired} pods are ready")],
        false => Vec::new(),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
