//! Brings the pods of a set back to where they were: puts the record of a PersistentPodState into a new pod.

use serde_json::{Map, Value, json};

use crate::api::v1alpha1::{PersistentPodState, PodState};
use crate::kit::admission::{Refusal, Request};

/// Annotation of a pod: the PersistentPodState whose record it has.
const INJECTED: &str = "kruise.io/injected-persistent-pod-state";

/// The groups whose StatefulSets have records.
const GROUPS: [&str; 2] = ["apps", "apps.kruise.io"];

/// Puts the record of a pod into it, if there is one.
pub(super) async fn mutate(pod: &mut Value, request: &Request<'_>) -> Result<(), Refusal> {
    let Some((group, set)) = owner(pod) else {
        return Ok(());
    };
    let states = request.surroundings.cache::<PersistentPodState>().await?;
    let own = states.all().into_iter().find(|state| {
        let reference = &state.spec.target_ref;
        state.metadata.deletion_timestamp.is_none()
            && state.metadata.namespace.as_deref() == Some(request.namespace)
            && reference.api_version.split('/').next() == Some(&group)
            && (reference.kind.as_str(), &reference.name) == ("StatefulSet", &set)
    });
    if let Some(state) = own {
        inject(pod, &state);
    }
    Ok(())
}

/// The group and the name of the StatefulSet that controls a pod.
fn owner(pod: &Value) -> Option<(String, String)> {
    let owners = pod
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    let owner = owners
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |field: &str| owner.get(field).and_then(Value::as_str);
    let group = text("apiVersion")?.split('/').next()?;
    let is_set = text("kind") == Some("StatefulSet") && GROUPS.contains(&group);
    is_set.then_some((group.to_owned(), text("name")?.to_owned()))
}

/// Puts the record of a pod into it: what is required into its node selector, what is preferred into its affinity.
fn inject(pod: &mut Value, state: &PersistentPodState) {
    let name = pod
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let records = state.status.as_ref().map(|status| &status.pod_states);
    let record = records.and_then(|records| records.get(name));
    let Some(record) = record.filter(|record| !record.node_topology_labels.is_empty()) else {
        return;
    };
    let value = |key: &String| record.node_topology_labels.get(key);
    if let Some(annotations) = object(pod, "metadata").and_then(|metadata| part(metadata, "annotations")) {
        annotations.insert(INJECTED.to_owned(), json!(state.metadata.name));
    }
    let Some(spec) = object(pod, "spec") else { return };
    if let Some(required) = &state.spec.required_persistent_topology
        && let Some(selector) = part(spec, "nodeSelector")
    {
        let labels = required.node_topology_keys.iter();
        selector.extend(labels.filter_map(|key| Some((key.clone(), json!(value(key)?)))));
    }
    let terms = preferred(state, record);
    if terms.is_empty() {
        return;
    }
    let affinity = part(spec, "affinity").and_then(|affinity| part(affinity, "nodeAffinity"));
    let Some(affinity) = affinity else { return };
    let list = affinity
        .entry("preferredDuringSchedulingIgnoredDuringExecution")
        .or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.extend(terms);
    }
}

/// A term of the affinity for each preference of which the record has a label.
fn preferred(state: &PersistentPodState, record: &PodState) -> Vec<Value> {
    let preferences = state.spec.preferred_persistent_topology.iter().flatten();
    let term = |preference: &crate::api::v1alpha1::PreferredTopology| {
        let keys = preference.preference.node_topology_keys.iter();
        let expressions: Vec<Value> = keys
            .filter_map(|key| {
                let value = record.node_topology_labels.get(key)?;
                Some(json!({ "key": key, "operator": "In", "values": [value] }))
            })
            .collect();
        (!expressions.is_empty()).then(
            || json!({ "weight": preference.weight, "preference": { "matchExpressions": expressions } }),
        )
    };
    preferences.filter_map(term).collect()
}

fn object<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Map<String, Value>> {
    value.get_mut(field).and_then(Value::as_object_mut)
}

/// The object at a field, made if there is none.
fn part<'m>(map: &'m mut Map<String, Value>, field: &str) -> Option<&'m mut Map<String, Value>> {
    let part = map.entry(field).or_insert(Value::Null);
    if !part.is_object() {
        *part = Value::Object(Map::new());
    }
    part.as_object_mut()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn state(spec: &Value, name: &str) -> PersistentPodState {
        let mut object = json!({
            "metadata": { "name": "s", "namespace": "default" },
            "spec": { "targetRef": { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web" } },
            "status": { "observedGeneration": 1, "podStates": { name: { "nodeName": "n1", "nodeTopologyLabels": { "zone": "z", "host": "n1" } } } },
        });
        crate::kit::json::merge(&mut object, json!({ "spec": spec }));
        serde_json::from_value(object).unwrap()
    }

    fn expression(key: &str, value: &str) -> Value {
        json!({ "key": key, "operator": "In", "values": [value] })
    }

    /// The spec of the PersistentPodState, of the pod, and that of the pod then.
    #[rstest]
    #[case::required(
        json!({ "requiredPersistentTopology": { "nodeTopologyKeys": ["zone", "rack"] } }),
        json!({ "nodeSelector": { "zone": "other", "os": "linux" } }),
        json!({ "nodeSelector": { "zone": "z", "os": "linux" } })
    )]
    #[case::preferred(
        json!({ "preferredPersistentTopology": [{ "weight": 7, "preference": { "nodeTopologyKeys": ["zone", "host"] } },
            { "weight": 1, "preference": { "nodeTopologyKeys": ["rack"] } }] }),
        json!({}),
        json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            { "weight": 7, "preference": { "matchExpressions": [expression("zone", "z"), expression("host", "n1")] } }] } } })
    )]
    #[case::after_its_own(
        json!({ "preferredPersistentTopology": [{ "weight": 7, "preference": { "nodeTopologyKeys": ["zone"] } }] }),
        json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [1] } } }),
        json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [1,
            { "weight": 7, "preference": { "matchExpressions": [expression("zone", "z")] } }] } } })
    )]
    fn records(#[case] state_spec: Value, #[case] pod: Value, #[case] expect: Value) {
        let mut pod = json!({ "metadata": { "name": "web-0" }, "spec": pod });
        inject(&mut pod, &state(&state_spec, "web-0"));
        assert_eq!(
            (&pod["spec"], &pod["metadata"]["annotations"]),
            (&expect, &json!({ INJECTED: "s" }))
        );
    }

    #[test]
    fn a_pod_without_a_record_is_left_alone() {
        let mut pod = json!({ "metadata": { "name": "web-1" }, "spec": {} });
        let before = pod.clone();
        inject(
            &mut pod,
            &state(
                &json!({ "requiredPersistentTopology": { "nodeTopologyKeys": ["zone"] } }),
                "web-0",
            ),
        );
        assert_eq!(pod, before);
    }

    #[rstest]
    #[case("apps/v1", "StatefulSet", true, Some(("apps", "web")))]
    #[case("apps.kruise.io/v1beta1", "StatefulSet", true, Some(("apps.kruise.io", "web")))]
    #[case("apps/v1", "StatefulSet", false, None)]
    #[case("apps/v1", "ReplicaSet", true, None)]
    #[case("example.com/v1", "StatefulSet", true, None)]
    fn owners(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] controls: bool,
        #[case] expect: Option<(&str, &str)>,
    ) {
        let owner = json!({ "apiVersion": version, "kind": kind, "name": "web", "controller": controls });
        let found = owner_of(&owner);
        assert_eq!(
            found,
            expect.map(|(group, name)| (group.to_owned(), name.to_owned()))
        );
    }

    fn owner_of(owner: &Value) -> Option<(String, String)> {
        super::owner(&json!({ "metadata": { "ownerReferences": [owner] } }))
    }
}
