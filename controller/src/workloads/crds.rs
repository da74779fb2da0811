//! The CustomResourceDefinitions of OpenKruise 1.9.0.

use serde_json::Value;

use super::ALL;
use crate::gates::FeatureGates;

/// The definitions that are installed with these gates, one value each.
///
/// They are those of `api::definitions`, not generated from the types.
#[must_use]
pub fn crds(gates: &FeatureGates) -> Vec<Value> {
    let all = ALL.iter().flat_map(|workload| workload.crds);
    all.filter(|crd| crd.is_installed(gates))
        .map(super::Crd::object)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_json() {
        for crd in ALL.iter().flat_map(|workload| workload.crds) {
            assert_eq!(crd.object()["kind"], "CustomResourceDefinition");
            assert_eq!(crd.object()["metadata"]["name"], crd.name());
        }
    }
}
