//! Brings the pods of a set back to where they were: puts the record of a PersistentPodState into a new pod.

pub(crate) mod white_list;

use serde_json::{Map, Value, json};

use self::white_list::{KEY, WhiteList, is_known};
use crate::api::v1alpha1::{PersistentPodState, PodState, TargetReference};
use crate::kit::admission::{Refusal, Request, Surroundings};
use crate::targets::is_same;

/// Annotation of a pod: the PersistentPodState whose record it has.
pub(crate) const INJECTED: &str = "kruise.io/injected-persistent-pod-state";

/// Puts the record of a pod into it, if there is one.
pub(super) async fn mutate(pod: &mut Value, request: &Request<'_>) -> Result<(), Refusal> {
    let Some(owner) = owner(pod) else {
        return Ok(());
    };
    let states = request.surroundings.cache::<PersistentPodState>().await?;
    let of_namespace = states.in_namespace(request.namespace).into_iter();
    let mut of_owner = of_namespace.filter(|state| {
        state.metadata.deletion_timestamp.is_none() && is_same(&state.spec.target_ref, &owner)
    });
    if let Some(state) = of_owner.next()
        && permits(request.surroundings, &owner).await?
    {
        inject(pod, &state);
    }
    Ok(())
}

/// Whether the pods of a workload are recorded. The list is read only for the kinds that need it.
///
/// # Errors
/// The refusal of a request for which the list cannot be read.
pub(crate) async fn permits(
    surroundings: &Surroundings,
    workload: &TargetReference,
) -> Result<bool, Refusal> {
    let TargetReference {
        api_version, kind, ..
    } = workload;
    if is_known(api_version, kind) {
        return Ok(true);
    }
    let setting = surroundings.setting(KEY).await;
    let setting = setting.map_err(|message| Refusal::new(500, message))?;
    let list = WhiteList::of(setting.as_deref()).map_err(|error| Refusal::new(500, error))?;
    Ok(list.permits(api_version, kind))
}

/// The workload that controls a pod.
fn owner(pod: &Value) -> Option<TargetReference> {
    let owners = pod
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    let owner = owners
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |field: &str| Some(owner.get(field)?.as_str()?.to_owned());
    Some(TargetReference {
        api_version: text("apiVersion")?,
        kind: text("kind")?,
        name: text("name")?,
    })
}

/// Puts the record of a pod into it: the required places into its node selector, the preferred ones into its affinity.
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
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;

    use super::*;
    use crate::gates::FeatureGates;
    use crate::kit::WebhookCaches;
    use crate::test_admission::admit_whole;

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

    const LIST: &str = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}"#;

    /// The zone that a new pod of a workload gets, of which a PersistentPodState has a record.
    #[rstest]
    #[case::built_in("apps/v1", "StatefulSet", true, None, Ok(true))]
    #[case::advanced("apps.kruise.io/v1beta1", "StatefulSet", true, None, Ok(true))]
    #[case::no_controller("apps/v1", "StatefulSet", false, None, Ok(false))]
    #[case::listed("example.com/v1", "Game", true, Some(LIST), Ok(true))]
    #[case::not_listed("example.com/v1", "Round", true, Some(LIST), Ok(false))]
    #[case::without_a_list("example.com/v1", "Game", true, None, Ok(false))]
    #[case::broken_list("example.com/v1", "Game", true, Some("{"), Err(500))]
    #[case::broken_list_that_is_not_needed("apps/v1", "StatefulSet", true, Some("{"), Ok(true))]
    #[tokio::test]
    async fn workloads(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] controls: bool,
        #[case] list: Option<&str>,
        #[case] expect: Result<bool, u16>,
    ) {
        let required = json!({ "requiredPersistentTopology": { "nodeTopologyKeys": ["zone"] } });
        let mut state = state(&required, "web-0");
        (state.spec.target_ref.api_version, state.spec.target_ref.kind) = (version.into(), kind.into());
        let settings: Vec<ConfigMap> = list.map(settings).into_iter().collect();
        let surroundings = Surroundings {
            namespace: "kruise-system".to_owned(),
            caches: WebhookCaches::default().with(vec![state]).with(settings),
            ..Surroundings::alone(FeatureGates::default())
        };
        let owner =
            json!({ "apiVersion": version, "kind": kind, "name": "web", "uid": "u", "controller": controls });
        let metadata = json!({ "name": "web-0", "namespace": "default", "ownerReferences": [owner] });
        let pod = json!({ "metadata": metadata, "spec": { "containers": [{ "name": "main" }] } });
        let webhooks = [&crate::injection::WEBHOOKS[0]];
        let admitted = admit_whole(&webhooks, &pod, None, &surroundings).await;
        let found = admitted.map(|pod| pod.pointer("/spec/nodeSelector/zone") == Some(&json!("z")));
        assert_eq!(found.map_err(|(code, _)| u16::try_from(code).unwrap()), expect);
    }

    fn settings(list: &str) -> ConfigMap {
        let object = json!({ "metadata": { "name": "kruise-configuration", "namespace": "kruise-system" },
            "data": { KEY: list } });
        serde_json::from_value(object).unwrap()
    }
}
