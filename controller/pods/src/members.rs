//! The pods and claims of owners: which owner a change concerns, and the fate of members that the watches do not show.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_kit::expectations::{EXPECTATION_TIMEOUT, Expectations, Expected, Member, Visible};
use kruise_kit::{ActError, Change, Informer, ObjectKey, Owner, Watches, WorkQueue, controller_of_kind};
use kube::core::{NamespaceResourceScope, Selector, SelectorExt as _};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::actor::Actor;
use super::revision_keeper::RevisionKeeper;
use super::{CachedPod, PodAction, adoption, pod};

/// The pods and claims of owners, as the caches have them. Owners whose pods have no claims of their own have no cache of them.
#[derive(Clone, Copy)]
pub struct Members<'a> {
    /// The cache of pods.
    pub pods: &'a Informer<CachedPod>,
    /// The cache of claims.
    pub claims: Option<&'a Informer<PersistentVolumeClaim>>,
    /// Who writes them.
    pub actor: &'a Actor,
}

/// Whether the caches show everything that was done for an owner.
pub enum Shown {
    /// They do.
    All,
    /// Something may still come, for so long: the owner's pass waits.
    After(Duration),
    /// Something did not come in time; the caches have the server's answer now.
    Late,
}

/// Writes to pods that the watch has not shown.
enum Unseen {
    /// None.
    None,
    /// They may still come, for so long.
    For(Duration),
    /// They will not: these pods are not as the cache has them.
    TooLong(Vec<Arc<CachedPod>>),
}

/// Has changes of sets wake them. A deleted set's expectations are dropped: a new set of the same name does not wait for them.
pub fn watch_sets<S>(watches: &mut Watches<ObjectKey>, sets: &Informer<S>, expectations: &Arc<Expectations>)
where
    S: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let expectations = Arc::clone(expectations);
    watches.on(sets, move |change, queue| {
        if let Change::Deleted(set) = change {
            expectations.forget_set(&ObjectKey::of(set.as_ref()));
        }
        let (Change::Added(set) | Change::Updated(_, set) | Change::Deleted(set)) = change;
        queue.add(ObjectKey::of(set.as_ref()));
    });
}

/// Finds the writes to pods that the cache does not show.
fn unseen_writes(pods: &[Arc<CachedPod>], expectations: &Expectations) -> Unseen {
    let mut delay = None;
    let mut lost = Vec::new();
    for pod in pods.iter().filter(|pod| pod::is_active(pod)) {
        let version = pod.metadata.resource_version.as_deref().unwrap_or_default();
        match expectations.of_version(pod::uid(pod), version) {
            Visible::NotFor(age) if age >= EXPECTATION_TIMEOUT => lost.push(Arc::clone(pod)),
            Visible::NotFor(age) => delay = Some(EXPECTATION_TIMEOUT - age),
            Visible::Yes | Visible::Doubtful => {}
        }
    }
    match delay {
        Some(delay) => Unseen::For(delay),
        None if lost.is_empty() => Unseen::None,
        None => Unseen::TooLong(lost),
    }
}

/// Looks whether the writes to pods were seen. Pods whose writes were not seen in time are asked for, and are in the cache then as the
/// server has them.
///
/// # Errors
/// Refusals of the server.
pub async fn writes(
    cache: &Informer<CachedPod>,
    actor: &Actor,
    pods: &[Arc<CachedPod>],
) -> Result<Shown, ActError> {
    match unseen_writes(pods, &actor.expectations) {
        Unseen::None => Ok(Shown::All),
        Unseen::For(delay) => Ok(Shown::After(delay)),
        Unseen::TooLong(pods) => {
            for pod in pods {
                let key = ObjectKey::of(pod.as_ref());
                let real = actor.api::<CachedPod>(&key).get_opt(&key.name).await?;
                cache.learn(&key, real);
                actor.expectations.forget_version(pod::uid(&pod));
            }
            Ok(Shown::Late)
        }
    }
}

/// Has the changes of pods and claims wake their owners of kind `S`, and settle the expectations about them.
pub fn watch_members<S: Resource<DynamicType = ()>>(
    watches: &mut Watches<ObjectKey>,
    pods: &Informer<CachedPod>,
    claims: Option<&Informer<PersistentVolumeClaim>>,
    expectations: &Arc<Expectations>,
) {
    let of_pods = Arc::clone(expectations);
    watches.on(pods, move |change, queue| {
        if let Change::Deleted(pod) = change {
            of_pods.forget_version(pod::uid(pod));
        }
        changed::<S, _>(change, Member::Pod, &of_pods, queue);
    });
    if let Some(claims) = claims {
        watch_owned::<S, _>(watches, claims, Member::Claim, expectations);
    }
}

/// Has the changes of objects wake their owners of kind `S`, and settle the expectations about them.
pub fn watch_owned<S, K>(
    watches: &mut Watches<ObjectKey>,
    cache: &Informer<K>,
    member: fn(String) -> Member,
    expectations: &Arc<Expectations>,
) where
    S: Resource<DynamicType = ()>,
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let expectations = Arc::clone(expectations);
    watches.on(cache, move |change, queue| {
        changed::<S, _>(change, member, &expectations, queue);
    });
}

/// A pod or claim changed: settles the expectations about it, and has its owner looked at.
fn changed<S: Resource<DynamicType = ()>, K: Resource>(
    change: &Change<'_, K>,
    member: fn(String) -> Member,
    expectations: &Expectations,
    queue: &WorkQueue<ObjectKey>,
) {
    let (before, meta, gone) = match change {
        Change::Added(object) => (None, object.meta(), false),
        Change::Updated(old, object) => (Some(old.meta()), object.meta(), false),
        Change::Deleted(object) => (None, object.meta(), true),
    };
    let member = member(meta.name.clone().unwrap_or_default());
    if let Some(owner) = owner_key::<S>(meta) {
        if !gone {
            expectations.settle(&owner, Expected::Creation, member.clone());
        }
        // Terminating is as good as gone: a successor may be created.
        if gone || meta.deletion_timestamp.is_some() {
            expectations.settle(&owner, Expected::Deletion, member.clone());
        }
        queue.add(owner);
    }
    if let Some(owner) = before.and_then(owner_key::<S>)
        && Some(&owner) != owner_key::<S>(meta).as_ref()
    {
        expectations.settle(&owner, Expected::Deletion, member);
        queue.add(owner);
    }
}

/// The owner of kind `S` that controls an object.
pub fn owner_key<S: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller_of_kind::<S>(meta)?;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    Some(ObjectKey::new(namespace, &owner.name))
}

/// The sets of a kind that adopt revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopters {
    /// Those that stay.
    Staying,
    /// Those that are being deleted, too: the members that they adopt go with them.
    All,
}

impl Members<'_> {
    /// Releases the pods of `set` that do not match its selector any more, and adopts those without an owner that do and that
    /// `may_adopt` takes; a set that is being deleted adopts none. Whether a pod was adopted.
    ///
    /// # Errors
    /// Refusals of the server, and a set of that name that is another one by now.
    pub async fn claim<S>(
        &self,
        set: &S,
        selector: &Selector,
        may_adopt: impl Fn(&CachedPod) -> bool,
    ) -> Result<bool, ActError>
    where
        S: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let owner = Owner::of(set);
        for action in adoption::release(&owner, selector, &self.pods.owned_by(&owner.uid)) {
            self.actor.perform(&owner, &action).await?;
        }
        if set.meta().deletion_timestamp.is_some() {
            return Ok(false);
        }
        let mut orphans = self.pods.orphans(&owner.key.namespace);
        orphans.retain(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && may_adopt(pod)
                && selector.matches(pod::all_labels(pod))
        });
        if orphans.is_empty() {
            return Ok(false);
        }
        self.confirm::<S>(&owner, Adopters::Staying).await?;
        for pod in &orphans {
            let result = self.actor.perform(&owner, &adoption::adopt(&owner, pod)).await;
            match result {
                Err(error) if error.is_about_another() => {}
                result => result?,
            }
        }
        Ok(true)
    }

    /// Makes revisions without an owner that the set's selector selects the set's.
    ///
    /// # Errors
    /// Those of the requests; a failure if the set is another one by now.
    pub async fn adopt_revisions<S>(
        &self,
        revisions: &RevisionKeeper,
        set: &S,
        selector: &Selector,
        adopters: Adopters,
    ) -> Result<(), ActError>
    where
        S: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let owner = Owner::of(set);
        let orphans = revisions.orphans(&owner, selector);
        let goes = set.meta().deletion_timestamp.is_some();
        if orphans.is_empty() || (goes && adopters == Adopters::Staying) {
            return Ok(());
        }
        self.confirm::<S>(&owner, adopters).await?;
        for revision in orphans {
            let name = revision.name_any();
            self.actor
                .perform(&owner, &PodAction::AdoptRevision { name })
                .await?;
        }
        Ok(())
    }

    /// Asks whether a set is still there and may adopt. The cache may not know yet that it is being deleted, and orphans its members.
    ///
    /// # Errors
    /// Refusals of the server, and a set of that name that is another one by now, or goes.
    pub async fn confirm<S>(&self, owner: &Owner, adopters: Adopters) -> Result<(), ActError>
    where
        S: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let latest = self.actor.api::<S>(&owner.key).get(&owner.key.name).await?;
        let goes = latest.meta().deletion_timestamp.is_some() && adopters == Adopters::Staying;
        if latest.uid().as_ref() != Some(&owner.uid) || goes {
            let name = &owner.key.name;
            return Err(ActError::planned(&format!("{name} is another set by now")));
        }
        Ok(())
    }

    /// Looks whether the creations and deletions for a set were seen. Those that are in doubt are asked for, and those that were not
    /// seen in time are.
    ///
    /// # Errors
    /// Refusals of the server.
    pub async fn creations_and_deletions(&self, key: &ObjectKey) -> Result<Shown, ActError> {
        match self.actor.expectations.of_set(key) {
            Visible::Yes => Ok(Shown::All),
            Visible::NotFor(age) if age < EXPECTATION_TIMEOUT => Ok(Shown::After(EXPECTATION_TIMEOUT - age)),
            Visible::NotFor(_) => {
                self.heal(key).await?;
                Ok(Shown::Late)
            }
            Visible::Doubtful => {
                self.resolve(key).await?;
                Ok(match self.actor.expectations.of_set(key) {
                    Visible::NotFor(age) => Shown::After(EXPECTATION_TIMEOUT.saturating_sub(age)),
                    Visible::Yes | Visible::Doubtful => Shown::All,
                })
            }
        }
    }

    /// Looks whether the writes to a set's pods were seen. Pods whose writes were not seen in time are asked for.
    ///
    /// # Errors
    /// Refusals of the server.
    pub async fn writes(&self, key: &ObjectKey, pods: &[Arc<CachedPod>]) -> Result<Shown, ActError> {
        let shown = writes(self.pods, self.actor, pods).await?;
        if matches!(shown, Shown::Late) {
            tracing::warn!(set = key.name, "writes to pods were not seen for too long");
        }
        Ok(shown)
    }

    /// Drops the expectations of a set that are older than they may be. The server's answer about each is taken into the cache where the
    /// watch has not shown it: a watch that has missed something will not show it any more, and until it lists again, which may be
    /// in an hour, the set would be counted with pods that are gone.
    async fn heal(&self, key: &ObjectKey) -> Result<(), ActError> {
        for (expected, member) in self.actor.expectations.open(key) {
            tracing::warn!(
                set = key.name,
                ?expected,
                ?member,
                "an expectation was not seen to be met for too long"
            );
            self.ask(key, expected, member).await?;
        }
        Ok(())
    }

    /// Settles doubts: requests of which it is unknown whether they were done.
    async fn resolve(&self, key: &ObjectKey) -> Result<(), ActError> {
        for (expected, member) in self.actor.expectations.doubtful(key) {
            self.ask(key, expected, member).await?;
        }
        Ok(())
    }

    async fn ask(&self, key: &ObjectKey, expected: Expected, member: Member) -> Result<(), ActError> {
        match &member {
            Member::Pod(name) => self.learn(self.pods, key, expected, name).await?,
            Member::Claim(name) => {
                if let Some(claims) = self.claims {
                    self.learn(claims, key, expected, name).await?;
                }
            }
            // Owners of pods have none.
            Member::Workload(..) => {}
        }
        self.actor.expectations.settle(key, expected, member);
        Ok(())
    }

    /// Asks the server for an object, and believes it if it has more to say than the watch.
    pub async fn learn<K>(
        &self,
        cache: &Informer<K>,
        key: &ObjectKey,
        expected: Expected,
        name: &str,
    ) -> Result<(), ActError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let at = ObjectKey::new(&key.namespace, name);
        let real = self.actor.api::<K>(key).get_opt(name).await?;
        let cached = cache.get(&at);
        let met = |object: Option<&K>| {
            let going = |object: &K| object.meta().deletion_timestamp.is_some();
            match expected {
                Expected::Creation => object.is_some(),
                Expected::Deletion => object.is_none_or(going),
            }
        };
        if met(real.as_ref()) && !met(cached.as_deref()) {
            cache.learn(&at, real);
        }
        Ok(())
    }
}
