//! Errors in the patches of subsets: each is tried on the template of the workload, if there is one.

use pod_rules::FieldError;
use serde_json::{Value, json};

use super::subsets::PATH;
use crate::api::v1alpha1::{TargetReference, WorkloadSpread};
use crate::kit::admission::Surroundings;
use crate::pods::strategic;
use crate::pods::template::rules;
use crate::targets::Lookup;

/// The place of the pod's spec in the errors of templates.
const TEMPLATE: &str = "spec.template.spec";

/// Errors in the patches.
pub(super) async fn patches(
    spread: &WorkloadSpread,
    namespace: &str,
    surroundings: &Surroundings,
) -> Vec<FieldError> {
    let has_patch = spread.spec.subsets.iter().any(|subset| subset.patch.is_some());
    let (Some(reference), Some(client)) = (&spread.spec.target_ref, &surroundings.client) else {
        return Vec::new();
    };
    if !has_patch {
        return Vec::new();
    }
    let lookup = Lookup::shared(client.clone(), &surroundings.shared);
    // For the StatefulSets of both groups the real webhook looks at those of Kubernetes.
    let reference = match reference.kind == "StatefulSet" {
        true => TargetReference {
            api_version: "apps/v1".to_owned(),
            ..reference.clone()
        },
        false => reference.clone(),
    };
    let Ok(Some(target)) = lookup.get(namespace, &reference).await else {
        return Vec::new();
    };
    let Some(template) = target.at("/spec/template") else {
        return Vec::new();
    };
    let claims = target.at("/spec/volumeClaimTemplates").and_then(Value::as_array);
    let claims = claims.map_or(&[][..], Vec::as_slice);
    let subsets = spread.spec.subsets.iter().enumerate();
    let with_patch = subsets.filter_map(|(at, subset)| Some((at, subset.patch.as_ref()?)));
    with_patch
        .flat_map(|(at, patch)| tried(template, claims, patch, at))
        .collect()
}

/// Errors in a patch of a template.
fn tried(template: &Value, claims: &[Value], patch: &Value, at: usize) -> Vec<FieldError> {
    let path = format!("{PATH}[{at}].patch");
    let mut pod = json!({ "metadata": template.get("metadata"), "spec": template.get("spec") });
    if let Err(error) = strategic::merge(&mut pod, patch) {
        let detail = format!("failed to merge patch: {error}");
        return vec![FieldError::invalid(
            path,
            shared_json::Value::from(patch.to_string()),
            detail,
        )];
    }
    let errors = rules::pod_template(&pod, claims)
        .into_iter()
        .filter_map(|mut error| {
            let rest = error.path.strip_prefix(TEMPLATE)?;
            error.path = format!("{path}{rest}");
            Some(error)
        });
    errors.collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({ "metadata": { "labels": { "a": "b" } } }), None)]
    #[case(json!({ "spec": { "containers": [{ "image": "x" }] } }), Some("spec.subsets[1].patch: Invalid value: "))]
    #[case(json!({ "spec": { "containers": [{ "name": "main", "image": "" }] } }), Some("spec.subsets[1].patch.containers[0].image: Required value"))]
    fn patches_of_a_template(#[case] patch: Value, #[case] want: Option<&str>) {
        let container = json!({ "name": "main", "image": "nginx", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File", "terminationMessagePath": "/dev/termination-log" });
        let spec = json!({ "containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30, "securityContext": {}, "schedulerName": "default-scheduler" });
        let template = json!({ "metadata": { "labels": { "app": "x" } }, "spec": spec });
        let errors = tried(&template, &[], &patch, 1);
        match want {
            None => assert_eq!(errors, []),
            Some(text) => assert!(errors[0].to_string().starts_with(text), "{}", errors[0]),
        }
    }
}
