//! The kinds whose pods are recorded beside StatefulSets, which the ConfigMap `kruise-configuration` lists.

use serde::Deserialize;

use crate::kit::settings::read;
use crate::targets::group_of;

/// The key of the list.
pub(crate) const KEY: &str = "PPS_Watch_Custom_Workload_WhiteList";
/// The groups whose StatefulSets need no list.
const GROUPS: [&str; 2] = ["apps", "apps.kruise.io"];

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WhiteList {
    /// The kinds.
    pub(crate) workloads: Vec<Listed>,
}

/// A kind of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Listed {
    /// Its group.
    pub(crate) group: String,
    /// The version in which it is watched.
    pub(crate) version: String,
    /// Its name.
    pub(crate) kind: String,
}

impl WhiteList {
    /// The list of a setting; without one there are no further kinds.
    ///
    /// # Errors
    /// Why the setting cannot be read.
    pub(crate) fn of(setting: Option<&str>) -> Result<Self, serde_json::Error> {
        let Some(text) = setting else {
            return Ok(Self::default());
        };
        read(text)
    }

    /// Whether pods of workloads of this kind are recorded.
    pub(crate) fn permits(&self, api_version: &str, kind: &str) -> bool {
        let group = group_of(api_version);
        is_known(api_version, kind)
            || self
                .workloads
                .iter()
                .any(|listed| (&*listed.group, &*listed.kind) == (group, kind))
    }
}

/// Whether pods of workloads of this kind are recorded whatever the list says.
pub(crate) fn is_known(api_version: &str, kind: &str) -> bool {
    kind == "StatefulSet" && GROUPS.contains(&group_of(api_version))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const LIST: &str = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}"#;

    #[rstest]
    #[case::built_in(None, "apps/v1", "StatefulSet", true)]
    #[case::advanced(None, "apps.kruise.io/v1alpha1", "StatefulSet", true)]
    #[case::of_another_group(None, "example.com/v1", "StatefulSet", false)]
    #[case::another_kind(None, "apps/v1", "Deployment", false)]
    #[case::without_a_list(None, "example.com/v1", "Game", false)]
    #[case::listed(Some(LIST), "example.com/v1", "Game", true)]
    #[case::in_another_version(Some(LIST), "example.com/v2", "Game", true)]
    #[case::built_in_beside_a_list(Some(LIST), "apps/v1", "StatefulSet", true)]
    #[case::not_listed(Some(LIST), "example.com/v1", "Round", false)]
    #[case::small_letters(
        Some(r#"{"WORKLOADS":[{"group":"example.com","version":"v1","kind":"Game"}]}"#),
        "example.com/v1",
        "Game",
        true
    )]
    fn kinds(
        #[case] setting: Option<&str>,
        #[case] api_version: &str,
        #[case] kind: &str,
        #[case] permitted: bool,
    ) {
        assert_eq!(
            WhiteList::of(setting).unwrap().permits(api_version, kind),
            permitted
        );
    }

    #[test]
    fn a_broken_list_is_an_error() {
        assert!(WhiteList::of(Some("{")).is_err());
    }
}
