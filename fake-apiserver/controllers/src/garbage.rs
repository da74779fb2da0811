//! The garbage collector: deletes objects whose owners are gone, in the background or the foreground, or orphans them.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, EventType, SharedClock};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::ApiResource;
use machinery::meta::{ObjectMeta, at};
use shared_json::{Value, json};

use super::absent::Absent;
use super::graph::{Graph, Node, Owner, Stranger};
use super::runtime::Queue;
use super::watching::{Change, ServedKind, kind_of, served_kinds, watch, watch_metadata};

const DEFINITION: &str = "CustomResourceDefinition";
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// How long an owner stays after its dependents were orphaned. A real collector's requests take about so long, and a controller may
/// see the orphans meanwhile, and take them back.
const ORPHANED: Duration = Duration::from_millis(50);

type Changes = BoxStream<'static, (usize, Change)>;

/// Why a look at an object has to be repeated.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The kind of an owner is not served (yet).
    #[error("find {kind} of {api_version}, the kind of an owner")]
    UnknownKind { api_version: String, kind: String },
}

/// The garbage collector.
pub struct GarbageCollector {
    client: Client,
    kinds: Vec<ServedKind>,
    /// Whether all that is served could be discovered the last time.
    found_all: bool,
    graph: Graph,
    absent: Absent,
    /// The uids of objects to look at again.
    again: Queue<String>,
    recorder: EventRecorder,
}

impl GarbageCollector {
    /// A collector over `client`. Must be made within a tokio runtime.
    #[must_use]
    pub fn new(client: Client, clock: SharedClock) -> Self {
        let recorder = EventRecorder::new(client.clone(), "garbage-collector-controller", None, clock);
        Self {
            recorder: recorder.with_reporting(true),
            client,
            kinds: Vec::new(),
            found_all: false,
            graph: Graph::default(),
            absent: Absent::default(),
            again: Queue::new(),
        }
    }

    /// Runs until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(mut self) {
        let mut changes = SelectAll::new();
        self.find_kinds(&mut changes).await;
        loop {
            let next = async {
                match changes.next().await {
                    Some(change) => change,
                    None => std::future::pending().await,
                }
            };
            let change = match self.again.next_due() {
                Some(due) => tokio::time::timeout_at(due, next).await.ok(),
                None => Some(next.await),
            };
            if let Some((kind, change)) = change {
                self.observe(&mut changes, kind, change).await;
            }
            while let Some(uid) = self.again.pop() {
                self.look(&uid).await;
            }
        }
    }

    /// Begins to watch the kinds that are served and not watched yet.
    async fn find_kinds(&mut self, changes: &mut SelectAll<Changes>) {
        let served = match served_kinds(&self.client).await {
            Ok(served) => served,
            Err(error) => {
                tracing::debug!(%error, "discover what to collect");
                self.found_all = false;
                return;
            }
        };
        self.found_all = served.failed.is_empty();
        // What is not told of is looked for with the next definition; what was found before stays.
        for (version, why) in &served.failed {
            tracing::debug!(%version, %why, "discover what to collect");
        }
        for kind in served.kinds {
            // Events own nothing and are owned by nothing, and there are many of them.
            let is_event = kind.resource.group.is_empty() && kind.resource.plural == "events";
            if is_event || self.kinds.contains(&kind) {
                continue;
            }
            let index = self.kinds.len();
            // Of definitions it also matters whether their kinds are served yet.
            let of_kind = if kind.resource.kind == DEFINITION {
                watch(&self.client, &kind.resource)
            } else {
                watch_metadata(&self.client, &kind.resource)
            };
            changes.push(of_kind.map(move |change| (index, change)).boxed());
            self.kinds.push(kind);
        }
    }

    async fn observe(&mut self, changes: &mut SelectAll<Changes>, kind: usize, change: Change) {
        let Some(kind) = self.kinds.get(kind).map(|kind| Arc::clone(&kind.resource)) else {
            return;
        };
        match change {
            Change::Present(object) => {
                let before = self.graph.get(object.uid()).map(|node| node.owners.clone());
                let strangers = self.graph.put(&kind, &object);
                self.report(&strangers);
                if kind.kind == DEFINITION
                    && is_established(&object)
                    && !(self.found_all && is_watched(&self.kinds, &object))
                {
                    self.find_kinds(changes).await;
                }
                self.look(object.uid()).await;
                // An owner may have waited for this one, which is no longer its own.
                for owner in self.left(object.uid(), before.unwrap_or_default()) {
                    self.look(&owner).await;
                }
            }
            Change::Gone(object) => {
                let gone = self.graph.get(object.uid()).cloned();
                if let Some(node) = gone
                    .as_ref()
                    .filter(|_| !self.graph.dependents_of(object.uid()).is_empty())
                {
                    self.absent.add(object.uid(), node);
                }
                let owners = gone.map(|node| node.owners.clone()).unwrap_or_default();
                for dependent in self.graph.remove(object.uid()) {
                    self.look(&dependent).await;
                }
                // An owner may have waited for this one in the foreground.
                for owner in owners {
                    self.look(&owner.uid).await;
                }
            }
        }
    }

    /// Which of the owners that an object had before do not own it any more, or not as they did.
    fn left(&self, uid: &str, before: Vec<Owner>) -> Vec<String> {
        let now = self.graph.get(uid).map_or(&[][..], |node| &node.owners);
        let same = |owner: &Owner| {
            now.iter()
                .any(|one| one.uid == owner.uid && one.blocks == owner.blocks)
        };
        let gone = before.into_iter().filter(|owner| !same(owner));
        gone.map(|owner| owner.uid).collect()
    }

    /// Says of objects that they name owners which are in another namespace.
    fn report(&self, strangers: &[Stranger]) {
        for (uid, owner) in strangers {
            let Some(node) = self.graph.get(uid) else {
                continue;
            };
            let reference = ObjectReference {
                api_version: Some(node.kind.api_version.clone()),
                kind: Some(node.kind.kind.clone()),
                name: Some(node.name.to_string()),
                namespace: Some(node.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
                uid: Some(uid.clone()),
                ..ObjectReference::default()
            };
            let namespace = &node.namespace;
            let message = format!(
                "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace \"{namespace}\"",
                owner.api_version, owner.kind, owner.name, owner.uid
            );
            self.recorder.event(
                &reference,
                EventType::Warning,
                "OwnerRefInvalidNamespace",
                message,
            );
        }
    }

    /// Processes one object by its present state; tries again later if that fails.
    async fn look(&mut self, uid: &str) {
        let Some(node) = self.graph.get(uid).cloned() else {
            self.again.succeeded(&uid.to_owned());
            return;
        };
        let result = if node.terminating && node.finalizers.iter().any(|name| name == ORPHAN) {
            self.orphan(uid, &node).await.map_err(Failure::from)
        } else if node.terminating && node.finalizers.iter().any(|name| name == FOREGROUND) {
            self.foreground(uid, &node).await.map_err(Failure::from)
        } else if node.terminating {
            Ok(())
        } else {
            self.collect(uid, &node).await
        };
        match result {
            Ok(()) => self.again.succeeded(&uid.to_owned()),
            Err(error) => {
                tracing::debug!(%error, name = %node.name, "collect garbage");
                self.again.add_failed(uid.to_owned());
            }
        }
    }

    /// Deletes the object if it had owners and none is left; takes out those that are gone where another one is left.
    async fn collect(&mut self, uid: &str, node: &Node) -> Result<(), Failure> {
        if node.owners.is_empty() {
            return Ok(());
        }
        let mut waiting = false;
        let mut left = false;
        let mut going = Vec::new();
        for owner in &node.owners {
            // What has the uid and is not what the reference names is not the owner.
            let named = self
                .graph
                .get(&owner.uid)
                .filter(|present| present.is_named_by(owner))
                .cloned();
            match named {
                // An owner that is being deleted in the foreground takes its dependents with it.
                Some(present)
                    if present.terminating && present.finalizers.iter().any(|name| name == FOREGROUND) =>
                {
                    waiting = true;
                    going.push(owner.uid.as_str());
                }
                // One in another namespace is none.
                Some(present) if !present.namespace.is_empty() && present.namespace != node.namespace => {
                    going.push(owner.uid.as_str());
                }
                Some(_) => left = true,
                None if self.exists(owner, &node.namespace).await? => left = true,
                None => going.push(owner.uid.as_str()),
            }
        }
        if left {
            return match going.as_slice() {
                [] => Ok(()),
                going => Ok(self.disown(uid, node, going).await?),
            };
        }
        if !self.is_current(uid, node).await? {
            return Ok(());
        }
        if waiting {
            return Ok(self.delete_in_foreground(uid, node).await?);
        }
        Ok(self.delete(uid, node, PropagationPolicy::Background).await?)
    }

    /// Deletes a dependent whose owner waits for it. If one of the dependent's own dependents waits in the foreground as well, they
    /// may own one another in a circle: then the dependent's references stop blocking first, as the real collector does it.
    async fn delete_in_foreground(&self, uid: &str, node: &Node) -> Result<(), kube::Error> {
        let waits = |dependent: &String| {
            let found = self.graph.get(dependent);
            found.is_some_and(|one| one.terminating && one.finalizers.iter().any(|name| name == FOREGROUND))
        };
        let blocks = node.owners.iter().any(|owner| owner.blocks);
        if blocks && self.graph.dependents_of(uid).iter().any(waits) {
            // The watch shows the changed references, and the next look deletes the dependent.
            return self.unblock(uid, node).await;
        }
        self.delete(uid, node, PropagationPolicy::Foreground).await
    }

    /// Sets `blockOwnerDeletion` to false in all of an object's references.
    async fn unblock(&self, uid: &str, node: &Node) -> Result<(), kube::Error> {
        let references: Vec<Value> = node
            .owners
            .iter()
            .map(|owner| {
                let mut entry = owner.entry.clone();
                if owner.blocks {
                    entry["blockOwnerDeletion"] = json!(false);
                }
                entry
            })
            .collect();
        self.patch_references(uid, node, references).await
    }

    /// Whether an owner that is not in the graph exists.
    async fn exists(&mut self, owner: &Owner, namespace: &str) -> Result<bool, Failure> {
        if self.absent.contains(owner, namespace) {
            return Ok(false);
        }
        let known = self
            .kinds
            .iter()
            .find(|kind| kind.resource.api_version == owner.api_version && kind.resource.kind == owner.kind)
            .cloned();
        let kind = match known {
            Some(kind) => Some(kind),
            None => kind_of(&self.client, &owner.api_version, &owner.kind).await?,
        };
        let kind = kind.ok_or_else(|| Failure::UnknownKind {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
        })?;
        let namespace = if kind.namespaced { namespace } else { "" };
        let api = api_of(&self.client, &kind.resource, namespace);
        let found = api.get_metadata_opt(&owner.name).await?;
        let found = found.is_some_and(|found| found.metadata.uid.as_deref() == Some(&owner.uid));
        if !found {
            self.absent.add_owner(owner, namespace);
        }
        Ok(found)
    }

    /// Whether the server still has an object as the graph has it; if it has not, the watch tells. The real collector reads an object
    /// before it deletes it, too, which gives other controllers the time to see that the owner is gone.
    async fn is_current(&self, uid: &str, node: &Node) -> Result<bool, kube::Error> {
        let api = api_of(&self.client, &node.kind, &node.namespace);
        let found = api.get_metadata_opt(&node.name).await?;
        Ok(found.is_some_and(|found| {
            found.metadata.uid.as_deref() == Some(uid)
                && found.metadata.resource_version.as_deref() == Some(&*node.version)
        }))
    }

    async fn delete(&self, uid: &str, node: &Node, policy: PropagationPolicy) -> Result<(), kube::Error> {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                // It may have lost its owners' references meanwhile; if it has changed, the watch will tell.
                resource_version: Some(node.version.to_string()).filter(|version| !version.is_empty()),
            }),
            ..DeleteParams::default()
        };
        let api = api_of(&self.client, &node.kind, &node.namespace);
        match api.delete(&node.name, &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Deletes the dependents, and lets the owner go when none that blocks it is left.
    async fn foreground(&mut self, uid: &str, node: &Node) -> Result<(), kube::Error> {
        let mut blocked = false;
        for dependent_uid in self.graph.dependents_of(uid) {
            let Some(dependent) = self.graph.get(&dependent_uid).cloned() else {
                continue;
            };
            let others = dependent
                .owners
                .iter()
                .any(|owner| owner.uid != uid && self.graph.contains(&owner.uid));
            if !dependent.terminating && others {
                // One that has another owner stays, without this one.
                self.disown(&dependent_uid, &dependent, &[uid]).await?;
                self.graph.disown(&dependent_uid, uid);
                continue;
            }
            blocked |= dependent
                .owners
                .iter()
                .any(|owner| owner.uid == uid && owner.blocks);
            if !dependent.terminating {
                self.delete_in_foreground(&dependent_uid, &dependent).await?;
            }
        }
        if blocked {
            Ok(())
        } else {
            self.remove_finalizer(uid, node, FOREGROUND).await
        }
    }

    /// Takes the owner out of its dependents' references, then lets it go.
    async fn orphan(&mut self, uid: &str, node: &Node) -> Result<(), kube::Error> {
        for dependent_uid in self.graph.dependents_of(uid) {
            let Some(dependent) = self.graph.get(&dependent_uid).cloned() else {
                continue;
            };
            self.disown(&dependent_uid, &dependent, &[uid]).await?;
            // The owner may be seen to go before this dependent is seen to have changed.
            self.graph.disown(&dependent_uid, uid);
        }
        tokio::time::sleep(ORPHANED).await;
        self.remove_finalizer(uid, node, ORPHAN).await
    }

    /// Takes owners out of an object's references.
    async fn disown(&self, uid: &str, node: &Node, owners: &[&str]) -> Result<(), kube::Error> {
        let is_out = |owner: &&Owner| owners.contains(&owner.uid.as_str());
        let references = if takes_strategic_patches(&node.kind) {
            let out = owners.iter();
            out.map(|owner| json!({"$patch": "delete", "uid": owner}))
                .collect()
        } else {
            let left = node.owners.iter().filter(|owner| !is_out(owner));
            left.map(|owner| owner.entry.clone()).collect()
        };
        self.patch_references(uid, node, references).await
    }

    /// Patches an object's references: by strategic merge, which takes them one by one, where its kind allows that.
    async fn patch_references(
        &self,
        uid: &str,
        node: &Node,
        references: Vec<Value>,
    ) -> Result<(), kube::Error> {
        let api = api_of(&self.client, &node.kind, &node.namespace);
        let patch = json!({"metadata": {"uid": uid, "ownerReferences": references}});
        let patch = if takes_strategic_patches(&node.kind) {
            Patch::Strategic(&patch)
        } else {
            Patch::Merge(&patch)
        };
        let result = api
            .patch_metadata(&node.name, &PatchParams::default(), &patch)
            .await;
        match result {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn remove_finalizer(&self, uid: &str, node: &Node, finalizer: &str) -> Result<(), kube::Error> {
        let left: Vec<&String> = node.finalizers.iter().filter(|name| *name != finalizer).collect();
        let patch = json!({"metadata": {"uid": uid, "finalizers": left}});
        let api = api_of(&self.client, &node.kind, &node.namespace);
        match api
            .patch_metadata(&node.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
        {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

fn api_of(client: &Client, kind: &ApiResource, namespace: &str) -> Api<DynamicObject> {
    if namespace.is_empty() {
        Api::all_with(client.clone(), kind)
    } else {
        Api::namespaced_with(client.clone(), namespace, kind)
    }
}

/// Whether objects of a kind take strategic merge patches: those of built-in kinds do.
fn takes_strategic_patches(kind: &ApiResource) -> bool {
    !kind.group.contains('.') || kind.group.ends_with(".k8s.io")
}

/// Whether the kind of a definition is among these, in a version that is served.
fn is_watched(kinds: &[ServedKind], definition: &Value) -> bool {
    let has = |path: &str, text: &str| at(definition, path).is_some_and(|value| value == text);
    let serves = |name: &str| {
        let versions = at(definition, "spec.versions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten();
        versions.any(|version| version["name"] == name && version["served"] == true)
    };
    let mut of_definition = kinds.iter().filter(|kind| {
        has("spec.group", &kind.resource.group) && has("spec.names.plural", &kind.resource.plural)
    });
    of_definition.any(|kind| serves(&kind.resource.version))
}

fn is_established(definition: &Value) -> bool {
    let conditions = at(definition, "status.conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Of `cars.e.com`, `v1` is watched.
    #[rstest]
    #[case::the_same("e.com", "cars", &[("v1", true)], true)]
    #[case::a_further_version("e.com", "cars", &[("v2", true), ("v1", true)], true)]
    #[case::the_version_is_not_served("e.com", "cars", &[("v2", true), ("v1", false)], false)]
    #[case::the_version_is_gone("e.com", "cars", &[("v2", true)], false)]
    #[case::another_group("f.com", "cars", &[("v1", true)], false)]
    #[case::another_kind("e.com", "vans", &[("v1", true)], false)]
    fn definitions_that_bring_no_kind(
        #[case] group: &str,
        #[case] plural: &str,
        #[case] versions: &[(&str, bool)],
        #[case] expect: bool,
    ) {
        let resource = ApiResource {
            group: "e.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "e.com/v1".to_owned(),
            kind: "Car".to_owned(),
            plural: "cars".to_owned(),
        };
        let cars = ServedKind {
            resource: Arc::new(resource),
            namespaced: true,
        };
        let versions = versions
            .iter()
            .map(|(name, served)| json!({"name": name, "served": served}));
        let versions: Vec<Value> = versions.collect();
        let definition = json!({"spec": {"group": group, "names": {"plural": plural}, "versions": versions}});
        assert_eq!(is_watched(&[cars], &definition), expect);
    }
}
