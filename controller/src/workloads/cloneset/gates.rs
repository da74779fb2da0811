//! The feature gates that change the handling of a CloneSet.

use crate::pods::inplace::InPlaceOptions;
use crate::workloads::VERTICAL_SCALING;

/// Which of them are on. The default is that of OpenKruise 1.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a gate is on or off")]
pub struct Gates {
    /// `CloneSetPartitionRollback`: pods go back to the current revision when the partition is raised.
    pub partition_rollback: bool,
    /// `CloneSetShortHash`: the revision label of pods has the hash alone, without the set's name.
    pub short_hash: bool,
    /// `InPlaceUpdateEnvFromMetadata`: labels and annotations that a container's environment refers to change with the
    /// container, and the update waits for its restart.
    pub env_from_metadata: bool,
    /// `InPlaceWorkloadVerticalScaling`: CPU and memory change in place.
    pub vertical_scaling: bool,
    /// `PreparingUpdateAsUpdate`: pods that a hook holds before an update count as updated when scaling.
    pub preparing_update_as_update: bool,
    /// `PreDownloadImageForInPlaceUpdate`: the images of an update in place are pulled before it comes to their nodes.
    pub predownload: bool,
    /// `RecreatePodWhenChangeVCTInCloneSetGate`: pods are recreated for other claim templates, where they may be.
    pub recreate_for_claims: bool,
    /// `PodUnavailableBudgetUpdateGate`: each pod needs leave to be updated.
    pub ask_leave: bool,
    /// `--cloneset-scaling-exclude-preparing-delete`, a flag: pods that a hook holds before their deletion do not count
    /// as there when scaling.
    pub exclude_preparing_delete: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            partition_rollback: false,
            short_hash: false,
            env_from_metadata: true,
            vertical_scaling: false,
            preparing_update_as_update: false,
            predownload: false,
            recreate_for_claims: false,
            ask_leave: false,
            exclude_preparing_delete: false,
        }
    }
}

impl Gates {
    /// The changes that are possible in place.
    pub(crate) fn in_place(self) -> InPlaceOptions {
        InPlaceOptions {
            env_from_metadata: self.env_from_metadata,
            vertical_scaling: self.vertical_scaling,
        }
    }

    /// The gates by name, as `is_on` knows them.
    #[must_use]
    pub fn of(is_on: impl Fn(&str) -> bool) -> Self {
        Self {
            partition_rollback: is_on("CloneSetPartitionRollback"),
            short_hash: is_on("CloneSetShortHash"),
            env_from_metadata: is_on("InPlaceUpdateEnvFromMetadata"),
            vertical_scaling: is_on(VERTICAL_SCALING),
            preparing_update_as_update: is_on("PreparingUpdateAsUpdate"),
            predownload: is_on("PreDownloadImageForInPlaceUpdate"),
            recreate_for_claims: is_on("RecreatePodWhenChangeVCTInCloneSetGate"),
            ask_leave: is_on("PodUnavailableBudgetUpdateGate"),
            exclude_preparing_delete: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::gates::GATES;

    /// Known, taken, and without effect: the register of divergences says so.
    #[rstest]
    #[case("CloneSetEventHandlerOptimization")]
    fn gates_that_change_nothing_yet(#[case] gate: &str) {
        assert!(GATES.iter().any(|(known, _, _)| *known == gate));
        assert_eq!(Gates::of(|name| name == gate), Gates::of(|_| false));
    }
}
