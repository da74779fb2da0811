//! The two versions of a StatefulSet.

use serde_json::{Map, Value};

use crate::kit::conversion::Conversion;

/// Between `v1alpha1` and `v1beta1`. The former has fewer fields: a write through it loses the others, as in OpenKruise.
pub(super) const CONVERSION: Conversion = Conversion {
    group: "apps.kruise.io",
    kind: "StatefulSet",
    versions: &["v1alpha1", "v1beta1"],
    convert: |set, version| {
        if version == "v1alpha1" {
            down(set);
        }
        Ok(())
    },
};

/// The fields of a spec that `v1alpha1` does not have.
const SPEC: [&str; 6] = [
    "lifecycle",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "reserveOrdinals",
    "scaleStrategy",
    "volumeClaimUpdateStrategy",
];
/// The fields of a status that `v1alpha1` does not have.
const STATUS: [&str; 3] = ["updatedAvailableReplicas", "updatedReadyReplicas", "volumeClaims"];

fn down(set: &mut Value) {
    let mut forget = |part: &str, fields: &[&str]| {
        let part: Option<&mut Map<String, Value>> = set.get_mut(part).and_then(Value::as_object_mut);
        if let Some(part) = part {
            part.retain(|field, _| !fields.contains(&field.as_str()));
        }
    };
    forget("spec", &SPEC);
    forget("status", &STATUS);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const NEW: &str = "apps.kruise.io/v1beta1";

    #[rstest]
    #[case::fields_that_both_have(NEW, OLD, json!({ "spec": { "replicas": 2, "serviceName": "s" } }), json!({ "spec": { "replicas": 2, "serviceName": "s" } }))]
    #[case::fields_of_one(
        NEW, OLD,
        json!({ "spec": { "replicas": 2, "reserveOrdinals": [1], "lifecycle": {}, "volumeClaimUpdateStrategy": {} },
            "status": { "replicas": 2, "updatedReadyReplicas": 1 } }),
        json!({ "spec": { "replicas": 2 }, "status": { "replicas": 2 } })
    )]
    #[case::up(OLD, NEW, json!({ "spec": { "replicas": 2 } }), json!({ "spec": { "replicas": 2 } }))]
    #[case::bad_input(NEW, OLD, json!({ "spec": [], "status": "x" }), json!({ "spec": [], "status": "x" }))]
    fn versions(#[case] from: &str, #[case] to: &str, #[case] mut set: Value, #[case] mut expect: Value) {
        set["apiVersion"] = json!(from);
        expect["apiVersion"] = json!(to);
        assert_eq!(CONVERSION.to(set, to), Ok(expect));
    }

    #[test]
    fn there_is_no_third_version() {
        let set = json!({ "apiVersion": "apps.kruise.io/v1" });
        assert!(CONVERSION.to(set, NEW).is_err());
    }
}
