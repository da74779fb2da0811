//! The server's code for a resource beyond its schema: one small strategy per resource, each in a file of its own.
//!
//! A strategy is pure: it sees the object, its former state and the time. Whatever needs other objects (a namespace
//! that must exist, a quota) is admission.

mod api_service;
pub use pod_rules::app_armor;
pub mod crd;
mod custom;
mod daemonset;
pub mod disabled;
mod event;
mod generic;
mod immutable;
mod job;
mod namespace;
mod node;
mod own_labels;
mod pod;
pub mod resource_claim;
pub mod service;
pub mod signing;
pub mod storage;

use machinery::keys::GroupResource;
use shared_json::{Map, Name, Value};

pub use generic::StatusKeeps;
pub use pod::keep_all_but;
use pod_rules::field_error::FieldError;

/// How a deletion is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// At once (once no finalizer holds the object).
    Immediate,
    /// The object stays, marked, until a client deletes it with grace 0.
    Graceful {
        /// How long, in seconds.
        seconds: i64,
    },
}

/// The server's code for a resource beyond its schema.
pub trait Strategy: Send + Sync {
    /// Whether `metadata.generation` counts changes of the spec.
    fn has_generation(&self) -> bool {
        false
    }

    /// Whether an update without a resource version replaces whatever is there.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether an update creates a missing object.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// Whether an object may be given time to end.
    fn ends_gracefully(&self) -> bool {
        false
    }

    /// Whether deleting answers with the object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Fills in fields that follow from a new object's own fields, and clears fields that a client may not set.
    fn prepare_create(&self, object: &mut Value) {
        if let Some(status) = object.get_mut("status") {
            *status = Value::Object(shared_json::Map::new());
        }
    }

    /// The same for an update of the main resource: the status stays as it was.
    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
    }

    /// The parts that an update of the status leaves as they were.
    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Spec
    }

    /// The same for an update of the status.
    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        generic::keep_all_but_status(self.status_keeps(), object, old);
    }

    /// Brings a client's object into the form in which the real server reads it, before it is compared with the stored one.
    fn normalize(&self, _object: &mut Value) {}

    /// Whether dependents stay when a deletion does not say.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// Whether a deletion may have a propagation policy.
    fn has_dependents(&self) -> bool {
        true
    }

    /// The errors in a new object, besides those of its schema and of `validation`.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// The errors in a change.
    fn validate_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Whether a change counts for `metadata.generation`: by default any change outside metadata and status.
    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        self.has_generation() && asks_for_something_else(object, old)
    }

    /// Whether an empty list counts as a change where none was. It is stored as none, and so counts each time.
    fn counts_empty(&self) -> bool {
        false
    }

    /// How a deletion with `grace_seconds` (as the client asked) goes.
    fn deletion(&self, _object: &Value, _grace_seconds: Option<i64>) -> Deletion {
        Deletion::Immediate
    }
}

/// Sets `field` of `object` to its value in `from`.
pub fn copy_field(object: &mut Value, from: &Value, field: &str) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}

/// A field that became a list later: the server keeps the list, and the field shows its first item. A field with another
/// value comes from a client that knows no list.
pub(crate) fn one_and_list(map: &mut Map, one: &str, list: &str, item: fn(&str) -> Value) {
    let given = map
        .get(one)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let first = map.get(list).and_then(|list| list.get(0)).cloned();
    match first {
        _ if given.is_empty() => {
            let shown = first.and_then(|first| match first {
                Value::Object(mut item) => item.remove("ip"),
                item => Some(item),
            });
            if let Some(shown) = shown {
                map.insert(one.to_owned(), shown);
            }
        }
        Some(first) if first == item(&given) => {}
        _ => {
            map.insert(list.to_owned(), Value::from(vec![item(&given)]));
        }
    }
}

/// The strategy of a built-in resource.
pub fn of_builtin(table: &GroupResource) -> &'static dyn Strategy {
    match (table.group.as_str(), table.resource.as_str()) {
        ("", "pods") => &pod::PodStrategy,
        ("", "nodes") => &node::NodeStrategy,
        ("", "namespaces") => &namespace::NamespaceStrategy,
        ("", "events") => &event::EventStrategy,
        ("apiextensions.k8s.io", "customresourcedefinitions") => &crd::DefinitionStrategy,
        ("apps", "daemonsets") => &daemonset::DaemonSetStrategy,
        ("apps", "deployments") => &generic::DEPLOYMENT,
        ("apps", "replicasets" | "statefulsets")
        | ("batch", "cronjobs")
        | ("networking.k8s.io", "ingresses" | "ingressclasses") => &generic::COUNTED,
        ("networking.k8s.io", "networkpolicies") => &generic::NETWORK_POLICY,
        ("", "replicationcontrollers") => &generic::REPLICATION_CONTROLLER,
        ("policy", "poddisruptionbudgets") => &generic::COUNTED_NEEDS_VERSION,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => &generic::VALIDATING_POLICY,
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => &generic::WEBHOOK_CONFIGURATION,
        ("admissionregistration.k8s.io", _) => &generic::COUNTED_NEEDS_VERSION,
        ("flowcontrol.apiserver.k8s.io", _) => &generic::FLOW_CONTROL,
        ("coordination.k8s.io", "leases") | ("node.k8s.io", "runtimeclasses") => {
            &generic::CREATE_OR_NEEDS_VERSION
        }
        ("", "endpoints" | "limitranges") | ("rbac.authorization.k8s.io", _) => &generic::CREATE_ON_UPDATE,
        ("certificates.k8s.io", "certificatesigningrequests") => &signing::SigningStrategy,
        ("discovery.k8s.io", "endpointslices") => &generic::ENDPOINT_SLICE,
        ("", "podtemplates") | ("resource.k8s.io", "deviceclasses" | "resourceslices") => {
            &generic::COUNTED_RETURNED
        }
        ("resource.k8s.io", "resourceclaims") => &generic::RESOURCE_CLAIM,
        ("networking.k8s.io", "servicecidrs") => &generic::SERVICE_CIDR,
        ("scheduling.k8s.io", "priorityclasses") => &generic::PRIORITY_CLASS,
        ("apiregistration.k8s.io", "apiservices") => &api_service::ApiServiceStrategy,
        ("", "persistentvolumeclaims") => &storage::ClaimStrategy,
        ("", "persistentvolumes") => &storage::VolumeStrategy,
        ("batch", "jobs") => &job::JobStrategy,
        ("", "services") => &service::ServiceStrategy,
        ("storage.k8s.io", "csistoragecapacities") => &generic::NEEDS_VERSION,
        ("storage.k8s.io", "csidrivers") => &generic::CSI_DRIVER,
        ("storage.k8s.io", "csinodes") => &generic::CSI_NODE,
        ("storage.k8s.io", "volumeattachments") => &generic::VOLUME_ATTACHMENT,
        ("storage.k8s.io", "volumeattributesclasses") => &storage::AttributesClassStrategy,
        ("", "serviceaccounts") => &generic::AccountStrategy,
        ("", "resourcequotas")
        | ("storage.k8s.io", "storageclasses")
        | ("resource.k8s.io", "resourceclaimtemplates") => &generic::RETURNS_OBJECT,
        _ => &generic::PLAIN,
    }
}

/// The strategy of custom resources.
pub fn of_custom() -> &'static dyn Strategy {
    &custom::CustomStrategy
}

/// Whether two objects differ outside of metadata and status.
fn asks_for_something_else(object: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), old.as_object()) else {
        return false;
    };
    let counted = |key: &&Name| !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind");
    let keys = new.keys().filter(counted).chain(old.keys().filter(counted));
    keys.into_iter().any(|key| new.get(key) != old.get(key))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), json!({}))]
    #[case(json!({"podIP": "a"}), json!({"podIP": "a", "podIPs": [{"ip": "a"}]}))]
    #[case(json!({"podIPs": [{"ip": "a"}, {"ip": "b"}]}), json!({"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "b"}]}))]
    #[case(json!({"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "b"}]}), json!({"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "b"}]}))]
    #[case(json!({"podIP": "c", "podIPs": [{"ip": "a"}, {"ip": "b"}]}), json!({"podIP": "c", "podIPs": [{"ip": "c"}]}))]
    fn lists_follow_their_first(#[case] mut given: Value, #[case] expected: Value) {
        if let Some(map) = given.as_object_mut() {
            one_and_list(map, "podIP", "podIPs", |ip| json!({"ip": ip}));
        }
        assert_eq!(given, expected);
    }
}
