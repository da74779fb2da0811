//! The daemon's record of a pod, and the containers that it restarts.

use std::collections::BTreeMap;

use super::runtime::RunningContainer;
use crate::api::labels;
use crate::kit::controller_of;
use crate::pods::inplace::hash::{
    Hashes, RuntimeContainer, RuntimeContainers, env_hash, env_hash_of, has_references, runtime_containers,
};
use crate::pods::pod::{self, Container, Pod};

/// The next step for a pod.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Report {
    /// The annotation's new text, if it changes.
    pub(super) text: Option<String>,
    /// The ids and names of containers that run with another environment than they should.
    pub(super) restarts: Vec<(String, String)>,
    /// Whether the environment of a running container could not be read.
    pub(super) is_incomplete: bool,
}

/// Whether a pod belongs to one of OpenKruise's workloads, or has sidecars of a SidecarSet.
fn is_reported(pod: &Pod) -> bool {
    let group = controller_of(&pod.metadata).and_then(|owner| owner.api_version.split('/').next());
    group == Some("apps.kruise.io") || pod::annotation(pod, labels::SIDECARS_HASH).is_some()
}

/// Whether something of a reported pod is not written down, or no longer right. `with_environment` says whether environments count.
pub(super) fn is_due(old: Option<&Pod>, pod: &Pod, with_environment: bool) -> bool {
    if !is_reported(pod) || pod.metadata.deletion_timestamp.is_some() {
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
        if known.container_id != id {
            return true;
        }
        let wanted = env_hash(container, pod);
        with_environment
            && (known.hashes.extracted_env_from_metadata_hash != wanted
                || old.is_some_and(|old| env_hash(container, old) != wanted))
    })
}

/// The running containers whose environment has to be read: it is not written down, and has references to the pod.
pub(super) fn unread<'r>(pod: &Pod, running: &'r [RunningContainer]) -> Vec<&'r RunningContainer> {
    let known = runtime_containers(pod);
    let is_unread = |found: &&RunningContainer| {
        let mut known = known.iter().flat_map(|known| &known.containers);
        let known = known.find(|known| known.container_id == found.id);
        found.running
            && known.is_none_or(|known| known.hashes.extracted_env_from_metadata_hash == 0)
            && spec_of(pod, &found.name).is_some_and(has_references)
    };
    running.iter().filter(is_unread).collect()
}

fn spec_of<'p>(pod: &'p Pod, name: &str) -> Option<&'p Container> {
    pod::containers(pod)
        .iter()
        .find(|container| container.name == name)
}

/// The environments that were read, by the ids of containers.
pub(super) type Environments = BTreeMap<String, BTreeMap<String, String>>;

/// Compares the running containers with the record. Without `environments` they do not count.
pub(super) fn report(pod: &Pod, running: &[RunningContainer], environments: Option<&Environments>) -> Report {
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
        if let Some(environments) = environments {
            let hash = &mut entry.hashes.extracted_env_from_metadata_hash;
            let values = environments.get(&found.id);
            if *hash == 0 && found.running {
                match values {
                    None if has_references(spec) => report.is_incomplete = true,
                    _ => *hash = env_hash_of(spec, |name, _| value(values, name)),
                }
            }
            // Only an update in place is a reason to restart: somebody who edits a pod does not ask for it.
            if updating && *hash != 0 && *hash != env_hash(spec, pod) {
                report.restarts.push((found.id.clone(), found.name.clone()));
            }
        }
        containers.push(entry);
    }
    let new = RuntimeContainers { containers };
    if old.as_ref() != Some(&new) {
        report.text = serde_json::to_string(&new).ok();
    }
    report
}

fn value(values: Option<&BTreeMap<String, String>>, name: &str) -> String {
    values
        .and_then(|values| values.get(name))
        .cloned()
        .unwrap_or_default()
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

    fn running() -> RunningContainer {
        RunningContainer {
            name: "main".to_owned(),
            id: "containerd://1".to_owned(),
            restart_count: 0,
            hash: super::super::container_hash("main", "openkruise/guestbook:v1"),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            pre_stop: None,
            running: true,
        }
    }

    fn check(cfg: &str, updating: bool, written: Option<Value>, runs_with: &str) -> (Option<String>, usize) {
        let running = running();
        let pod = pod(cfg, updating, written);
        let values = BTreeMap::from([("CFG".to_owned(), runs_with.to_owned())]);
        let read = BTreeMap::from([(running.id.clone(), values)]);
        let report = report(&pod, &[running], Some(&read));
        assert!(!report.is_incomplete);
        (report.text, report.restarts.len())
    }

    /// A container that runs, whose environment is written down or not, refers to the pod or not, and was read or not: whether it has to
    /// be read, the hash in the report, and whether the report is incomplete.
    #[rstest]
    #[case::read(None, true, Some("one"), true, ONE, false)]
    #[case::could_not_be_read(None, true, None, true, 0, true)]
    #[case::tried_again(Some(0), true, Some("one"), true, ONE, false)]
    #[case::known(Some(ONE), true, None, false, ONE, false)]
    #[case::needs_none(None, false, None, false, 86_995_377, false)]
    fn environments(
        #[case] known: Option<u64>,
        #[case] refers: bool,
        #[case] read: Option<&str>,
        #[case] is_unread: bool,
        #[case] hash: u64,
        #[case] is_incomplete: bool,
    ) {
        let known = known.map(|hash| {
            let mut written = written();
            written["containers"][0]["hashes"]["extractedEnvFromMetadataHash"] = json!(hash);
            written
        });
        let mut pod = pod("one", false, known);
        if !refers {
            pod.spec.containers[0].env = Box::default();
        }
        let running = running();
        assert_eq!(
            unread(&pod, std::slice::from_ref(&running)).len(),
            usize::from(is_unread)
        );
        let values = read.map(|value| {
            let values = BTreeMap::from([("CFG".to_owned(), value.to_owned())]);
            (running.id.clone(), values)
        });
        let report = report(&pod, &[running], Some(&values.into_iter().collect()));
        let text = report.text.unwrap_or_else(|| written().to_string());
        let text: Value = serde_json::from_str(&text).unwrap();
        let found = text["containers"][0]["hashes"]["extractedEnvFromMetadataHash"].as_u64();
        assert_eq!(
            (found.unwrap_or_default(), report.is_incomplete),
            (hash, is_incomplete)
        );
    }

    #[test]
    fn without_the_gate_environments_do_not_count() {
        let pod = pod("two", true, None);
        let report = report(&pod, &[running()], None);
        assert_eq!((report.restarts.len(), report.is_incomplete), (0, false));
        let text: Value = serde_json::from_str(&report.text.unwrap()).unwrap();
        assert_eq!(
            text["containers"][0]["hashes"],
            json!({ "plainHash": 1_896_442_613 })
        );
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
        let is_changed = old.is_some() && new == "two";
        let pod = pod(new, false, text);
        assert_eq!(is_due(old.as_ref(), &pod, true), want);
        // Without environments a change of them is nothing new.
        assert_eq!(
            is_due(old.as_ref(), &pod, false),
            want && !is_changed && new == "one"
        );
    }

    #[rstest]
    #[case::of_a_clone_set("apps.kruise.io/v1alpha1", None, true)]
    #[case::of_a_deployment("apps/v1", None, false)]
    #[case::with_sidecars("apps/v1", Some(labels::SIDECARS_HASH), true)]
    fn reported_pods(#[case] version: &str, #[case] annotation: Option<&str>, #[case] want: bool) {
        let mut pod = pod("one", false, None);
        pod.metadata.owner_references.as_mut().unwrap()[0].api_version = version.to_owned();
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.extend(annotation.map(|name| (name.to_owned(), "{}".to_owned())));
        assert_eq!(is_due(Some(&pod), &pod, true), want);
    }
}
