//! The view of a pass on the subsets that have workloads.

use std::collections::BTreeMap;

use super::verdict::Verdict;
use crate::api::labels;
use crate::workloads::uniteddeployment::children::Child;
use crate::workloads::uniteddeployment::observe::Observed;

/// The workloads by subset, and how they stand.
pub(super) struct View<'a> {
    /// The workload of each subset.
    pub(super) children: BTreeMap<&'a str, &'a Child>,
    /// Workloads of subsets that have another one.
    pub(super) duplicates: Vec<&'a Child>,
    /// The verdicts on the pods of subsets.
    pub(super) verdicts: BTreeMap<&'a str, Verdict>,
}

impl<'a> View<'a> {
    /// Finds the workload of each subset: of several the oldest.
    ///
    /// # Errors
    /// That a workload does not say its subset.
    pub(super) fn new(observed: &'a Observed) -> Result<Self, String> {
        let mut sorted: Vec<&Child> = observed.children.iter().collect();
        sorted.sort_by_key(|child| (child.created, &child.name));
        let mut view = Self {
            children: BTreeMap::new(),
            duplicates: Vec::new(),
            verdicts: BTreeMap::new(),
        };
        let namespace = observed.set.metadata.namespace.as_deref().unwrap_or_default();
        for child in sorted {
            let subset = child.subset();
            if subset.is_empty() {
                let label = labels::SUBSET_NAME;
                let why = match child.labels.contains_key(label) {
                    true => format!("label {label} has an empty value"),
                    false => format!("no label {label} found"),
                };
                let name = &child.name;
                return Err(format!(
                    "fail to get subSet name from label of subset {namespace}/{name}: {why}"
                ));
            }
            if view.children.contains_key(subset) {
                view.duplicates.push(child);
            } else {
                view.children.insert(subset, child);
            }
        }
        Ok(view)
    }

    /// How a subset stands.
    pub(super) fn verdict(&self, subset: &str) -> Verdict {
        self.verdicts.get(subset).copied().unwrap_or_default()
    }
}
