//! The selection of built-in controllers, by the names that kube-controller-manager gives them.

use std::str::FromStr;

use controllers::BuiltIn;

/// A controller that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Garbage,
    Namespace,
    ServiceAccount,
    BuiltIn(BuiltIn),
}

/// The controllers of a cloud provider: chosen by name only.
const CLOUD: Choice = Choice::BuiltIn(BuiltIn::LoadBalancer);

/// By name, in alphabetical order.
const NAMES: [(&str, Choice); 32] = [
    (
        "certificatesigningrequest-approving-controller",
        Choice::BuiltIn(BuiltIn::CertificateApproval),
    ),
    (
        "certificatesigningrequest-cleaner-controller",
        Choice::BuiltIn(BuiltIn::CertificateCleaner),
    ),
    (
        "certificatesigningrequest-signing-controller",
        Choice::BuiltIn(BuiltIn::CertificateSigning),
    ),
    (
        "clusterrole-aggregation-controller",
        Choice::BuiltIn(BuiltIn::ClusterRoleAggregation),
    ),
    ("cronjob-controller", Choice::BuiltIn(BuiltIn::CronJob)),
    ("daemonset-controller", Choice::BuiltIn(BuiltIn::DaemonSet)),
    ("deployment-controller", Choice::BuiltIn(BuiltIn::Deployment)),
    (
        "device-taint-eviction-controller",
        Choice::BuiltIn(BuiltIn::DeviceTaintEviction),
    ),
    ("disruption-controller", Choice::BuiltIn(BuiltIn::Disruption)),
    (
        "endpointslice-controller",
        Choice::BuiltIn(BuiltIn::EndpointSlice),
    ),
    (
        "endpointslice-mirroring-controller",
        Choice::BuiltIn(BuiltIn::EndpointSliceMirroring),
    ),
    (
        "ephemeral-volume-controller",
        Choice::BuiltIn(BuiltIn::EphemeralVolume),
    ),
    ("garbage-collector-controller", Choice::Garbage),
    (
        "horizontal-pod-autoscaler-controller",
        Choice::BuiltIn(BuiltIn::HorizontalPodAutoscaler),
    ),
    ("job-controller", Choice::BuiltIn(BuiltIn::Job)),
    ("namespace-controller", Choice::Namespace),
    (
        "node-lifecycle-controller",
        Choice::BuiltIn(BuiltIn::NodeLifecycle),
    ),
    (
        "persistentvolume-binder-controller",
        Choice::BuiltIn(BuiltIn::PersistentVolume),
    ),
    (
        "pod-garbage-collector-controller",
        Choice::BuiltIn(BuiltIn::PodGarbage),
    ),
    ("replicaset-controller", Choice::BuiltIn(BuiltIn::ReplicaSet)),
    (
        "replicationcontroller-controller",
        Choice::BuiltIn(BuiltIn::ReplicationController),
    ),
    (
        "resourceclaim-controller",
        Choice::BuiltIn(BuiltIn::ResourceClaim),
    ),
    (
        "resourcequota-controller",
        Choice::BuiltIn(BuiltIn::ResourceQuota),
    ),
    ("service-cidr-controller", Choice::BuiltIn(BuiltIn::ServiceCidr)),
    ("service-lb-controller", CLOUD),
    ("serviceaccount-controller", Choice::ServiceAccount),
    (
        "serviceaccount-token-controller",
        Choice::BuiltIn(BuiltIn::ServiceAccountToken),
    ),
    ("statefulset-controller", Choice::BuiltIn(BuiltIn::StatefulSet)),
    (
        "ttl-after-finished-controller",
        Choice::BuiltIn(BuiltIn::TtlAfterFinished),
    ),
    ("ttl-controller", Choice::BuiltIn(BuiltIn::NodeTtl)),
    (
        "validatingadmissionpolicy-status-controller",
        Choice::BuiltIn(BuiltIn::AdmissionPolicyStatus),
    ),
    (
        "volumeattributesclass-protection-controller",
        Choice::BuiltIn(BuiltIn::AttributesClassProtection),
    ),
];

/// No controller has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no controller is called \"{0}\"; there are all, none, {names}", names = NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownController(String);

/// The built-in controllers that run.
///
/// Read from text as kube-controller-manager reads its flag: names separated by commas, `*` (or `all`) for all of them, a dash
/// before a name to leave it out; `none` for none. The ending `-controller` may be left out.
///
/// ```
/// use fake_apiserver::ControllerSet;
///
/// let set: ControllerSet = "*,-namespace-controller".parse()?;
/// assert_eq!(set.names().len() + 1, ControllerSet::all().names().len());
/// assert!("garbage".parse::<ControllerSet>().is_err());
/// # Ok::<(), fake_apiserver::UnknownController>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSet(Vec<Choice>);

impl ControllerSet {
    /// All that kube-controller-manager runs by itself: all but `service-lb-controller`, which comes with a cloud provider.
    #[must_use]
    pub fn all() -> Self {
        let choices = NAMES.iter().map(|(_, choice)| *choice);
        Self(choices.filter(|choice| *choice != CLOUD).collect())
    }

    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Their names, in alphabetical order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let chosen = NAMES.iter().filter(|(_, choice)| self.0.contains(choice));
        chosen.map(|(name, _)| *name).collect()
    }

    /// The same set with these of the controllers that share their watches.
    pub(super) fn with_built_in(mut self, which: &[BuiltIn]) -> Self {
        self.0.retain(|choice| !matches!(choice, Choice::BuiltIn(_)));
        self.0.extend(which.iter().copied().map(Choice::BuiltIn));
        self
    }

    pub(super) fn built_in(&self) -> Vec<BuiltIn> {
        // In the order in which all of them are started.
        BuiltIn::ALL
            .into_iter()
            .chain([BuiltIn::LoadBalancer])
            .filter(|which| self.0.contains(&Choice::BuiltIn(*which)))
            .collect()
    }

    pub(super) fn has_garbage(&self) -> bool {
        self.0.contains(&Choice::Garbage)
    }

    pub(super) fn has_namespaces(&self) -> bool {
        self.0.contains(&Choice::Namespace)
    }

    pub(super) fn has_service_accounts(&self) -> bool {
        self.0.contains(&Choice::ServiceAccount)
    }
}

impl FromStr for ControllerSet {
    type Err = UnknownController;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        let mut set = Self::none();
        for word in words {
            match word {
                "*" | "all" => set = Self::all(),
                "none" => set = Self::none(),
                word => {
                    let name = word.strip_prefix('-').unwrap_or(word);
                    let is = |known: &str| known == name || known.strip_suffix("-controller") == Some(name);
                    let found = NAMES.iter().find(|(known, _)| is(known));
                    let (_, choice) = found.ok_or_else(|| UnknownController(word.to_owned()))?;
                    set.0.retain(|chosen| chosen != choice);
                    if name == word {
                        set.0.push(*choice);
                    }
                }
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("none", Some(""))]
    #[case("", Some(""))]
    #[case("job,cronjob-controller", Some("cronjob-controller job-controller"))]
    #[case("job,none", Some(""))]
    #[case("none,service-lb", Some("service-lb-controller"))]
    #[case("all,-job", None)]
    fn which(#[case] text: &str, #[case] expected: Option<&str>) {
        let set: ControllerSet = text.parse().expect("a set");
        match expected {
            Some(expected) => assert_eq!(set.names().join(" "), expected),
            None => assert!(set.names().len() == NAMES.len() - 2 && !set.names().contains(&"job-controller")),
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "jobs"
            .parse::<ControllerSet>()
            .expect_err("a refusal")
            .to_string();
        assert!(
            error.starts_with(
                "no controller is called \"jobs\"; there are all, none, certificatesigningrequest-"
            ),
            "{error}"
        );
        assert_eq!(ControllerSet::all().built_in(), BuiltIn::ALL);
    }
}
