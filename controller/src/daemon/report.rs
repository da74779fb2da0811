//! What the daemon writes down of a pod, and what it restarts.

use std::collections::BTreeMap;

use super::runtime::RunningContainer;
use crate::api::labels;
use crate::kit::controller_of;
use crate::pods::inplace::hash::{
    Hashes, RuntimeContainer, RuntimeContainers, env_hash, env_hash_of, runtime_containers,
};
use crate::pods::pod::{self, Container, Pod};

/// What is to be done about a pod.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Report {
    /// The annotation's new text, if it changes.
    pub(super) text: Option<String>,
    /// The ids and names of containers that run with another environment than they should.
    pub(super) restarts: Vec<(String, String)>,
}

/// Whether the pod belongs to one of OpenKruise's workloads and something of it is not written down, or no longer right.
pub(super) fn is_due(old: Option<&Pod>, pod: &Pod) -> bool {
    let group = controller_of(&pod.metadata).and_then(|owner| owner.api_version.split('/').next());
    if group != Some("apps.kruise.io") || pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let statuses = pod::container_statuses(pod);
    let known = runtime_containers(pod);
    // A pod that was there before the daemon is left alone until something happens to it.
    if old.is_none() && known.is_none() {
        return false;
    }
    statuses.iter().enumerate().any(|(index, status)| {
        let Some(id) = status.container_id.as_deref().filter(|id| !id.is_empty()) else {
            return false;
        };
        let Some(known) = known
            .as_ref()
            .filter(|known| known.containers.len() == statuses.len())
            .and_then(|known| known.containers.get(index))
        else {
            return true;
        };
        let Some(container) = spec_of(pod, &status.name) else {
            return false;
        };
        let wanted = env_hash(container, pod);
        known.container_id != id
            || known.hashes.extracted_env_from_metadata_hash != wanted
            || old.is_some_and(|old| env_hash(container, old) != wanted)
    })
}

fn spec_of<'p>(pod: &'p Pod, name: &str) -> Option<&'p Container> {
    pod::containers(pod)
        .iter()
        .find(|container| container.name == name)
}

/// Compares what runs with what is written down. `environment` gives that of a running container by its id.
pub(super) fn report(
    pod: &Pod,
    running: &[RunningContainer],
    environment: impl Fn(&str) -> Option<BTreeMap<String, String>>,
) -> Report {
    let old = runtime_containers(pod);
    let mut report = Report::default();
    let mut containers = Vec::new();
    let updating =
        pod::condition(pod, labels::IN_PLACE_READY).is_some_and(|condition| &*condition.status == "False");
    for status in pod::container_statuses(pod) {
        let (Some(found), Some(spec)) = (
            running.iter().find(|found| found.name == status.name),
            spec_of(pod, &status.name),
        ) else {
            continue;
        };
        let known = old.iter().flat_map(|old| &old.containers);
        let known = known
            .into_iter()
            .find(|known| known.container_id == found.id)
            .cloned();
        let mut entry = known.unwrap_or_else(|| RuntimeContainer {
            name: found.name.clone(),
            container_id: found.id.clone(),
            restart_count: found.restart_count,
            hashes: Hashes {
                plain_hash: found.hash,
                ..Hashes::default()
            },
        });
        let hash = &mut entry.hashes.extracted_env_from_metadata_hash;
        if *hash == 0
            && found.running
            && let Some(values) = environment(&found.id)
        {
            *hash = env_hash_of(spec, |name, _| values.get(name).cloned().unwrap_or_default());
        }
        // Only an update in place is a reason to restart: somebody who edits a pod does not ask for it.
        if updating && *hash != 0 && *hash != env_hash(spec, pod) {
            report.restarts.push((found.id.clone(), found.name.clone()));
        }
        containers.push(entry);
    }
    let new = RuntimeContainers { containers };
    if old.as_ref() != Some(&new) {
        report.text = serde_json::to_string(&new).ok();
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    const ONE: u64 = 3_624_006_759;

    fn pod(cfg: &str, updating: bool, written: Option<Value>) -> Pod {
        let mut annotations = json!({ "cfg": cfg });
        if let Some(written) = written {
            annotations[labels::RUNTIME_CONTAINERS] = json!(written.to_string());
        }
        let ready = if updating { "False" } else { "True" };
        serde_json::from_value(json!({
            "metadata": { "name": "p", "annotations": annotations, "ownerReferences": [
                { "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "s", "uid": "u", "controller": true },
            ] },
            "spec": { "containers": [{ "name": "main", "image": "openkruise/guestbook:v1", "env": [
                { "name": "CFG", "valueFrom": { "fieldRef": { "fieldPath": "metadata.annotations['cfg']" } } },
            ] }] },
            "status": {
                "conditions": [{ "type": "InPlaceUpdateReady", "status": ready }],
                "containerStatuses": [{ "name": "main", "containerID": "containerd://1", "image": "", "imageID": "",
                    "ready": true, "restartCount": 0 }],
            },
        }))
        .unwrap()
    }

    fn check(cfg: &str, updating: bool, written: Option<Value>, runs_with: &str) -> (Option<String>, usize) {
        let running = RunningContainer {
            name: "main".to_owned(),
            id: "containerd://1".to_owned(),
            restart_count: 0,
            hash: super::super::container_hash("main", "openkruise/guestbook:v1"),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            pre_stop: None,
            running: true,
        };
        let pod = pod(cfg, updating, written);
        let report = report(&pod, &[running], |_| {
            Some(BTreeMap::from([("CFG".to_owned(), runs_with.to_owned())]))
        });
        (report.text, report.restarts.len())
    }

    fn written() -> Value {
        json!({ "containers": [{ "name": "main", "containerID": "containerd://1", "restartCount": 0,
            "hashes": { "plainHash": 1_896_442_613, "extractedEnvFromMetadataHash": ONE } }] })
    }

    #[test]
    fn the_recorded_annotation() {
        let text = r#"{"containers":[{"name":"main","containerID":"containerd://1","restartCount":0,"hashes":{"plainHash":1896442613,"extractedEnvFromMetadataHash":3624006759}}]}"#;
        assert_eq!(check("one", false, None, "one"), (Some(text.to_owned()), 0));
    }

    #[rstest]
    #[case::nothing_new("one", true, 0)]
    #[case::changed_in_an_update("two", true, 1)]
    #[case::changed_by_somebody("two", false, 0)]
    fn restarts(#[case] cfg: &str, #[case] updating: bool, #[case] want: usize) {
        assert_eq!(check(cfg, updating, Some(written()), "one"), (None, want));
    }

    #[rstest]
    #[case::new_container(Some("one"), "one", None, true)]
    #[case::all_known(Some("one"), "one", Some(written()), false)]
    #[case::changed(Some("one"), "two", Some(written()), true)]
    #[case::there_before_the_daemon(None, "one", None, false)]
    #[case::known_before(None, "two", Some(written()), true)]
    fn what_is_due(
        #[case] old: Option<&str>,
        #[case] new: &str,
        #[case] text: Option<Value>,
        #[case] want: bool,
    ) {
        let old = old.map(|cfg| pod(cfg, false, text.clone()));
        assert_eq!(is_due(old.as_ref(), &pod(new, false, text)), want);
    }
}
