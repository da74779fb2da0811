//! Expectations that were never met: asks the server what became of them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::act::ActError;
use super::controller::Controller;
use super::expectations::{Expected, Member};
use crate::runtime::ObjectKey;

/// How long to wait for a watch that is behind.
const BEHIND_DELAY: Duration = Duration::from_secs(10);

impl Controller {
    /// Drops the expectations of a set that the server says will not be met. When some are true, so that only the watch is
    /// behind, gives the time to wait for it.
    pub(super) async fn heal(&self, key: &ObjectKey) -> Result<Option<Duration>, ActError> {
        let mut behind = false;
        for (expected, member) in self.actor.expectations.open(key) {
            let (cached, real) = self.both(key, &member).await?;
            let going = |meta: &ObjectMeta| meta.deletion_timestamp.is_some();
            let happened = match expected {
                Expected::Creation => real.is_some(),
                Expected::Deletion => real.as_ref().is_none_or(going),
            };
            let seen = match expected {
                Expected::Creation => cached.is_some(),
                Expected::Deletion => cached.as_ref().is_none_or(going),
            };
            if happened && !seen {
                behind = true;
                continue;
            }
            tracing::warn!(
                set = key.name,
                ?expected,
                ?member,
                "dropped an expectation that was not met"
            );
            self.actor.expectations.settle(key, expected, member);
        }
        Ok(behind.then_some(BEHIND_DELAY))
    }

    /// The member as the cache and as the server have it.
    async fn both(
        &self,
        key: &ObjectKey,
        member: &Member,
    ) -> Result<(Option<ObjectMeta>, Option<ObjectMeta>), ActError> {
        let at = |name: &str| ObjectKey::new(&key.namespace, name);
        Ok(match member {
            Member::Pod(name) => {
                let real = self.actor.api::<Pod>(key).get_opt(name).await?;
                (
                    self.pods.get(&at(name)).map(|pod| pod.metadata.clone()),
                    real.map(|pod| pod.metadata),
                )
            }
            Member::Claim(name) => {
                let real = self.actor.api::<PersistentVolumeClaim>(key).get_opt(name).await?;
                (
                    self.claims.get(&at(name)).map(|claim| claim.metadata.clone()),
                    real.map(|claim| claim.metadata),
                )
            }
        })
    }
}
