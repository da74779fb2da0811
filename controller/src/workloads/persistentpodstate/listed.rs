//! Watches workloads of the kinds that the white list has. The list is read when the manager starts, as in OpenKruise.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};

use super::auto;
use super::controller::Key;
use super::wake::queue_states;
use crate::api::v1alpha1::{PersistentPodState, TargetReference};
use crate::injection::pod_states::white_list::{KEY, Listed, WhiteList};
use crate::kit::settings::setting;
use crate::kit::{ActError, Informer, ObjectKey, WorkQueue};
use crate::targets::Lookup;

/// The delay after the first request that fails, doubled by each further one …
const RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
/// … up to this.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(30);

/// The watches of all listed kinds.
pub(super) struct ListedKinds {
    pub(super) client: Client,
    pub(super) lookup: Lookup,
    pub(super) own_namespace: String,
    pub(super) namespace: Option<String>,
    pub(super) states: Informer<PersistentPodState>,
    pub(super) queue: Arc<WorkQueue<Key>>,
}

impl ListedKinds {
    /// Watches for ever.
    pub(super) async fn run(self) {
        let list = retried(|| self.list()).await;
        join_all(list.workloads.iter().map(|kind| self.watch(kind))).await;
    }

    /// The list. One that cannot be read has no kinds.
    async fn list(&self) -> Result<WhiteList, ActError> {
        let text = setting(&self.client, &self.own_namespace, KEY).await?;
        Ok(WhiteList::of(text.as_deref()).unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read {KEY}");
            WhiteList::default()
        }))
    }

    /// Watches the workloads of a kind, once the server serves it.
    async fn watch(&self, listed: &Listed) {
        let api_version = format!("{}/{}", listed.group, listed.version);
        let namespace = self.namespace.as_deref();
        let api = retried(|| self.lookup.all(namespace, &api_version, &listed.kind)).await;
        self.follow(api, &api_version, &listed.kind).await;
    }

    async fn follow(&self, api: Api<PartialObjectMeta<DynamicObject>>, api_version: &str, kind: &str) {
        let mut events = pin!(watcher(api, watcher::Config::default()));
        let mut known = Known::default();
        while let Some(event) = events.next().await {
            let changed = match event {
                Ok(event) => known.take(event),
                Err(error) => {
                    tracing::warn!(kind, %error, "failed to watch");
                    tokio::time::sleep(RETRY_DELAY_MIN).await;
                    continue;
                }
            };
            for key in changed {
                let workload = TargetReference {
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    name: key.name.clone(),
                };
                queue_states(&self.states, &workload, &key.namespace, &self.queue);
                self.queue.add(Key::Workload(key.namespace, workload));
            }
        }
    }
}

/// The answer to a request that is repeated until there is one.
async fn retried<T, F: Future<Output = Result<T, ActError>>>(ask: impl Fn() -> F) -> T {
    let mut delay = RETRY_DELAY_MIN;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                tracing::warn!(%error, "failed to watch the workloads of a listed kind");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY_DELAY_MAX);
            }
        }
    }
}

/// The part of a workload that says whether it is to be looked at: its generation, whether it goes, and the annotations that ask for a
/// PersistentPodState.
type Stand = (Option<i64>, bool, [Option<String>; 4]);

/// The workloads of a kind as far as the watch has got.
#[derive(Default)]
struct Known {
    stands: BTreeMap<ObjectKey, Stand>,
    listing: BTreeMap<ObjectKey, Stand>,
}

impl Known {
    /// Takes an event in, and gives the workloads that are to be looked at.
    fn take(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) -> Vec<ObjectKey> {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.insert(key(&object), stand(&object.metadata));
            }
            Event::InitDone => {
                let listing = std::mem::take(&mut self.listing);
                let gone = self.stands.keys().filter(|key| !listing.contains_key(key));
                let other = listing
                    .iter()
                    .filter(|(key, stand)| self.stands.get(key) != Some(stand))
                    .map(|(key, _)| key);
                let changed = gone.chain(other).cloned().collect();
                self.stands = listing;
                return changed;
            }
            Event::Apply(object) => {
                let stand = stand(&object.metadata);
                if self.stands.insert(key(&object), stand.clone()) != Some(stand) {
                    return vec![key(&object)];
                }
            }
            Event::Delete(object) => {
                self.stands.remove(&key(&object));
                return vec![key(&object)];
            }
        }
        Vec::new()
    }
}

fn key(object: &PartialObjectMeta<DynamicObject>) -> ObjectKey {
    ObjectKey::new(&object.namespace().unwrap_or_default(), &object.name_any())
}

fn stand(metadata: &ObjectMeta) -> Stand {
    (
        metadata.generation,
        metadata.deletion_timestamp.is_some(),
        auto::wish(metadata).map(|value| value.cloned()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, generation: i64) -> PartialObjectMeta<DynamicObject> {
        let metadata = json!({ "name": name, "namespace": "n", "generation": generation });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    /// Each word: `l` begins a list, `.` ends it, `ax1` applies generation 1 of x (within a list: lists it), `-x` deletes it.
    #[rstest::rstest]
    #[case("l ax1 ay1 .", "x y")]
    #[case("l ax1 . ax1", "x")]
    #[case("l ax1 . ax2 ay1", "x x y")]
    #[case("l ax1 . -x", "x x")]
    #[case("l ax1 ay1 az1 . l ax1 ay2 .", "x y z z y")]
    fn workloads_that_are_looked_at(#[case] steps: &str, #[case] expect: &str) {
        let (mut known, mut listing, mut found) = (Known::default(), false, Vec::new());
        for step in steps.split(' ') {
            let event = match step {
                "l" => Event::Init,
                "." => Event::InitDone,
                _ => match step.strip_prefix('-') {
                    Some(name) => Event::Delete(object(name, 0)),
                    None if listing => Event::InitApply(object(&step[1..2], step[2..].parse().unwrap())),
                    None => Event::Apply(object(&step[1..2], step[2..].parse().unwrap())),
                },
            };
            listing = (listing || step == "l") && step != ".";
            found.extend(known.take(event).into_iter().map(|key| key.name));
        }
        assert_eq!(found.join(" "), expect);
    }
}
