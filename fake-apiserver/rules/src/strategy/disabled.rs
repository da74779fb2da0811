//! Fields of features that are off in a server with default feature gates: a client's values of them are dropped, unless the
//! object had them before.

use machinery::keys::GroupResource;
use machinery::meta::at;
use shared_json::{Map, Value};

/// Where fields are: `*` stands for every item of a list, or every value of a map.
type Field = &'static [&'static str];

const STATEFUL_SETS: &[Field] = &[&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]];
const LEASES: &[Field] = &[&["spec", "strategy"], &["spec", "preferredHolder"]];
const CSI_DRIVERS: &[Field] = &[&["spec", "preventPodSchedulingIfMissing"]];
const RESOURCE_SLICES: &[Field] = &[
    &["spec", "devices", "*", "nodeAllocatableResourceMappings"],
    &["spec", "devices", "*", "attributes", "*", "bools"],
    &["spec", "devices", "*", "attributes", "*", "ints"],
    &["spec", "devices", "*", "attributes", "*", "strings"],
    &["spec", "devices", "*", "attributes", "*", "versions"],
];
const NODES: &[Field] = &[&["spec", "configSource"]];
const NODE_STATUSES: &[Field] = &[&["status", "config"]];
const POD_STATUSES: &[Field] = &[&["status", "nodeAllocatableResourceClaimStatuses"]];
// The first version of endpoint slices had this field; the present one takes it from nobody.
const SLICES: &[Field] = &[&["endpoints", "*", "deprecatedTopology"]];
const PODS: &[Field] = &[
    &["schedulingGroup"],
    &["volumes", "*", "projected", "sources", "*", "clusterTrustBundle"],
    &["volumes", "*", "projected", "sources", "*", "podCertificate"],
    &["containers", "*", "lifecycle", "stopSignal"],
    &["initContainers", "*", "lifecycle", "stopSignal"],
    &["ephemeralContainers", "*", "lifecycle", "stopSignal"],
];

/// Takes such fields off a new object, or a changed one, of a built-in resource.
pub fn drop(table: &GroupResource, object: &mut Value, old: Option<&Value>) {
    let fields = match (table.group.as_str(), table.resource.as_str()) {
        ("apps", "statefulsets") => STATEFUL_SETS,
        ("coordination.k8s.io", "leases") => LEASES,
        ("storage.k8s.io", "csidrivers") => CSI_DRIVERS,
        ("resource.k8s.io", "resourceslices") => RESOURCE_SLICES,
        ("", "nodes") => NODES,
        ("discovery.k8s.io", "endpointslices") => SLICES,
        _ => &[],
    };
    take_unused(fields, object, old);
    if old.is_none() {
        drop_of_status(table, object, None);
    }
    let Some(place) = pod_spec(table) else { return };
    let before = old.and_then(|old| at(old, place));
    let pointer = format!("/{}", place.replace('.', "/"));
    let Some(spec) = object.pointer_mut(&pointer) else {
        return;
    };
    for field in PODS {
        if before.is_none_or(|before| !is_used(before, field)) {
            take(spec, field);
        }
    }
}

/// The same for fields of the status, which come with a new node and a changed status.
pub fn drop_of_status(table: &GroupResource, object: &mut Value, old: Option<&Value>) {
    let fields = match (table.group.as_str(), table.resource.as_str()) {
        ("", "nodes") => NODE_STATUSES,
        ("", "pods") => POD_STATUSES,
        _ => &[],
    };
    take_unused(fields, object, old);
}

fn take_unused(fields: &[Field], object: &mut Value, old: Option<&Value>) {
    for field in fields {
        if old.is_none_or(|old| !is_used(old, field)) {
            take(object, field);
        }
    }
}

fn pod_spec(table: &GroupResource) -> Option<&'static str> {
    Some(match (table.group.as_str(), table.resource.as_str()) {
        ("", "pods") => "spec",
        ("", "podtemplates") => "template.spec",
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => "spec.template.spec",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template.spec",
        _ => return None,
    })
}

fn is_used(value: &Value, field: &[&str]) -> bool {
    match field {
        [] => !value.is_null(),
        ["*", rest @ ..] => match value {
            Value::Array(list) => list.iter().any(|item| is_used(item, rest)),
            Value::Object(map) => map.values().any(|item| is_used(item, rest)),
            _ => false,
        },
        [name, rest @ ..] => value.get(name).is_some_and(|inner| is_used(inner, rest)),
    }
}

fn take(value: &mut Value, field: &[&str]) {
    match field {
        ["*", rest @ ..] => match value {
            Value::Array(list) => list.iter_mut().for_each(|item| take(item, rest)),
            Value::Object(map) => map.values_mut().for_each(|item| take(item, rest)),
            _ => {}
        },
        [name] => {
            value.as_object_mut().and_then(|map| map.remove(*name));
        }
        [name, rest @ ..] => {
            let Some(map) = value.as_object_mut() else { return };
            let Some(inner) = map.get_mut(*name) else { return };
            let was = inner.as_object().map_or(0, Map::len);
            take(inner, rest);
            // A lifecycle that said nothing else is none.
            let empty = was > 0 && inner.as_object().is_some_and(Map::is_empty);
            if empty && *name == "lifecycle" {
                map.remove(*name);
            }
        }
        [] => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::gone(json!([{"lifecycle": {"stopSignal": "SIGTERM"}}]), None, json!([{}]))]
    #[case::the_rest_stays(json!([{"lifecycle": {"preStop": {}, "stopSignal": "SIGTERM"}}]), None, json!([{"lifecycle": {"preStop": {}}}]))]
    #[case::used_before(
        json!([{"lifecycle": {"stopSignal": "SIGTERM"}}]),
        Some(json!([{"lifecycle": {"stopSignal": "SIGINT"}}])),
        json!([{"lifecycle": {"stopSignal": "SIGTERM"}}]),
    )]
    fn stop_signals(#[case] containers: Value, #[case] before: Option<Value>, #[case] expected: Value) {
        let mut pod = json!({"spec": {"containers": containers}});
        let before = before.map(|containers| json!({"spec": {"containers": containers}}));
        drop(&GroupResource::new("", "pods"), &mut pod, before.as_ref());
        assert_eq!(pod["spec"]["containers"], expected);
    }
}
