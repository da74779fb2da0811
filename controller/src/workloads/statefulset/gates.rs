//! The feature gates that change the treatment of a StatefulSet.

use crate::pods::inplace::InPlaceOptions;
use crate::workloads::VERTICAL_SCALING;

/// The gates that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a gate is on or off")]
pub(super) struct Gates {
    /// `StatefulSetStartOrdinal`: ordinals begin where `spec.ordinals.start` says.
    pub(super) start_ordinal: bool,
    /// `StatefulSetAutoDeletePVC`: claims go with their pod or with the set where the spec asks for it.
    pub(super) auto_delete_claims: bool,
    /// `PodIndexLabel`: a label of pods has their ordinal.
    pub(super) index_label: bool,
    /// `InPlaceUpdateEnvFromMetadata`.
    pub(super) env_from_metadata: bool,
    /// `InPlaceWorkloadVerticalScaling`.
    pub(super) vertical_scaling: bool,
    /// `StatefulSetAutoResizePVCGate`: claims grow with their templates where the spec asks for it.
    pub(super) resize_claims: bool,
    /// `PreDownloadImageForInPlaceUpdate`: images are pulled before pods are updated.
    pub(super) predownload: bool,
    /// `PreparingUpdateAsUpdate`: pods that a hook holds before an update count as updated.
    pub(super) preparing_update_as_update: bool,
}

impl Gates {
    /// The gates by name, as `is_on` knows them.
    pub(super) fn of(is_on: impl Fn(&str) -> bool) -> Self {
        Self {
            start_ordinal: is_on("StatefulSetStartOrdinal"),
            auto_delete_claims: is_on("StatefulSetAutoDeletePVC"),
            index_label: is_on("PodIndexLabel"),
            env_from_metadata: is_on("InPlaceUpdateEnvFromMetadata"),
            vertical_scaling: is_on(VERTICAL_SCALING),
            resize_claims: is_on("StatefulSetAutoResizePVCGate"),
            predownload: is_on("PreDownloadImageForInPlaceUpdate"),
            preparing_update_as_update: is_on("PreparingUpdateAsUpdate"),
        }
    }

    /// The changes that are possible in place.
    pub(super) fn in_place(self) -> InPlaceOptions {
        InPlaceOptions {
            env_from_metadata: self.env_from_metadata,
            vertical_scaling: self.vertical_scaling,
        }
    }
}
