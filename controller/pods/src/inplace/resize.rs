//! CPU and memory that change in place (feature gate `InPlaceWorkloadVerticalScaling`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::state::Change;
use crate::pod::{self, Container, ContainerStatus, Pod};
use crate::template::canonical_quantity;

/// The resources that can change in place.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// New amounts of a container, only those that change. The form is that of a container's `resources`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// By resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// By resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
}

/// Takes the resources out of a container of a template.
pub fn take(container: &mut Value) -> Map<String, Value> {
    match container.as_object_mut().and_then(|map| map.remove("resources")) {
        Some(Value::Object(resources)) => resources,
        _ => Map::new(),
    }
}

/// The amounts that differ; none when something differs that cannot change in place: another resource, or an amount that
/// was not there before or is not there any more.
pub fn change(old: &Map<String, Value>, new: &Map<String, Value>) -> Option<Resources> {
    let mut change = Resources::default();
    for field in old.keys().chain(new.keys()) {
        let (before, after) = (old.get(field), new.get(field));
        if before == after {
            continue;
        }
        let changed = match field.as_str() {
            "limits" => &mut change.limits,
            "requests" => &mut change.requests,
            _ => return None,
        };
        let (before, after) = (before?.as_object()?, after?.as_object()?);
        if before.len() != after.len() {
            return None;
        }
        for (resource, amount) in after {
            let old_amount = before.get(resource)?;
            if old_amount == amount {
                continue;
            }
            if !RESIZABLE.contains(&resource.as_str()) {
                return None;
            }
            let amount = amount.as_str()?;
            canonical_quantity(amount).ok()?;
            changed.insert(resource.clone(), amount.to_owned());
        }
    }
    Some(change)
}

/// The quality-of-service class of a pod with this spec: `Guaranteed`, `Burstable`, `BestEffort`.
pub fn class(spec: &Value) -> &'static str {
    let amounts = |container: &Value, field: &str| -> BTreeMap<String, String> {
        let map = container
            .pointer(&format!("/resources/{field}"))
            .and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter(|(resource, _)| RESIZABLE.contains(&resource.as_str()))
            .filter_map(|(resource, amount)| {
                Some((resource.clone(), canonical_quantity(amount.as_str()?).ok()?))
            })
            .filter(|(_, amount)| amount != "0")
            .collect()
    };
    let (mut any, mut guaranteed) = (false, true);
    for field in ["containers", "initContainers"] {
        for container in spec.get(field).and_then(Value::as_array).into_iter().flatten() {
            let (limits, requests) = (amounts(container, "limits"), amounts(container, "requests"));
            any |= !limits.is_empty() || !requests.is_empty();
            guaranteed &= limits.len() == RESIZABLE.len() && limits == requests;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Whether the pod must leave service for the change: not for new amounts alone that no container restarts for.
pub fn leaves_service(pod: &Pod, change: &Change) -> bool {
    let only_resources = !change.container_resources.is_empty()
        && change.container_images.is_empty()
        && change.container_ref_metadata.is_empty()
        && change.metadata_patch.is_none();
    !only_resources
        || pod::containers(pod).iter().any(|container| {
            change
                .container_resources
                .get(&container.name)
                .is_some_and(|resources| restarts(container, resources))
        })
}

fn restarts(container: &Container, resources: &Resources) -> bool {
    let policies = container.resize_policy.iter();
    policies
        .into_iter()
        .filter(|policy| policy.restart_policy == "RestartContainer")
        .any(|policy| {
            let resource = &policy.resource_name;
            resources.limits.contains_key(resource) || resources.requests.contains_key(resource)
        })
}

/// Says which container does not run with the amounts of its spec yet, or `Ok`.
pub fn arrived(pod: &Pod) -> Result<(), String> {
    let (containers, statuses) = (pod::containers(pod), pod::container_statuses(pod));
    if containers.len() != statuses.len() {
        return Err("some container status is not reported".to_owned());
    }
    for container in containers {
        let status = statuses.iter().find(|status| status.name == container.name);
        if !status.is_some_and(|status| runs_with(container, status)) {
            return Err(format!("container {} resources not changed", container.name));
        }
    }
    Ok(())
}

fn runs_with(container: &Container, status: &ContainerStatus) -> bool {
    let canonical = |amounts: Option<&pod::Amounts>| -> Vec<(Box<str>, String)> {
        let amounts = amounts.map(|amounts| amounts.0.iter());
        amounts
            .into_iter()
            .flatten()
            .map(|(resource, amount)| {
                let amount = canonical_quantity(amount).unwrap_or_else(|_| amount.to_string());
                (resource.clone(), amount)
            })
            .collect()
    };
    let wanted = container.resources.as_ref();
    let Some(actual) = &status.resources else {
        return false;
    };
    canonical(wanted.map(|wanted| &wanted.limits)) == canonical(Some(&actual.limits))
        && canonical(wanted.map(|wanted| &wanted.requests)) == canonical(Some(&actual.requests))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn check(old: &Value, new: &Value) -> Option<Value> {
        let change = change(old.as_object().unwrap(), new.as_object().unwrap())?;
        Some(serde_json::to_value(change).unwrap())
    }

    #[rstest]
    #[case::same(json!({ "limits": { "cpu": "1" } }), json!({ "limits": { "cpu": "1" } }), Some(json!({})))]
    #[case::cpu(json!({ "limits": { "cpu": "1", "memory": "1Gi" } }), json!({ "limits": { "cpu": "2", "memory": "1Gi" } }),
        Some(json!({ "limits": { "cpu": "2" } })))]
    #[case::both(json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "500m" } }),
        json!({ "limits": { "cpu": "2" }, "requests": { "cpu": "1" } }),
        Some(json!({ "limits": { "cpu": "2" }, "requests": { "cpu": "1" } })))]
    #[case::new_amount(json!({ "limits": { "cpu": "1" } }), json!({ "limits": { "cpu": "1", "memory": "1Gi" } }), None)]
    #[case::new_field(json!({}), json!({ "limits": { "cpu": "1" } }), None)]
    #[case::gone(json!({ "limits": { "cpu": "1" } }), json!({}), None)]
    #[case::other_resource(json!({ "limits": { "x.y/gpu": "1" } }), json!({ "limits": { "x.y/gpu": "2" } }), None)]
    #[case::claims(json!({ "claims": [] }), json!({ "claims": [{ "name": "a" }] }), None)]
    fn changes(#[case] old: Value, #[case] new: Value, #[case] want: Option<Value>) {
        assert_eq!(check(&old, &new), want);
    }

    #[rstest]
    #[case(json!([{}]), "BestEffort")]
    #[case(json!([{ "resources": { "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1000m", "memory": "1Gi" } } }]), "Guaranteed")]
    #[case(json!([{ "resources": { "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1", "memory": "1Gi" } } }, {}]), "Burstable")]
    #[case(json!([{ "resources": { "requests": { "cpu": "1" } } }]), "Burstable")]
    #[case(json!([{ "resources": { "requests": { "x.y/gpu": "1" } } }]), "BestEffort")]
    fn classes(#[case] containers: Value, #[case] want: &str) {
        assert_eq!(class(&json!({ "containers": containers })), want);
    }
}
