//! The feature gates that change the treatment of a DaemonSet.

use crate::pods::inplace::InPlaceOptions;
use crate::workloads::VERTICAL_SCALING;

/// The gates that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// `InPlaceUpdateEnvFromMetadata`.
    pub(super) env_from_metadata: bool,
    /// `InPlaceWorkloadVerticalScaling`.
    pub(super) vertical_scaling: bool,
    /// `PreDownloadImageForDaemonSetUpdate`.
    pub(super) predownload: bool,
}

impl Gates {
    /// The gates by name, as `is_on` knows them.
    pub(super) fn of(is_on: impl Fn(&str) -> bool) -> Self {
        Self {
            env_from_metadata: is_on("InPlaceUpdateEnvFromMetadata"),
            vertical_scaling: is_on(VERTICAL_SCALING),
            predownload: is_on("PreDownloadImageForDaemonSetUpdate"),
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
