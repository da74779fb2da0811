//! What the schema cannot say of a resource: one small strategy per resource, each in a file of its own.
//!
//! A strategy is pure: it sees the object, its former state and the time. Whatever needs other objects (a namespace
//! that must exist, a quota) is admission.

mod api_service;
pub(crate) mod app_armor;
pub(crate) mod crd;
mod crd_check;
mod custom;
pub(crate) mod disabled;
mod event;
mod generic;
mod immutable;
mod job;
pub(crate) mod namespace;
mod node;
mod own_labels;
mod pod;
pub(crate) mod service;
pub(crate) mod signing;
mod storage;
mod workload;

use serde_json::Value;

use crate::field_error::FieldError;
use crate::meta::ObjectMeta;
use crate::store::GroupResource;
pub(crate) use crd_check::warnings as definition_warnings;
pub(crate) use pod::{keep_all_but, qos_class};

/// How a deletion is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// At once (once no finalizer holds the object).
    Immediate,
    /// The object stays, marked, until someone deletes it with grace 0.
    Graceful {
        /// How long, in seconds.
        seconds: i64,
    },
}

/// What the schema cannot say of a resource.
pub(crate) trait Strategy: Send + Sync {
    /// Whether `metadata.generation` counts changes of the spec.
    fn has_generation(&self) -> bool {
        false
    }

    /// Whether a new object is of generation 1, where changes count.
    fn begins_counted(&self) -> bool {
        true
    }

    /// Whether an update without a resource version replaces whatever is there.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether an update creates what is not there.
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

    /// Fills what a new object's own fields do not say, and clears what a client may not set.
    fn prepare_create(&self, object: &mut Value) {
        if let Some(status) = object.get_mut("status") {
            *status = Value::Object(serde_json::Map::new());
        }
    }

    /// The same for an update of the main resource: the status stays what it was.
    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
    }

    /// The same for an update of the status: everything but the status stays what it was.
    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        for field in ["labels", "ownerReferences", "deletionTimestamp"] {
            object.copy_meta(old, field);
        }
    }

    /// What is wrong with a new object, besides its schema and what `validation` knows of built-in resources.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a change.
    fn validate_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Whether a change counts for `metadata.generation`: by default any change outside metadata and status.
    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        asks_for_something_else(object, old)
    }

    /// How a deletion with `grace_seconds` (as the client asked) goes.
    fn deletion(&self, _object: &Value, _grace_seconds: Option<i64>) -> Deletion {
        Deletion::Immediate
    }
}

/// Makes `field` of `object` what it is in `from`.
pub(crate) fn copy_field(object: &mut Value, from: &Value, field: &str) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}

/// The strategy of a built-in resource.
pub(crate) fn of_builtin(table: &GroupResource) -> &'static dyn Strategy {
    match (table.group.as_str(), table.resource.as_str()) {
        ("", "pods") => &pod::PodStrategy,
        ("", "nodes") => &node::NodeStrategy,
        ("", "namespaces") => &namespace::NamespaceStrategy,
        ("", "events") => &event::EventStrategy,
        ("apiextensions.k8s.io", "customresourcedefinitions") => &crd::DefinitionStrategy,
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "cronjobs")
        | ("networking.k8s.io", "ingresses" | "networkpolicies")
        | ("", "replicationcontrollers") => &workload::WorkloadStrategy,
        ("coordination.k8s.io", "leases") => &generic::CONDITIONAL_OR_CREATED,
        ("node.k8s.io", "runtimeclasses") => &generic::CONDITIONAL,
        ("storage.k8s.io", "csistoragecapacities" | "volumeattachments" | "csinodes") => {
            &generic::CONDITIONAL_RETURNED
        }
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations"
            | "mutatingwebhookconfigurations"
            | "validatingadmissionpolicies"
            | "validatingadmissionpolicybindings"
            | "mutatingadmissionpolicies"
            | "mutatingadmissionpolicybindings",
        ) => &generic::CONDITIONAL_COUNTED,
        ("", "endpoints" | "limitranges") => &generic::CREATE_ON_UPDATE,
        ("rbac.authorization.k8s.io", _) => &generic::CREATE_ON_UPDATE,
        ("policy", "poddisruptionbudgets") => &workload::BudgetStrategy,
        ("", "podtemplates") => &workload::PodTemplateStrategy,
        ("certificates.k8s.io", "certificatesigningrequests") => &signing::SigningStrategy,
        ("discovery.k8s.io", "endpointslices") => &generic::WITH_LABELS,
        ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("networking.k8s.io", "ingressclasses")
        | ("resource.k8s.io", "deviceclasses" | "resourceslices") => &generic::COUNTED,
        ("scheduling.k8s.io", "priorityclasses") => &generic::PRIORITY_CLASS,
        ("apiregistration.k8s.io", "apiservices") => &api_service::ApiServiceStrategy,
        ("", "persistentvolumeclaims") => &storage::ClaimStrategy,
        ("", "persistentvolumes") => &storage::VolumeStrategy,
        ("batch", "jobs") => &job::JobStrategy,
        ("", "services") => &service::ServiceStrategy,
        ("storage.k8s.io", "volumeattributesclasses") => &storage::AttributesClassStrategy,
        ("storage.k8s.io", "csidrivers") => &storage::DriverStrategy,
        ("", "serviceaccounts" | "resourcequotas") | ("storage.k8s.io", _) => &generic::RETURNS_OBJECT,
        _ => &generic::PLAIN,
    }
}

/// The strategy of custom resources.
pub(crate) fn of_custom() -> &'static dyn Strategy {
    &custom::CustomStrategy
}

/// Whether two objects differ outside of metadata and status.
fn asks_for_something_else(object: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), old.as_object()) else {
        return false;
    };
    let counted = |key: &&String| !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind");
    let keys = new.keys().filter(counted).chain(old.keys().filter(counted));
    keys.into_iter().any(|key| new.get(key) != old.get(key))
}
