//! How a CloneSet scales and updates.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{InPlaceUpdateStrategy, ScatterTerm, UpdatePriorityStrategy};

/// How a CloneSet adds and removes pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetScaleStrategy {
    /// Pods to delete before any other. The controller removes the names of pods that are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_to_delete: Option<Vec<String>>,
    /// How many pods may be unavailable while pods are added; a number, or a percentage of the replicas rounded up.
    /// No limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// Do not give the claims of a vanished pod to the next one.
    #[serde(default, rename = "disablePVCReuse", skip_serializing_if = "Option::is_none")]
    pub disable_pvc_reuse: Option<bool>,
}

/// How a CloneSet brings its pods to a new revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetUpdateStrategy {
    /// `ReCreate` (default), `InPlaceIfPossible` or `InPlaceOnly`; `OnDelete` is known to the controller, but its
    /// webhook refuses it.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How many pods keep the old revision; a number, or a percentage of the replicas rounded up. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable during an update. Percentages round up without surge, down with it.
    /// Defaults to `20%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many pods there may be beyond the replicas during an update. Percentages round up. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// Do not update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Which pods first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_strategy: Option<UpdatePriorityStrategy>,
    /// Which pods not in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter_strategy: Option<Vec<ScatterTerm>>,
    /// Details of updates in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
}
