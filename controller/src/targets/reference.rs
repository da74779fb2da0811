//! References to workloads. Their versions do not matter.

use crate::api::v1alpha1::TargetReference;

/// The group of a text such as `apps/v1`; empty for the core's.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether both name the same workload of a namespace.
pub(crate) fn is_same(one: &TargetReference, other: &TargetReference) -> bool {
    is_named(one, &other.api_version, &other.kind, &other.name)
}

/// Whether the reference names the workload of that kind and name.
pub(crate) fn is_named(reference: &TargetReference, api_version: &str, kind: &str, name: &str) -> bool {
    group_of(&reference.api_version) == group_of(api_version)
        && reference.kind == kind
        && reference.name == name
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn reference(text: &str) -> TargetReference {
        let [api_version, kind, name] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        TargetReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    #[rstest]
    #[case("apps/v1 Deployment web", "apps/v1 Deployment web", true)]
    #[case("apps/v1 Deployment web", "apps/v1beta1 Deployment web", true)]
    #[case("apps/v1 StatefulSet web", "apps.kruise.io/v1beta1 StatefulSet web", false)]
    #[case("apps/v1 Deployment web", "apps/v1 Deployment db", false)]
    #[case("apps/v1 Deployment web", "apps/v1 ReplicaSet web", false)]
    #[case("v1 ReplicationController web", "v1 ReplicationController web", true)]
    fn references(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        assert_eq!(is_same(&reference(one), &reference(other)), same);
    }
}
