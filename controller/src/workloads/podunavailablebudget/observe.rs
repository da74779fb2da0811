//! The pods of a budget, and how many there are to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;

use crate::api::labels;
use crate::api::v1alpha1::{PodUnavailableBudget, TargetReference};
use crate::kit::{ActError, Informer, controller_of, selector};
use crate::pods::{CachedPod, pod};
use crate::targets::{Lookup, Target};

/// The pods of a budget.
#[derive(Default)]
pub(super) struct Observed {
    /// The pods that neither ended nor terminate.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// How many there are to be.
    pub(super) total: i32,
    /// When.
    pub(super) now: Timestamp,
}

/// Finds the pods of budgets.
pub(super) struct Finder<'a> {
    pub(super) pods: &'a Informer<CachedPod>,
    pub(super) lookup: &'a Lookup,
}

/// The number in the annotation that overrides that of workloads, if it says anything.
///
/// # Errors
/// The text of a number that cannot be read.
fn given_total(budget: &PodUnavailableBudget) -> Result<Option<i32>, ActError> {
    let annotations = budget.metadata.annotations.as_ref();
    let text = annotations.and_then(|notes| notes.get(labels::BUDGET_TOTAL_REPLICAS));
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.parse();
    let failed = || format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
    number.map(Some).map_err(|_| ActError::planned(&failed()))
}

impl Finder<'_> {
    /// The pods of a budget and their number.
    ///
    /// # Errors
    /// Those of the requests, and that of an annotation that cannot be read.
    pub(super) async fn find(
        &self,
        budget: &PodUnavailableBudget,
        now: Timestamp,
    ) -> Result<Observed, ActError> {
        let namespace = budget.namespace().unwrap_or_default();
        let (pods, total) = match &budget.spec.target_ref {
            Some(reference) => self.of_workload(&namespace, reference).await?,
            None => self.of_selector(&namespace, budget).await?,
        };
        let total = given_total(budget)?.or(total);
        let total = match total {
            Some(total) => total,
            None => self.sum(&namespace, &pods).await?,
        };
        Ok(Observed { pods, total, now })
    }

    /// The pods of a workload, and the number that it says.
    async fn of_workload(
        &self,
        namespace: &str,
        reference: &TargetReference,
    ) -> Result<(Vec<Arc<CachedPod>>, Option<i32>), ActError> {
        let found = self.lookup.get(namespace, reference).await?;
        let Some(workload) = found.filter(|workload| !workload.is_ending()) else {
            return Ok((Vec::new(), Some(0)));
        };
        let replicas = self.lookup.replicas(namespace, &workload).await?;
        if replicas == 0 {
            return Ok((Vec::new(), Some(0)));
        }
        Ok((self.owned(namespace, &workload).await?, Some(replicas)))
    }

    /// The active pods of a workload.
    async fn owned(&self, namespace: &str, workload: &Target) -> Result<Vec<Arc<CachedPod>>, ActError> {
        let mut uids = vec![workload.uid().to_owned()];
        if workload.is_apps("Deployment") {
            let sets = self.lookup.replica_sets(namespace, workload).await?;
            if !sets.is_empty() {
                uids = sets.iter().map(|set| set.uid().to_owned()).collect();
            }
        }
        let all = uids.iter().flat_map(|uid| self.pods.owned_by(uid));
        Ok(all.filter(|pod| pod.facts().active).collect())
    }

    /// The active pods that the selector selects. Without a usable selector there are none, and none are to be.
    async fn of_selector(
        &self,
        namespace: &str,
        budget: &PodUnavailableBudget,
    ) -> Result<(Vec<Arc<CachedPod>>, Option<i32>), ActError> {
        let Some(selector) = &budget.spec.selector else {
            return Ok((Vec::new(), Some(0)));
        };
        let mut pods = self.pods.in_namespace(namespace);
        pods.retain(|pod| {
            pod.facts().active && selector::selects(selector, pod::all_labels(pod)) == Ok(true)
        });
        Ok((pods, None))
    }

    /// The numbers of all workloads that own these pods.
    async fn sum(&self, namespace: &str, pods: &[Arc<CachedPod>]) -> Result<i32, ActError> {
        let owners: BTreeMap<&str, &OwnerReference> = pods
            .iter()
            .filter_map(|pod| controller_of(&pod.metadata))
            .map(|owner| (owner.uid.as_str(), owner))
            .collect();
        let mut counted = BTreeSet::new();
        let mut total: i32 = 0;
        for owner in owners.into_values() {
            let found = self.lookup.workload(namespace, owner).await?;
            let Some(workload) = found.filter(|workload| !workload.is_ending()) else {
                continue;
            };
            if counted.insert(workload.uid().to_owned()) {
                let replicas = self.lookup.replicas(namespace, &workload).await?;
                total = total.saturating_add(replicas);
            }
        }
        Ok(total)
    }
}
