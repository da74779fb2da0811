//! The version of its workload that a pod has.

use std::collections::BTreeMap;

use crate::api::labels;
use crate::pods::revision;

/// The version of pods of workloads whose versions do not matter.
pub(crate) const IGNORED: &str = "versionIgnored";
/// The kinds whose versions matter.
const VERSIONED: [&str; 2] = ["Deployment", "ReplicaSet"];

/// The version of a pod with these labels whose controller is of this kind.
pub(crate) fn of<'a>(controller: &str, pod: &'a BTreeMap<String, String>) -> &'a str {
    if !VERSIONED.contains(&controller) {
        return IGNORED;
    }
    let hash = pod.get(labels::TEMPLATE_HASH).filter(|hash| !hash.is_empty());
    let revision = || pod.get(labels::REVISION_HASH).map(|name| revision::short(name));
    hash.map(String::as_str)
        .or_else(revision)
        .filter(|version| !version.is_empty())
        .unwrap_or(IGNORED)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ReplicaSet", "pod-template-hash=1", "1")]
    #[case("ReplicaSet", "controller-revision-hash=a-b-2", "2")]
    #[case("ReplicaSet", "app=x", "versionIgnored")]
    #[case("CloneSet", "pod-template-hash=1", "versionIgnored")]
    #[case("", "pod-template-hash=1", "versionIgnored")]
    fn versions(#[case] controller: &str, #[case] label: &str, #[case] want: &str) {
        let (key, value) = label.split_once('=').unwrap();
        let pod = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(of(controller, &pod), want);
    }
}
