//! One action.

use std::collections::BTreeMap;

use crate::api::labels;
use crate::api::v1alpha1::CloneSet;
use crate::kit::{ActError, Owner};
use crate::pods::actor::{Actor, Creation, KnownClaims};
use crate::pods::build::{Blueprint, Identity, NewPod};
use crate::pods::{Revisions, ids};
use crate::workloads::cloneset::plan::Action;

/// An action that failed.
pub(crate) struct Failed {
    pub(crate) error: ActError,
    /// Whether a part of it was done.
    pub(crate) changed: bool,
}

impl From<ActError> for Failed {
    fn from(error: ActError) -> Self {
        Self {
            error,
            changed: false,
        }
    }
}

/// Performs `action`.
///
/// # Errors
/// Those of the requests, and the failure that the action says.
pub(crate) async fn perform(
    actor: &Actor,
    set: &CloneSet,
    revisions: &Revisions,
    action: &Action,
) -> Result<(), Failed> {
    let owner = Owner::of(set);
    match action {
        Action::Pod(action) => Ok(actor.perform(&owner, action).await?),
        Action::CreatePods {
            count,
            of_current,
            reuse_ids,
            taken_ids,
            existing_claims,
            short_hash,
        } => {
            let prefix = format!("{}-", owner.key.name);
            let [count, of_current] = [*count, *of_current].map(|n| usize::try_from(n).unwrap_or(0));
            let ids = ids::pick(count, reuse_ids, taken_ids, &prefix, actor.names.as_ref());
            let pods = ids.into_iter().enumerate().map(|(at, id)| NewPod {
                id,
                revision: if at < of_current {
                    &revisions.current
                } else {
                    &revisions.update
                },
                node: "",
            });
            let none = BTreeMap::new();
            let creation = Creation {
                blueprint: Blueprint {
                    owner: &owner,
                    claim_templates: set.spec.claim_templates(),
                    claim_labels: set.spec.selector.match_labels.as_ref().unwrap_or(&none),
                    identity: Identity::Drawn {
                        label: labels::INSTANCE_ID,
                        short_hash: *short_hash,
                    },
                },
                pods: pods.collect(),
                claims: KnownClaims {
                    existing: existing_claims,
                    ending: &[],
                },
            };
            let results = actor.try_to_create_pods(&creation).await;
            let changed = results.iter().any(Result::is_ok);
            let result: Result<(), ActError> = results.into_iter().collect();
            result.map_err(|error| Failed { error, changed })
        }
        Action::TrimPodsToDelete { keep } => Ok(super::set::trim_pods_to_delete(actor, set, keep).await?),
    }
}
