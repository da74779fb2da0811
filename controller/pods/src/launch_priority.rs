//! Containers of one pod that start one after the other, the ones with the highest priority first.
//!
//! The webhook gives every container of such a pod an environment variable out of the ConfigMap `<pod>-barrier`
//! ([`inject`]). The kubelet cannot start a container before the key of its priority is in there, and the controller
//! ([`Launcher`]) writes a key when everything with a higher priority is ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_api::labels;
use kruise_kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::CachedPod;
use crate::pod::{self, Container, Pod};

/// Before the number in a key of a barrier.
const KEY_PREFIX: &str = "p_";
/// The value of the annotation that asks for the spec's order.
const ORDERED: &str = "Ordered";

/// Puts the barrier into the containers of a new pod, if it asks for an order and has more than one. A pod that is yet to
/// get its name gets one with `suffix`, because the barrier is named after it.
///
/// # Errors
/// Go's text when a priority is no number.
pub fn inject(pod: &mut Value, suffix: impl FnOnce() -> String) -> Result<(), String> {
    let Some(priorities) = priorities(pod)? else {
        return Ok(());
    };
    let text = |path: &str| {
        pod.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (mut name, prefix) = (text("/metadata/name"), text("/metadata/generateName"));
    if name.is_empty() && !prefix.is_empty() {
        name = format!("{prefix}{}", suffix());
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), json!(name));
        }
    }
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for (container, priority) in containers.into_iter().flatten().zip(priorities) {
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let env = container.entry("env").or_insert_with(|| json!([]));
        if env.is_null() {
            *env = json!([]);
        }
        if let Some(env) = env.as_array_mut() {
            env.push(json!({
                "name": labels::CONTAINER_BARRIER_ENV,
                "valueFrom": { "configMapKeyRef": { "name": barrier_name(&name), "key": key(priority) } },
            }));
        }
    }
    Ok(())
}

/// The priority of each container, if there is an order to keep.
fn priorities(pod: &Value) -> Result<Option<Vec<i64>>, String> {
    let containers = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if containers.len() == 1 {
        return Ok(None);
    }
    let annotations = pod.pointer("/metadata/annotations");
    let asked = annotations.and_then(|map| map.get(labels::CONTAINER_LAUNCH_PRIORITY)?.as_str());
    if asked == Some(ORDERED) {
        return Ok(Some(
            (0..).map(|index: i64| -index).take(containers.len()).collect(),
        ));
    }
    let mut priorities = Vec::new();
    for container in containers {
        let env = container.get("env").and_then(Value::as_array);
        let mut priority = 0;
        for entry in env
            .into_iter()
            .flatten()
            .filter(|entry| entry.get("name").and_then(Value::as_str) == Some(labels::CONTAINER_PRIORITY_ENV))
        {
            let text = entry.get("value").and_then(Value::as_str).unwrap_or_default();
            priority = text
                .parse()
                .map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))?;
        }
        priorities.push(priority);
    }
    let differ = priorities
        .iter()
        .any(|priority| Some(priority) != priorities.first());
    Ok(differ.then_some(priorities))
}

fn barrier_name(pod: &str) -> String {
    format!("{pod}-barrier")
}

fn key(priority: i64) -> String {
    format!("{KEY_PREFIX}{priority}")
}

/// The priority with which the barrier holds a container; none without a barrier.
pub fn priority_of(container: &Container) -> Option<i64> {
    let env = container.env.iter();
    let barrier = env
        .into_iter()
        .find(|env| env.name == labels::CONTAINER_BARRIER_ENV)?;
    let key = &barrier.value_from.as_ref()?.config_map_key_ref.as_ref()?.key;
    // Go takes what it cannot read for zero.
    Some(
        key.strip_prefix(KEY_PREFIX)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0),
    )
}

/// The lowest and the highest priority of the containers that are not ready.
fn waiting(pod: &Pod) -> Option<(i64, i64)> {
    let ready = |name: &str| {
        pod::container_statuses(pod)
            .iter()
            .any(|status| status.name == name && status.ready)
    };
    let waiting = pod::containers(pod)
        .iter()
        .filter(|container| !ready(&container.name));
    let priorities: Vec<i64> = waiting.filter_map(priority_of).collect();
    Some((*priorities.iter().min()?, *priorities.iter().max()?))
}

/// Whether a container of the pod may wait for the controller.
pub fn is_due(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod::containers(pod).len() > 1
        && pod::annotation(pod, labels::CONTAINER_LAUNCH_COMPLETED) != Some("true")
        && !pod::is_true(pod, "ContainersReady")
        && waiting(pod).is_some()
}

/// Writes the keys of barriers.
pub struct Launcher {
    client: Client,
    pods: Informer<CachedPod>,
    written: Arc<Written>,
}

/// The last key that each pod got, by uid, so that its other changes cost no request.
#[derive(Default)]
struct Written(Mutex<BTreeMap<String, i64>>);

impl Written {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pod is at another priority than the last time a key was written for it.
    fn is_behind(&self, pod: &Pod) -> bool {
        is_due(pod) && waiting(pod).is_some_and(|(_, next)| self.lock().get(pod::uid(pod)) != Some(&next))
    }
}

impl Reconciler for Launcher {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "container-launch-priority-controller"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let written = Arc::clone(&self.written);
        watches.on(&self.pods, move |change, queue| match change {
            Change::Added(pod) | Change::Updated(_, pod) => {
                if written.is_behind(pod) {
                    queue.add(ObjectKey::of(pod.as_ref()));
                }
            }
            Change::Deleted(pod) => {
                written.lock().remove(pod::uid(pod));
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        if let Some(pod) = self.pods.get(key) {
            self.launch(&pod).await?;
        }
        Ok(Next::Event)
    }
}

impl Launcher {
    /// Looks at the pods of the cache.
    pub fn new(client: Client, pods: Informer<CachedPod>) -> Self {
        Self {
            client,
            pods,
            written: Arc::default(),
        }
    }

    /// Lets the containers of the next priority start, and marks the pod when those were the last.
    ///
    /// # Errors
    /// Those of the requests.
    async fn launch(&self, pod: &Pod) -> Result<(), kube::Error> {
        let Some((lowest, next)) = waiting(pod).filter(|_| is_due(pod)) else {
            return Ok(());
        };
        let barriers: Api<ConfigMap> =
            Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let name = barrier_name(pod::name(pod));
        let barrier = match barriers.get_opt(&name).await? {
            Some(barrier) => barrier,
            None => barriers.create(&PostParams::default(), &barrier(pod)).await?,
        };
        let has = |priority: i64| {
            barrier
                .data
                .as_ref()
                .is_some_and(|data| data.contains_key(&key(priority)))
        };
        let params = PatchParams::default();
        if !has(next) && !has(lowest) {
            let patch = json!({ "data": { key(next): "true" } });
            barriers.patch(&name, &params, &Patch::Strategic(&patch)).await?;
        }
        self.written.lock().insert(pod::uid(pod).to_owned(), next);
        if lowest == next || has(lowest) {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            let patch = json!({ "metadata": {
                "uid": pod::uid(pod),
                "annotations": { labels::CONTAINER_LAUNCH_COMPLETED: "true" },
            } });
            match pods
                .patch(pod::name(pod), &params, &Patch::Strategic(&patch))
                .await
            {
                // The pod has gone, or another has its name.
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
                result => drop(result?),
            }
        }
        Ok(())
    }
}

/// A barrier without keys, which goes with its pod.
fn barrier(pod: &Pod) -> ConfigMap {
    let mut barrier = ConfigMap::default();
    barrier.metadata.name = Some(barrier_name(pod::name(pod)));
    barrier.metadata.namespace = pod.namespace();
    barrier.metadata.owner_references = Some(vec![
        k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: pod::name(pod).to_owned(),
            uid: pod::uid(pod).to_owned(),
            ..Default::default()
        },
    ]);
    barrier
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn raw(priorities: &[Option<&str>], ordered: bool) -> Value {
        let containers: Vec<Value> = priorities
            .iter()
            .enumerate()
            .map(|(index, priority)| {
                let env =
                    priority.map(|value| json!([{ "name": "KRUISE_CONTAINER_PRIORITY", "value": value }]));
                json!({ "name": format!("c{index}"), "env": env })
            })
            .collect();
        let annotations = ordered.then(|| json!({ "apps.kruise.io/container-launch-priority": "Ordered" }));
        json!({ "metadata": { "generateName": "web-", "annotations": annotations }, "spec": { "containers": containers } })
    }

    /// The keys that the containers wait for; empty for a pod that is left alone.
    fn check(priorities: &[Option<&str>], ordered: bool) -> Result<Vec<String>, String> {
        let mut pod = raw(priorities, ordered);
        inject(&mut pod, || "abcde".to_owned())?;
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let barrier = |container: &Value| -> Option<String> {
            let entry = container["env"].as_array()?.last()?;
            let from = &entry["valueFrom"]["configMapKeyRef"];
            (from["name"] == "web-abcde-barrier").then(|| from["key"].as_str().unwrap().to_owned())
        };
        Ok(containers.iter().filter_map(barrier).collect())
    }

    #[rstest]
    #[case::nothing_asked(&[None, None], false, &[])]
    #[case::one_container(&[Some("5")], false, &[])]
    #[case::all_the_same(&[Some("5"), Some("5")], false, &[])]
    #[case::zero_is_none(&[Some("0"), None], false, &[])]
    #[case::by_number(&[Some("1"), Some("5"), None], false, &["p_1", "p_5", "p_0"])]
    #[case::negative(&[Some("-2"), None], false, &["p_-2", "p_0"])]
    #[case::as_they_stand(&[None, Some("9"), None], true, &["p_0", "p_-1", "p_-2"])]
    #[case::ordered_alone(&[None], true, &[])]
    fn barriers(#[case] priorities: &[Option<&str>], #[case] ordered: bool, #[case] want: &[&str]) {
        assert_eq!(check(priorities, ordered).unwrap(), want);
    }

    #[test]
    fn a_priority_is_a_number() {
        let error = check(&[Some("high"), None], false).unwrap_err();
        assert_eq!(error, "strconv.Atoi: parsing \"high\": invalid syntax");
    }

    #[rstest]
    #[case::first(&["c0", "c1", "c2"], Some((0, 5)))]
    #[case::second(&["c0", "c2"], Some((0, 1)))]
    #[case::last(&["c2"], Some((0, 0)))]
    #[case::all_ready(&[], None)]
    fn who_is_next(#[case] unready: &[&str], #[case] want: Option<(i64, i64)>) {
        let mut raw = raw(&[Some("1"), Some("5"), None], false);
        inject(&mut raw, || "abcde".to_owned()).unwrap();
        let statuses: Vec<Value> = ["c0", "c1", "c2"]
            .iter()
            .map(|name| json!({ "name": name, "ready": !unready.contains(name), "image": "", "imageID": "", "restartCount": 0 }))
            .collect();
        raw["status"] = json!({ "containerStatuses": statuses });
        let pod: Pod = serde_json::from_value(raw).unwrap();
        assert_eq!(waiting(&pod), want);
        assert_eq!(is_due(&pod), want.is_some());
    }
}
