//! Expectations that were never met, or that are in doubt: asks the server what became of them.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;

use super::controller::Controller;
use super::expectations::{Expected, Member};
use super::observe::CachedPod;
use crate::kit::ActError;
use crate::kit::{Informer, ObjectKey};
use crate::pod;

impl Controller {
    /// Drops the expectations of a set that are older than they may be. What the server says of each is taken into the cache where the
    /// watch has not told of it: a watch that has missed something will not tell any more, and until it lists again, which may be
    /// in an hour, the set would be counted with pods that are gone.
    pub(super) async fn heal(&self, key: &ObjectKey) -> Result<(), ActError> {
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

    /// Settles what is in doubt: requests of which nobody knows whether they were done.
    pub(super) async fn resolve(&self, key: &ObjectKey) -> Result<(), ActError> {
        for (expected, member) in self.actor.expectations.doubtful(key) {
            self.ask(key, expected, member).await?;
        }
        Ok(())
    }

    async fn ask(&self, key: &ObjectKey, expected: Expected, member: Member) -> Result<(), ActError> {
        match &member {
            Member::Pod(name) => self.learn(&self.pods, key, expected, name).await?,
            Member::Claim(name) => {
                self.learn::<PersistentVolumeClaim>(&self.claims, key, expected, name)
                    .await?;
            }
        }
        self.actor.expectations.settle(key, expected, member);
        Ok(())
    }

    /// Takes a pod into the cache as the server has it: what was written to it was not seen for too long.
    pub(super) async fn learn_pod(&self, key: &ObjectKey, pod: &CachedPod) -> Result<(), ActError> {
        let name = pod::name(pod);
        let real = self.actor.api::<CachedPod>(key).get_opt(name).await?;
        self.pods.learn(&ObjectKey::new(&key.namespace, name), real);
        self.actor.expectations.forget_version(pod::uid(pod));
        Ok(())
    }

    /// Asks the server for an object, and believes it if it has more to say than the watch.
    async fn learn<K>(
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
