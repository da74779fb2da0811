//! The budget of a new pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{DELETE_GATE, UPDATE_GATE};
use crate::api::labels;
use crate::api::v1alpha1::{PodUnavailableBudget, TargetReference};
use crate::kit::admission::Request;
use crate::kit::{Informer, controller_of, selector};
use crate::targets::{Lookup, is_same};

/// Names the budget of a new pod in its annotations. Failures leave the pod as it is.
pub(crate) async fn relate(pod: &mut Value, request: &Request<'_>) {
    let gates = &request.surroundings.gates;
    if !gates.is_on(DELETE_GATE) && !gates.is_on(UPDATE_GATE) {
        return;
    }
    let budgets: Informer<PodUnavailableBudget> = match request.surroundings.cache().await {
        Ok(budgets) => budgets,
        Err(refusal) => return tracing::warn!(refusal.message, "failed to list budgets"),
    };
    let budgets = budgets.in_namespace(request.namespace);
    if budgets.is_empty() {
        return;
    }
    let metadata = pod.get("metadata").cloned().unwrap_or_default();
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
    let workload = match budgets.iter().any(|budget| budget.spec.target_ref.is_some()) {
        true => workload(&metadata, request).await,
        false => None,
    };
    let pod_labels = metadata.labels.unwrap_or_default();
    if let Some(found) = find(&budgets, workload.as_ref(), &pod_labels) {
        pod["metadata"]["annotations"][labels::RELATED_BUDGET] = json!(found.name_any());
    }
}

/// The workload of a pod, if it has one and it can be found.
async fn workload(pod: &ObjectMeta, request: &Request<'_>) -> Option<TargetReference> {
    let owner = controller_of(pod)?;
    if owner.kind != "ReplicaSet" {
        return Some(owner.into());
    }
    let client = request.surroundings.client.clone()?;
    match Lookup::shared(client, &request.surroundings.shared)
        .workload(request.namespace, owner)
        .await
    {
        Ok(found) => found.map(|found| found.reference()),
        Err(error) => {
            tracing::warn!(%error, owner = owner.name, "failed to find the workload of a pod");
            None
        }
    }
}

/// The first budget that names the workload, or selects the labels.
fn find<'a>(
    budgets: &'a [Arc<PodUnavailableBudget>],
    workload: Option<&TargetReference>,
    pod: &BTreeMap<String, String>,
) -> Option<&'a PodUnavailableBudget> {
    let matches = |budget: &&Arc<PodUnavailableBudget>| match (&budget.spec.target_ref, workload) {
        (Some(target), Some(workload)) => is_same(target, workload),
        _ => {
            let selector = budget.spec.selector.as_ref();
            selector.is_some_and(|selector| selector::selects(selector, pod) == Ok(true))
        }
    };
    budgets.iter().find(matches).map(Arc::as_ref)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn budget(name: &str, spec: &Value) -> Arc<PodUnavailableBudget> {
        let spec = serde_json::from_value(spec.clone()).unwrap();
        Arc::new(PodUnavailableBudget::new(name, spec))
    }

    fn clone_set(name: &str) -> TargetReference {
        serde_json::from_value(
            json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": name }),
        )
        .unwrap()
    }

    /// The budgets' specs, the name of the pod's CloneSet if it has one, and the budget that is found.
    #[rstest]
    #[case::by_labels(json!([{ "selector": { "matchLabels": { "app": "x" } } }]), "", Some("0"))]
    #[case::by_other_labels(json!([{ "selector": { "matchLabels": { "app": "y" } } }]), "", None)]
    #[case::empty_selector(json!([{ "selector": {} }]), "", None)]
    #[case::by_workload(json!([{ "targetRef": { "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web" } }]), "web", Some("0"))]
    #[case::of_another_workload(json!([{ "targetRef": { "apiVersion": "apps.kruise.io/v1", "kind": "CloneSet", "name": "web" } }]), "db", None)]
    #[case::workload_unknown(json!([{ "targetRef": { "apiVersion": "apps.kruise.io/v1", "kind": "CloneSet", "name": "web" } }]), "", None)]
    #[case::the_first(json!([{ "selector": { "matchLabels": { "app": "x" } } },
        { "targetRef": { "apiVersion": "apps.kruise.io/v1", "kind": "CloneSet", "name": "web" } }]), "web", Some("0"))]
    #[case::the_first_that_matches(json!([{ "selector": { "matchLabels": { "app": "y" } } },
        { "targetRef": { "apiVersion": "apps.kruise.io/v1", "kind": "CloneSet", "name": "web" } }]), "web", Some("1"))]
    fn budgets_of_new_pods(#[case] specs: Value, #[case] workload: &str, #[case] want: Option<&str>) {
        let specs = specs.as_array().unwrap().iter().enumerate();
        let budgets: Vec<_> = specs.map(|(at, spec)| budget(&at.to_string(), spec)).collect();
        let workload = (!workload.is_empty()).then(|| clone_set(workload));
        let pod = BTreeMap::from([("app".to_owned(), "x".to_owned())]);
        let found = find(&budgets, workload.as_ref(), &pod).map(|found| found.name_any());
        assert_eq!(found.as_deref(), want);
    }
}
