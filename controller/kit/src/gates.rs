//! Feature gates, with OpenKruise's names and defaults (1.9).

use std::collections::BTreeMap;

use thiserror::Error;

use crate::go_values::truth;

/// Why feature gates are wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct GateError(String);

/// How far a feature has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Off by default; `AllAlpha=true` switches all of them on.
    Alpha,
    /// On by default, but for `ResourcesDeletionProtection`; `AllBeta=false` switches all of them off.
    Beta,
}

/// A gate: its name, its default, its stage.
pub type Gate = (&'static str, bool, Stage);

/// Every gate of OpenKruise 1.9.0, with its default and stage there (`pkg/features/kruise_features.go`).
pub const GATES: [Gate; 34] = [
    ("CloneSetEventHandlerOptimization", false, Stage::Alpha),
    ("CloneSetPartitionRollback", false, Stage::Alpha),
    ("CloneSetShortHash", false, Stage::Alpha),
    ("DaemonWatchingPod", true, Stage::Beta),
    ("DeletionProtectionForCRDCascadingGate", false, Stage::Alpha),
    ("EnableExternalCerts", false, Stage::Alpha),
    ("EnablePodProbeMarkerOnServerless", false, Stage::Alpha),
    ("EnableSortSidecarContainerByName", false, Stage::Alpha),
    ("EnhancedLivenessProbe", false, Stage::Alpha),
    ("ForceDeleteTimeoutExpectationGate", false, Stage::Alpha),
    ("ImagePullJobGate", false, Stage::Alpha),
    ("InPlacePodVerticalScaling", false, Stage::Alpha),
    ("InPlaceUpdateEnvFromMetadata", true, Stage::Beta),
    ("InPlaceWorkloadVerticalScaling", false, Stage::Alpha),
    ("KruiseDaemon", true, Stage::Beta),
    ("KruisePodReadinessGate", false, Stage::Alpha),
    ("PodIndexLabel", true, Stage::Beta),
    ("PodProbeMarkerGate", true, Stage::Beta),
    ("PodUnavailableBudgetDeleteGate", true, Stage::Beta),
    ("PodUnavailableBudgetUpdateGate", false, Stage::Alpha),
    ("PodWebhook", true, Stage::Beta),
    ("PreDownloadImageForDaemonSetUpdate", false, Stage::Alpha),
    ("PreDownloadImageForInPlaceUpdate", false, Stage::Alpha),
    ("PreparingUpdateAsUpdate", false, Stage::Alpha),
    ("RecreatePodWhenChangeVCTInCloneSetGate", false, Stage::Alpha),
    ("ResourceDistributionGate", false, Stage::Alpha),
    ("ResourcesDeletionProtection", false, Stage::Beta),
    ("SidecarSetPatchPodMetadataDefaultsAllowed", false, Stage::Alpha),
    ("SidecarTerminator", false, Stage::Alpha),
    ("StatefulSetAutoDeletePVC", true, Stage::Beta),
    ("StatefulSetAutoResizePVCGate", false, Stage::Alpha),
    ("StatefulSetStartOrdinal", false, Stage::Alpha),
    ("TemplateNoDefaults", false, Stage::Alpha),
    ("WorkloadSpread", true, Stage::Beta),
];

/// Gates that are off whenever the first one is.
const NEEDS: [(&str, &[&str]); 3] = [
    (
        "PodWebhook",
        &[
            "KruisePodReadinessGate",
            "PodUnavailableBudgetDeleteGate",
            "PodUnavailableBudgetUpdateGate",
            "WorkloadSpread",
            "SidecarSetPatchPodMetadataDefaultsAllowed",
            "EnhancedLivenessProbe",
            "EnablePodProbeMarkerOnServerless",
        ],
    ),
    (
        "KruiseDaemon",
        &[
            "PreDownloadImageForInPlaceUpdate",
            "DaemonWatchingPod",
            "InPlaceUpdateEnvFromMetadata",
            "PreDownloadImageForDaemonSetUpdate",
            "PodProbeMarkerGate",
            "SidecarTerminator",
            "ImagePullJobGate",
            "EnhancedLivenessProbe",
        ],
    ),
    (
        "ResourcesDeletionProtection",
        &["DeletionProtectionForCRDCascadingGate"],
    ),
];

/// Which features are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

impl Default for FeatureGates {
    fn default() -> Self {
        Self(GATES.iter().map(|(name, default, _)| (*name, *default)).collect())
    }
}

impl FeatureGates {
    /// Reads `Name=true,Other=false`, as the flag `--feature-gates` takes it, over the defaults. `AllAlpha` and `AllBeta`
    /// stand for all of a stage that are not named.
    ///
    /// # Errors
    /// If a gate is unknown (the error lists those that are known) or a value is no truth value.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        Self::parse_over(Self::default(), text)
    }

    /// The same where `custom_resources` is the value of `CUSTOM_RESOURCE_ENABLE`, a variable that is older than the gates:
    /// a list of kinds without `SidecarSet` takes `PodWebhook` off unless the flag says otherwise.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_beside(custom_resources: &str, text: &str) -> Result<Self, GateError> {
        let mut defaults = Self::default();
        let kinds = custom_resources.trim();
        if !kinds.is_empty() && !kinds.split(',').any(|kind| kind == "SidecarSet") {
            defaults.turn_off("PodWebhook");
        }
        Self::parse_over(defaults, text)
    }

    fn parse_over(mut gates: Self, text: &str) -> Result<Self, GateError> {
        let mut named: BTreeMap<&'static str, bool> = BTreeMap::new();
        let mut stages: Vec<(Stage, bool)> = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()))
                .ok_or_else(|| GateError(format!("missing bool value for {entry}")))?;
            let value = truth(value).ok_or_else(|| GateError(format!("invalid value of {name}={value}")))?;
            match name {
                "AllAlpha" => stages.push((Stage::Alpha, value)),
                "AllBeta" => stages.push((Stage::Beta, value)),
                _ => {
                    let (known, _, _) = GATES
                        .iter()
                        .find(|(known, _, _)| *known == name)
                        .ok_or_else(|| unknown(name))?;
                    named.insert(known, value);
                }
            }
        }
        for (stage, value) in stages {
            for (name, _, of) in GATES.iter().filter(|(_, _, of)| *of == stage) {
                debug_assert_eq!(*of, stage);
                gates.0.insert(name, value);
            }
        }
        gates.0.extend(named);
        gates.settle();
        Ok(gates)
    }

    /// Gates that hang on others follow them.
    fn settle(&mut self) {
        for (needed, dependents) in NEEDS {
            if !self.is_on(needed) {
                for name in dependents {
                    self.0.insert(name, false);
                }
            }
        }
        let downloads = [
            "PreDownloadImageForInPlaceUpdate",
            "PreDownloadImageForDaemonSetUpdate",
        ];
        if downloads.iter().any(|name| self.is_on(name)) {
            self.0.insert("ImagePullJobGate", true);
        }
    }

    /// Switches a feature off, whatever the flag says.
    pub fn turn_off(&mut self, name: &str) {
        if let Some(on) = self.0.get_mut(name) {
            *on = false;
        }
    }

    /// Whether a feature is on; of several names with `|` between, whether one is.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        name.split('|')
            .any(|name| self.0.get(name).copied().unwrap_or(false))
    }
}

fn unknown(name: &str) -> GateError {
    let known: Vec<&str> = GATES.iter().map(|(known, _, _)| *known).collect();
    GateError(format!(
        "unrecognized feature gate: {name}; there are AllAlpha, AllBeta, {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "PodWebhook", true)]
    #[case("", "CloneSetShortHash", false)]
    #[case("CloneSetShortHash=true", "CloneSetShortHash", true)]
    #[case(" CloneSetShortHash=1 , WorkloadSpread=f", "WorkloadSpread", false)]
    #[case("AllAlpha=true", "CloneSetPartitionRollback", true)]
    #[case(
        "AllAlpha=true,CloneSetPartitionRollback=false",
        "CloneSetPartitionRollback",
        false
    )]
    #[case(
        "CloneSetPartitionRollback=false,AllAlpha=true",
        "CloneSetPartitionRollback",
        false
    )]
    #[case(" CloneSetShortHash = true ", "CloneSetShortHash", true)]
    #[case("AllBeta=false", "PodProbeMarkerGate", false)]
    #[case("AllBeta=true", "ResourcesDeletionProtection", true)]
    #[case("AllBeta=true", "InPlacePodVerticalScaling", false)]
    #[case("AllAlpha=true", "EnableSortSidecarContainerByName", true)]
    #[case("AllAlpha=true", "InPlacePodVerticalScaling", true)]
    #[case("AllAlpha=true", "DeletionProtectionForCRDCascadingGate", false)]
    #[case(
        "AllAlpha=true,ResourcesDeletionProtection=true",
        "DeletionProtectionForCRDCascadingGate",
        true
    )]
    #[case("PreDownloadImageForDaemonSetUpdate=true", "ImagePullJobGate", true)]
    #[case("PodWebhook=false", "WorkloadSpread", false)]
    #[case("KruiseDaemon=false", "InPlaceUpdateEnvFromMetadata", false)]
    #[case(
        "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true",
        "ImagePullJobGate",
        false
    )]
    #[case("PreDownloadImageForInPlaceUpdate=true", "ImagePullJobGate", true)]
    #[case(
        "ResourcesDeletionProtection=false,AllAlpha=true",
        "DeletionProtectionForCRDCascadingGate",
        false
    )]
    fn gates(#[case] text: &str, #[case] gate: &str, #[case] on: bool) {
        assert_eq!(FeatureGates::parse(text).unwrap().is_on(gate), on, "{text}");
    }

    /// The table `defaultFeatureGates` of OpenKruise 1.9.0, in its order.
    #[rstest]
    #[case(
        true,
        Stage::Beta,
        "PodWebhook KruiseDaemon DaemonWatchingPod WorkloadSpread PodUnavailableBudgetDeleteGate \
         InPlaceUpdateEnvFromMetadata StatefulSetAutoDeletePVC PodProbeMarkerGate PodIndexLabel"
    )]
    #[case(
        false,
        Stage::Alpha,
        "CloneSetShortHash KruisePodReadinessGate PreDownloadImageForInPlaceUpdate \
         CloneSetPartitionRollback PodUnavailableBudgetUpdateGate TemplateNoDefaults \
         SidecarSetPatchPodMetadataDefaultsAllowed SidecarTerminator PreDownloadImageForDaemonSetUpdate \
         CloneSetEventHandlerOptimization PreparingUpdateAsUpdate ImagePullJobGate \
         ResourceDistributionGate DeletionProtectionForCRDCascadingGate EnhancedLivenessProbe \
         RecreatePodWhenChangeVCTInCloneSetGate StatefulSetStartOrdinal EnableExternalCerts \
         StatefulSetAutoResizePVCGate ForceDeleteTimeoutExpectationGate InPlaceWorkloadVerticalScaling \
         EnablePodProbeMarkerOnServerless EnableSortSidecarContainerByName InPlacePodVerticalScaling"
    )]
    #[case(false, Stage::Beta, "ResourcesDeletionProtection")]
    fn defaults_and_stages_are_those_of_1_9_0(
        #[case] default: bool,
        #[case] stage: Stage,
        #[case] names: &str,
    ) {
        let mut expected: Vec<&str> = names.split_whitespace().collect();
        expected.sort_unstable();
        let ours = GATES.iter().filter(|(_, on, of)| (*on, *of) == (default, stage));
        let ours: Vec<&str> = ours.map(|(name, _, _)| *name).collect();
        assert_eq!(ours, expected);
    }

    /// `SetDefaultFeatureGates` of OpenKruise 1.9.0: without the first gate the others are off, even if they are named.
    #[rstest]
    #[case(
        "PodWebhook",
        "KruisePodReadinessGate PodUnavailableBudgetDeleteGate PodUnavailableBudgetUpdateGate \
         WorkloadSpread SidecarSetPatchPodMetadataDefaultsAllowed EnhancedLivenessProbe \
         EnablePodProbeMarkerOnServerless"
    )]
    #[case(
        "KruiseDaemon",
        "PreDownloadImageForInPlaceUpdate DaemonWatchingPod InPlaceUpdateEnvFromMetadata \
         PreDownloadImageForDaemonSetUpdate PodProbeMarkerGate SidecarTerminator ImagePullJobGate \
         EnhancedLivenessProbe"
    )]
    #[case("ResourcesDeletionProtection", "DeletionProtectionForCRDCascadingGate")]
    fn dependents_are_those_of_1_9_0(#[case] needed: &str, #[case] names: &str) {
        let expected: Vec<&str> = names.split_whitespace().collect();
        let everything = format!("AllAlpha=true,AllBeta=true,{}=true", expected.join("=true,"));
        let all = FeatureGates::parse(&everything).unwrap();
        let without = FeatureGates::parse(&format!("{everything},{needed}=false")).unwrap();
        for (name, _, _) in GATES {
            let on = name != needed && !expected.contains(&name);
            assert!(all.is_on(name), "{name}");
            assert_eq!(without.is_on(name), on, "{name}");
        }
    }

    #[rstest]
    #[case("", "", true)]
    #[case("CloneSet,SidecarSet", "", true)]
    #[case(" CloneSet,DaemonSet ", "", false)]
    #[case("CloneSet", "PodWebhook=true", true)]
    fn custom_resource_enable(#[case] kinds: &str, #[case] text: &str, #[case] pod_webhook: bool) {
        let gates = FeatureGates::parse_beside(kinds, text).unwrap();
        assert_eq!(gates.is_on("PodWebhook"), pod_webhook);
        assert_eq!(gates.is_on("WorkloadSpread"), pod_webhook);
    }

    #[rstest]
    #[case(
        "Nonsense=true",
        "unrecognized feature gate: Nonsense; there are AllAlpha, AllBeta, CloneSetEvent"
    )]
    #[case("PodWebhook", "missing bool value for PodWebhook")]
    #[case("PodWebhook=maybe", "invalid value of PodWebhook=maybe")]
    fn refusals(#[case] text: &str, #[case] expected: &str) {
        let error = FeatureGates::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
