//! One action.

use std::collections::BTreeMap;

use crate::api::v1beta1::{DaemonSet, DaemonSetStatus};
use crate::kit::{ActError, Kind, ObjectKey, Owner, requests, together};
use crate::pods::actor::{Actor, Creation, KnownClaims};
use crate::pods::build::{Blueprint, Identity, NewPod};
use crate::pods::{Revisions, ids};
use crate::workloads::daemonset::plan::{Action, generation};
use crate::workloads::daemonset::settings::rolling_update;

/// Does the actions of one pass over a set.
pub(in crate::workloads::daemonset) struct Performer<'a> {
    pub(in crate::workloads::daemonset) actor: &'a Actor,
    pub(in crate::workloads::daemonset) set: &'a DaemonSet,
    pub(in crate::workloads::daemonset) revisions: &'a Revisions,
    /// The names of the set's pods.
    pub(in crate::workloads::daemonset) names: &'a [String],
    /// Whether the scheduler binds pods.
    pub(in crate::workloads::daemonset) by_scheduler: bool,
}

impl Performer<'_> {
    /// Does all of `actions`, in their order.
    ///
    /// # Errors
    /// The first failure. Nothing is done after it, unless it was one to make pods.
    pub(in crate::workloads::daemonset) async fn perform(&self, actions: &[Action]) -> Result<(), ActError> {
        let mut result = Ok(());
        for action in actions {
            match (self.one(action).await, action) {
                (Ok(()), _) => {}
                (Err(error), Action::Create { .. }) => result = result.and(Err(error)),
                (Err(error), _) => return Err(error),
            }
        }
        result
    }

    async fn one(&self, action: &Action) -> Result<(), ActError> {
        let owner = Owner::of(self.set);
        match action {
            Action::Pod(action) => self.actor.perform(&owner, action).await,
            Action::Create { nodes } => match self.create(&owner, nodes).await {
                Err(error) if error.kind == Kind::NamespaceEnds => Ok(()),
                result => result,
            },
            Action::Together(all) => {
                let results = together(all, |action| self.actor.perform(&owner, action)).await;
                let failed = results.into_iter().filter_map(Result::err);
                let mut failed = failed.filter(|error| error.kind != Kind::NotFound);
                failed.next().map_or(Ok(()), Err)
            }
        }
    }

    async fn create(&self, owner: &Owner, nodes: &[String]) -> Result<(), ActError> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let prefix = format!("{}-", owner.key.name);
        let taken = self.names.iter().filter_map(|name| name.strip_prefix(&prefix));
        let taken: Vec<String> = taken.map(str::to_owned).collect();
        let ids = ids::pick(nodes.len(), &[], &taken, &prefix, self.actor.names.as_ref());
        let generation = generation(self.set);
        let pods = ids.into_iter().zip(nodes).map(|(id, node)| NewPod {
            id,
            revision: &self.revisions.update,
            node,
        });
        let rolling = rolling_update(self.set);
        let creation = Creation {
            blueprint: Blueprint {
                owner,
                claim_templates: &[],
                claim_labels: &NONE,
                identity: Identity::Node {
                    by_scheduler: self.by_scheduler,
                    gate: rolling.is_some_and(|rolling| rolling.kind.as_deref() == Some("InPlaceIfPossible")),
                    generation: generation.as_deref(),
                },
            },
            pods: pods.collect(),
            claims: KnownClaims::NONE,
        };
        self.actor.create_pods(&creation).await
    }
}

/// Writes the status.
pub(in crate::workloads::daemonset) async fn write_status(
    actor: &Actor,
    set: &DaemonSet,
    status: &DaemonSetStatus,
) -> Result<(), ActError> {
    let api = actor.api::<DaemonSet>(&ObjectKey::of(set));
    requests::write_status(&api, set, |latest| latest.status = Some(status.clone())).await?;
    Ok(())
}
