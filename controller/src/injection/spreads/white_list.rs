//! The kinds that spreads take beside those of OpenKruise and Kubernetes, which the ConfigMap `kruise-configuration` lists.

use serde::Deserialize;

use crate::api::v1alpha1::TargetReference;
use crate::kit::settings;
use crate::targets::group_of;

/// The key of the list.
pub(crate) const KEY: &str = "WorkloadSpread_Watch_Custom_Workload_WhiteList";
/// The kinds that need no list, with their groups.
const KNOWN: [(&str, &str); 6] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps.kruise.io", "CloneSet"),
    ("apps.kruise.io", "StatefulSet"),
    ("batch", "Job"),
];

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WhiteList {
    workloads: Vec<Custom>,
}

/// A kind, and those between it and its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Custom {
    #[serde(flatten)]
    kind: Kind,
    #[serde(rename = "replicaspath")]
    replicas_path: String,
    #[serde(rename = "subresources")]
    below: Vec<Kind>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

impl Kind {
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl WhiteList {
    /// A list without a kind.
    pub(crate) const fn none() -> Self {
        Self {
            workloads: Vec::new(),
        }
    }

    /// The list of a setting. Without one, or with one that cannot be read, there are no further kinds.
    pub(crate) fn of(setting: Option<&str>) -> Self {
        setting
            .and_then(|text| settings::read(text).ok())
            .unwrap_or_default()
    }

    /// Whether a spread may name a workload of this kind.
    pub(crate) fn permits(&self, api_version: &str, kind: &str) -> bool {
        let group = group_of(api_version);
        self.workloads.iter().any(|custom| custom.kind.is(group, kind))
    }

    /// Whether pods, or the objects between them and a workload, may have a controller of this kind.
    pub(super) fn knows(&self, api_version: &str, kind: &str) -> bool {
        let group = group_of(api_version);
        KNOWN.contains(&(group, kind))
            || self.permits(api_version, kind)
            || self
                .workloads
                .iter()
                .flat_map(|custom| &custom.below)
                .any(|below| below.is(group, kind))
    }

    /// The path of the number of pods in a workload, if the list has one for exactly its version.
    pub(crate) fn replicas_path(&self, target: &TargetReference) -> Option<&str> {
        let version = target.api_version.rsplit('/').next().unwrap_or_default();
        let is_it = |custom: &&Custom| {
            custom.kind.is(group_of(&target.api_version), &target.kind) && custom.kind.version == version
        };
        let found = self.workloads.iter().find(is_it)?;
        (!found.replicas_path.is_empty()).then_some(&*found.replicas_path)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn list() -> WhiteList {
        let text = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game","replicasPath":"spec.replicas",
            "subResources":[{"Group":"example.com","Version":"v1","Kind":"Round"}]}]}"#;
        WhiteList::of(Some(text))
    }

    #[rstest]
    #[case("apps/v1", "Deployment", true, false)]
    #[case("apps.kruise.io/v1beta1", "StatefulSet", true, false)]
    #[case("apps/v1", "DaemonSet", false, false)]
    #[case("example.com/v2", "Game", true, true)]
    #[case("example.com/v1", "Round", true, false)]
    fn kinds(#[case] api_version: &str, #[case] kind: &str, #[case] known: bool, #[case] permitted: bool) {
        assert_eq!(list().knows(api_version, kind), known);
        assert_eq!(list().permits(api_version, kind), permitted);
        assert_eq!(
            WhiteList::of(None).knows(api_version, kind),
            known && !api_version.starts_with("example")
        );
    }

    /// OpenKruise's own suite writes the name so.
    #[test]
    fn names_of_fields_are_taken_in_any_case() {
        let text = r#"{"Workloads":[{"group":"example.com","VERSION":"v1","kind":"Game","ReplicasPath":"spec.replicas"}]}"#;
        let list = WhiteList::of(Some(text));
        assert!(list.permits("example.com/v1", "Game"));
        assert_eq!(list.workloads[0].replicas_path, "spec.replicas");
    }

    #[rstest]
    #[case("example.com/v1", Some("spec.replicas"))]
    #[case("example.com/v2", None)]
    fn paths_are_those_of_a_version(#[case] api_version: &str, #[case] want: Option<&str>) {
        let target = TargetReference {
            api_version: api_version.to_owned(),
            kind: "Game".to_owned(),
            name: "g".to_owned(),
        };
        assert_eq!(list().replicas_path(&target), want);
    }
}
