//! The pages that the images of a recording served, as far as probes have read them.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::{Array, Value};

use crate::history::{Change, text};

/// The pages of images: by the image's reference and the path.
pub type Pages = BTreeMap<String, BTreeMap<String, String>>;

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}

/// The texts with which probes by HTTP succeeded are pages of the images that they probed.
pub(super) fn of(history: &[Change]) -> Pages {
    let mut images: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut pages = Pages::new();
    let mut read = BTreeSet::new();
    for change in history {
        if change.resource == "pods" {
            for container in list(&change.object, "/spec/containers") {
                let key = (change.name(), text(container, "/name"));
                images.insert(key, text(container, "/image"));
            }
        }
        if change.resource != "nodepodprobes" {
            continue;
        }
        for pod in list(&change.object, "/spec/podProbes") {
            for probe in list(pod, "/probes") {
                let Some(path) = probe.pointer("/probe/httpGet/path").and_then(Value::as_str) else {
                    continue;
                };
                let image = images.get(&(text(pod, "/name"), text(probe, "/containerName")));
                let (uid, name) = (text(pod, "/uid"), text(probe, "/name"));
                let (Some(image), Some((page, at))) = (image, succeeded(&change.object, &uid, &name)) else {
                    continue;
                };
                // A result stays while the probe asks for another path already.
                if read.insert((uid, name, at)) {
                    pages
                        .entry(image.clone())
                        .or_default()
                        .insert(path.to_owned(), page);
                }
            }
        }
    }
    pages
}

/// The text with which a probe succeeded, and when, in the status that is there.
fn succeeded(node: &Value, pod: &str, probe: &str) -> Option<(String, String)> {
    let pods = list(node, "/status/podProbeStatuses").iter();
    let pods = pods.filter(|known| text(known, "/uid") == pod);
    let mut states = pods.flat_map(|known| list(known, "/probeStates"));
    let state = states.find(|state| text(state, "/name") == probe && text(state, "/state") == "Succeeded")?;
    Some((text(state, "/message"), text(state, "/lastProbeTime")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared_json::json;

    use super::*;
    use crate::history::ChangeKind;

    #[test]
    fn pages_are_what_probes_read() {
        let change = |resource: &str, object: Value| Change {
            at_ms: 0,
            resource: resource.to_owned(),
            kind: ChangeKind::Modified,
            object: Arc::new(object),
        };
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]}});
        let probes = |path: &str, state: &str, at: &str| {
            let message = if state == "Succeeded" { "welcome" } else { "404" };
            json!({
                "metadata": {"name": "node1"},
                "spec": {"podProbes": [{"name": "a", "uid": "u", "probes": [
                    {"name": "m#p", "containerName": "main", "probe": {"httpGet": {"path": path}}}]}]},
                "status": {"podProbeStatuses": [{"name": "a", "uid": "u", "probeStates": [
                    {"name": "m#p", "state": state, "message": message, "lastProbeTime": at}]}]},
            })
        };
        let history = [
            change("pods", pod),
            change("nodepodprobes", probes("/", "Succeeded", "1")),
            change("nodepodprobes", probes("/nope", "Succeeded", "1")),
            change("nodepodprobes", probes("/nope", "Failed", "2")),
        ];
        let page = BTreeMap::from([("/".to_owned(), "welcome".to_owned())]);
        assert_eq!(of(&history), Pages::from([("nginx:alpine".to_owned(), page)]));
    }
}
