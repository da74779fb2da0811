//! The workload of a spread and its pods.

use std::sync::Arc;

use serde_json::Value;

use crate::api::labels;
use crate::api::v1alpha1::WorkloadSpread;
use crate::injection::spreads::room;
use crate::injection::spreads::version::IGNORED;
use crate::injection::spreads::white_list::WhiteList;
use crate::kit::{ActError, Informer, ObjectKey, selector};
use crate::pods::{CachedPod, pod};
use crate::targets::{Lookup, Target};

/// The workload and its pods.
#[derive(Default)]
pub(super) struct Observed {
    /// The workload's own version; empty if it does not say one.
    pub(super) version: String,
    /// All pods, also those that are over.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// How many there are to be.
    pub(super) replicas: i32,
}

/// Finds workloads and their pods.
pub(super) struct Finder<'a> {
    pub(super) pods: &'a Informer<CachedPod>,
    pub(super) lookup: &'a Lookup,
    pub(super) list: &'a WhiteList,
}

impl Finder<'_> {
    /// The workload of a spread. One that is not there, or is being deleted, has no pods.
    ///
    /// # Errors
    /// Those of the requests, of a path that leads to no number, and of a Deployment without a ReplicaSet for its template.
    pub(super) async fn find(&self, namespace: &str, spread: &WorkloadSpread) -> Result<Observed, ActError> {
        let Some(reference) = &spread.spec.target_ref else {
            return Ok(Observed::default());
        };
        let found = self.lookup.get(namespace, reference).await?;
        let Some(target) = found.filter(|target| !target.is_ending()) else {
            return Ok(Observed::default());
        };
        let version = self.version(namespace, &target).await?;
        let own = match target.kind == "Job" {
            true => number(target.at("/spec/parallelism")),
            false => self.lookup.replicas(namespace, &target).await?,
        };
        let replicas = self.given(spread, &target)?.unwrap_or(own);
        let mut pods = match own == 0 && target.kind != "Job" {
            true => Vec::new(),
            false => self.owned(namespace, &target).await?,
        };
        let filter = spread.spec.target_filter.as_ref();
        if let Some(filter) = filter.and_then(|filter| filter.selector.as_ref()) {
            pods.retain(|pod| selector::selects(filter, pod::all_labels(pod)) == Ok(true));
        }
        Ok(Observed {
            version,
            pods,
            replicas,
        })
    }

    /// The number at the paths that the spread, or the white list, names.
    fn given(&self, spread: &WorkloadSpread, target: &Target) -> Result<Option<i32>, ActError> {
        let at = |pointer: &str| target.at(pointer).cloned();
        let filter = spread.spec.target_filter.as_ref();
        let paths = filter.and_then(|filter| filter.replicas_path_list.as_ref());
        let sum = if let Some(paths) = paths.filter(|paths| !paths.is_empty()) {
            room::sum(at, paths.iter().map(String::as_str))
        } else if let Some(path) = self.list.replicas_path(&target.reference()) {
            room::sum(at, std::iter::once(path))
        } else {
            return Ok(None);
        };
        sum.map(Some).map_err(|message| ActError::planned(&message))
    }

    /// The version of a workload itself.
    async fn version(&self, namespace: &str, target: &Target) -> Result<String, ActError> {
        if target.is_apps("ReplicaSet") {
            return Ok(target.label(labels::TEMPLATE_HASH).unwrap_or_default().to_owned());
        }
        if !target.is_apps("Deployment") {
            return Ok(IGNORED.to_owned());
        }
        let sets = self.lookup.replica_sets(namespace, target).await?;
        let wanted = template(target);
        let current = sets.iter().find(|set| template(set) == wanted);
        let hash = current.and_then(|set| set.label(labels::TEMPLATE_HASH));
        let missing = || {
            ActError::planned(&format!(
                "replicasets.apps of Deployment {:?} not found",
                target.name()
            ))
        };
        hash.map(str::to_owned).ok_or_else(missing)
    }

    /// The pods of a workload: those that it owns, or else those that its scale selects.
    async fn owned(&self, namespace: &str, target: &Target) -> Result<Vec<Arc<CachedPod>>, ActError> {
        let mut uids = vec![target.uid().to_owned()];
        if target.is_apps("Deployment") {
            let sets = self.lookup.replica_sets(namespace, target).await?;
            uids = sets.iter().map(|set| set.uid().to_owned()).collect();
        }
        let owned: Vec<_> = uids.iter().flat_map(|uid| self.pods.owned_by(uid)).collect();
        if !owned.is_empty() || target.is_apps("Deployment") {
            return Ok(owned);
        }
        let Some(text) = self.lookup.pod_selector(namespace, target).await? else {
            return Ok(owned);
        };
        let selected = self.lookup.pods(namespace, &text).await?;
        let cached = selected
            .iter()
            .filter_map(|name| self.pods.get(&ObjectKey::new(namespace, name)));
        Ok(cached.collect())
    }
}

fn number(value: Option<&Value>) -> i32 {
    let number = value.and_then(Value::as_i64).unwrap_or(1);
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The template of a workload without the label that tells its version.
fn template(target: &Target) -> Value {
    let mut template = target.at("/spec/template").cloned().unwrap_or_default();
    let known = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut);
    if let Some(known) = known {
        known.remove(labels::TEMPLATE_HASH);
    }
    template
}
