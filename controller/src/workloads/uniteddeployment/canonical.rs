//! Templates of workloads in the form in which a Go program writes them.

use k8s_openapi::api::apps::v1 as apps;
use serde_json::{Map, Value, json};

use super::kinds::ChildKind;
use crate::api::v1alpha1::CloneSetSpec;
use crate::api::v1beta1::StatefulSetSpec;
use crate::pods::template::spec::{Number, canonical_spec};
use crate::pods::template::{claim_template, pod_template};

/// Fields of a workload's spec that Go decodes into numbers.
const NUMBERS: [Number; 3] = [
    ("/replicas", STRUCT),
    ("/revisionHistoryLimit", STRUCT),
    ("/minReadySeconds", STRUCT),
];
const STRUCT: &str = "UnitedDeploymentSpec.spec.template.spec";

/// The whole of `spec.template` as Go writes it after reading it.
///
/// # Errors
/// The decoder's text when a part is of another type.
pub(super) fn template(template: &Value) -> Result<Value, String> {
    let mut out = Map::new();
    for kind in ChildKind::ALL {
        let Some(own) = template.get(kind.field()).filter(|own| !own.is_null()) else {
            continue;
        };
        let Value::Object(own) = own else {
            return Err(format!("spec.template.{} is not an object", kind.field()));
        };
        let of = json!({
            "metadata": metadata(own.get("metadata").unwrap_or(&Value::Null))?,
            "spec": spec(kind, own.get("spec").unwrap_or(&Value::Null))?,
        });
        out.insert(kind.field().to_owned(), of);
    }
    Ok(Value::Object(out))
}

/// Metadata as Go writes it: that of a pod template.
fn metadata(metadata: &Value) -> Result<Value, String> {
    let holder = match metadata {
        Value::Null => json!({ "spec": { "containers": [] } }),
        metadata => json!({ "metadata": metadata, "spec": { "containers": [] } }),
    };
    let mut written = pod_template(&holder)?;
    Ok(written.get_mut("metadata").map(Value::take).unwrap_or_default())
}

/// The spec of a workload of that kind.
fn spec(kind: ChildKind, spec: &Value) -> Result<Value, String> {
    let nothing = json!({});
    let spec = if spec.is_null() { &nothing } else { spec };
    let mut fields = match kind {
        ChildKind::StatefulSet => {
            canonical_spec::<apps::StatefulSetSpec>(spec, &NUMBERS, &["updateStrategy"])?
        }
        ChildKind::AdvancedStatefulSet => {
            let structs = ["updateStrategy", "volumeClaimUpdateStrategy"];
            canonical_spec::<StatefulSetSpec>(spec, &NUMBERS, &structs)?
        }
        ChildKind::CloneSet => {
            let structs = ["scaleStrategy", "updateStrategy"];
            canonical_spec::<CloneSetSpec>(spec, &NUMBERS, &structs)?
        }
        ChildKind::Deployment => canonical_spec::<apps::DeploymentSpec>(spec, &NUMBERS, &["strategy"])?,
    };
    if matches!(kind, ChildKind::StatefulSet | ChildKind::Deployment) {
        parts_of_built_in(spec, &mut fields)?;
    }
    fields.retain(|name, field| match name.as_str() {
        "minReadySeconds" => *field != json!(0),
        "paused" => *field != json!(false),
        "podManagementPolicy" => *field != json!(""),
        "serviceName" => kind == ChildKind::StatefulSet || *field != json!(""),
        "reserveOrdinals" | "volumeClaimTemplates" => *field != json!([]),
        _ => true,
    });
    fields.entry("selector").or_insert(Value::Null);
    if kind == ChildKind::StatefulSet {
        fields.entry("serviceName").or_insert(json!(""));
    }
    Ok(Value::Object(fields))
}

/// The pod template and the templates of claims as Go writes them: the types of built-in workloads leave out null fields.
fn parts_of_built_in(spec: &Value, fields: &mut Map<String, Value>) -> Result<(), String> {
    let nothing = json!({});
    let template = spec.get("template").filter(|template| !template.is_null());
    fields.insert("template".to_owned(), pod_template(template.unwrap_or(&nothing))?);
    if let Some(claims) = spec.get("volumeClaimTemplates").and_then(Value::as_array) {
        let claims: Result<Vec<Value>, String> = claims.iter().map(claim_template).collect();
        fields.insert("volumeClaimTemplates".to_owned(), Value::from(claims?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const POD: &str = r#"{ "metadata": { "creationTimestamp": null }, "spec": { "containers": [{ "name": "main", "resources": {} }] } }"#;

    /// A template, and the same as Go writes it.
    #[rstest]
    #[case::clone_set(
        json!({ "cloneSetTemplate": { "metadata": { "labels": { "a": "b" }, "bogus": 1 }, "spec": {
            "selector": { "matchLabels": { "a": "b" } }, "minReadySeconds": 0, "volumeClaimTemplates": [] } } }),
        json!({ "cloneSetTemplate": { "metadata": { "creationTimestamp": null, "labels": { "a": "b" } }, "spec": {
            "selector": { "matchLabels": { "a": "b" } }, "scaleStrategy": {}, "updateStrategy": {} } } })
    )]
    #[case::stateful_set(
        json!({ "statefulSetTemplate": { "spec": { "podManagementPolicy": "", "updateStrategy": { "type": "OnDelete" } } } }),
        json!({ "statefulSetTemplate": { "metadata": { "creationTimestamp": null }, "spec": { "selector": null, "serviceName": "",
            "updateStrategy": { "type": "OnDelete" } } } })
    )]
    #[case::advanced_stateful_set(
        json!({ "advancedStatefulSetTemplate": { "metadata": null, "spec": { "serviceName": "", "reserveOrdinals": [] } } }),
        json!({ "advancedStatefulSetTemplate": { "metadata": { "creationTimestamp": null }, "spec": { "selector": null,
            "updateStrategy": {}, "volumeClaimUpdateStrategy": {} } } })
    )]
    #[case::deployment(
        json!({ "statefulSetTemplate": null, "deploymentTemplate": { "spec": { "paused": false } } }),
        json!({ "deploymentTemplate": { "metadata": { "creationTimestamp": null }, "spec": { "selector": null, "strategy": {} } } })
    )]
    #[case::claims(
        json!({ "statefulSetTemplate": { "spec": { "volumeClaimTemplates": [{ "metadata": { "name": "d" }, "spec": {} }] } } }),
        json!({ "statefulSetTemplate": { "metadata": { "creationTimestamp": null }, "spec": { "selector": null, "serviceName": "",
            "updateStrategy": {}, "volumeClaimTemplates": [{ "metadata": { "creationTimestamp": null, "name": "d" },
                "spec": { "resources": {} }, "status": {} }] } } })
    )]
    #[case::nothing(json!({}), json!({}))]
    fn templates(#[case] mut given: Value, #[case] mut want: Value) {
        let pod = json!({ "spec": { "containers": [{ "name": "main" }] } });
        let written: Value = serde_json::from_str(POD).unwrap();
        for (value, pod) in [(&mut given, &pod), (&mut want, &written)] {
            for kind in ChildKind::ALL {
                if let Some(spec) = value.pointer_mut(&format!("/{}/spec", kind.field())) {
                    spec["template"] = pod.clone();
                }
            }
        }
        let got = template(&given).unwrap();
        assert_eq!(got, want);
        assert_eq!(template(&got).unwrap(), want, "idempotent");
    }

    #[rstest]
    #[case(json!({ "cloneSetTemplate": 1 }))]
    #[case(json!({ "deploymentTemplate": { "spec": { "replicas": "3" } } }))]
    #[case(json!({ "deploymentTemplate": { "spec": { "template": { "spec": { "containers": "none" } } } } }))]
    fn what_is_no_template(#[case] given: Value) {
        assert!(template(&given).is_err());
    }
}
