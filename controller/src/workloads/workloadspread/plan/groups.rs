//! The pods of a workload, by version and subset.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::v1alpha1::WorkloadSpread;
use crate::injection::spreads::matched::Matched;
use crate::injection::spreads::version;
use crate::kit::controller_of;
use crate::pods::{CachedPod, pod};

/// The name of the subset of pods that are in no subset.
pub(in crate::workloads::workloadspread) const FAKE: &str = "kruise.io/workloadspread-fake-subset-name";

/// The pods of subsets, in the order of the spec; those in no subset come last.
pub(super) type BySubset = Vec<Vec<Arc<CachedPod>>>;

/// The pods by version.
#[derive(Debug, Default)]
pub(in crate::workloads::workloadspread) struct Groups(pub(super) BTreeMap<String, BySubset>);

/// The version of a pod.
pub(in crate::workloads::workloadspread) fn version_of(pod: &CachedPod) -> &str {
    let kind = controller_of(&pod.metadata).map_or("", |owner| &owner.kind);
    version::of(kind, pod::all_labels(pod))
}

/// The subset of a spread that a pod says it is in.
pub(in crate::workloads::workloadspread) fn subset_of(
    spread: &WorkloadSpread,
    pod: &CachedPod,
) -> Option<String> {
    let name = spread.metadata.name.as_deref().unwrap_or_default();
    let matched = Matched::of(pod)?;
    (matched.name == name && !matched.subset.is_empty()).then_some(matched.subset)
}

impl Groups {
    /// Divides pods, each with the name of its subset.
    pub(in crate::workloads::workloadspread) fn of(
        spread: &WorkloadSpread,
        pods: impl IntoIterator<Item = (Arc<CachedPod>, Option<String>)>,
    ) -> Self {
        let subsets = &spread.spec.subsets;
        let mut groups = BTreeMap::new();
        for (pod, subset) in pods {
            let version = version_of(&pod).to_owned();
            let of_version: &mut BySubset = groups
                .entry(version)
                .or_insert_with(|| vec![Vec::new(); subsets.len() + 1]);
            let at = subset.and_then(|name| subsets.iter().position(|subset| subset.name == name));
            if let Some(group) = of_version.get_mut(at.unwrap_or(subsets.len())) {
                group.push(pod);
            }
        }
        Self(groups)
    }

    /// All versions together.
    pub(super) fn together(&self, subsets: usize) -> BySubset {
        let mut all = vec![Vec::new(); subsets + 1];
        for of_version in self.0.values() {
            for (all, group) in all.iter_mut().zip(of_version) {
                all.extend(group.iter().cloned());
            }
        }
        all
    }
}
