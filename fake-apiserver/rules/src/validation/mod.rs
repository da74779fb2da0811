//! Validation of built-in resources, beyond the types of their fields.
//!
//! A file per family of kinds; each function takes an object (and for a change its former state) and adds its complaints,
//! in the real server's order, to [`Errors`]. [`path::Path`] is written out only for a complaint, so that an object that
//! is valid costs no allocation. Shared by several families: `fields` (reading JSON), `amounts`, `addresses`,
//! `selectors`, `volume_sources`, and `go` for values that complaints print as the real server's own structs.
//!
//! `metadata` is the same for all kinds, and so is the validation of a resource within a resource (`embedded`).
//!
//! Functions are pure: whatever needs other objects is admission or a strategy.

mod admission_policies;
mod apps;
mod core;
pub(crate) mod definitions;
mod devices;
pub mod embedded;
mod events;
mod flow_control;
mod job_status;
mod job_update;
mod jobs;
pub mod metadata;
mod networking;
mod rbac_and_policy;
mod registrations;
mod scaling;
mod service;
mod signing;
mod storage;
mod warnings;

use pod_rules::{addresses, amounts, claim, errors, path, pod, selectors, volume_sources};
pub use pod_rules::{fields, go};
use shared_json::Value;

use errors::{Errors, IMMUTABLE};
use machinery::keys::GroupResource;
use path::Path;
use pod_rules::field_error::FieldError;

pub(crate) use service::{address_errors as cluster_address_errors, is_headless, needs_health_check};
pub use signing::request_problem;
pub use warnings::of as warnings;

type Create = fn(&Value, &mut Errors);
type Update = fn(&Value, &Value, &mut Errors);

/// The rules of one resource.
#[derive(Clone, Copy)]
struct Rules {
    create: Create,
    update: Update,
    status: Update,
}

fn nothing(_: &Value, _: &mut Errors) {}

fn no_change(_: &Value, _: &Value, _: &mut Errors) {}

impl Rules {
    const fn new(create: Create, update: Update) -> Self {
        Self {
            create,
            update,
            status: no_change,
        }
    }

    const fn with_status(self, status: Update) -> Self {
        Self { status, ..self }
    }
}

/// An update that is judged as if the object were new.
macro_rules! anew {
    ($create:path) => {
        Rules::new($create, |new, _, errors| $create(new, errors))
    };
}

macro_rules! counted {
    ($kind:literal) => {
        |new, old, errors| apps::status($kind, new, old, errors)
    };
}

fn rules(table: &GroupResource) -> Rules {
    match (table.group.as_str(), table.resource.as_str()) {
        ("", "pods") => Rules::new(pod::create, pod::update).with_status(pod::status_update),
        ("", "podtemplates") => anew!(pod::pod_template),
        ("", "services") => Rules::new(service::create, service::update).with_status(service::status),
        ("", "configmaps") => Rules::new(core::config_map, core::config_map_update),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            Rules::new(signing::create, signing::update).with_status(signing::status)
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            anew!(flow_control::schema).with_status(flow_control::status)
        }
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            anew!(flow_control::level).with_status(flow_control::status)
        }
        ("resource.k8s.io", "deviceclasses") => Rules::new(devices::class, devices::class_update),
        ("resource.k8s.io", "resourceclaims") => {
            Rules::new(devices::claim, devices::claim_update).with_status(devices::claim_status)
        }
        ("resource.k8s.io", "resourceclaimtemplates") => {
            Rules::new(devices::template, devices::template_update)
        }
        ("resource.k8s.io", "resourceslices") => Rules::new(devices::slice, devices::slice_update),
        ("", "secrets") => Rules::new(core::secret, core::secret_update),
        ("", "namespaces") => Rules::new(core::namespace, no_change).with_status(core::namespace_status),
        ("", "nodes") => Rules::new(core::node, |new, old, errors| {
            core::node(new, errors);
            core::node_update(new, old, errors);
        })
        .with_status(core::node_update),
        ("", "limitranges") => anew!(core::limit_range),
        ("", "resourcequotas") => Rules::new(core::quota, core::quota_update).with_status(core::quota_status),
        ("", "endpoints") => Rules::new(core::endpoints, core::endpoints_update),
        ("", "events") => Rules::new(events::create, events::update),
        ("", "persistentvolumeclaims") => Rules::new(claim::create, claim::update).with_status(claim::status),
        ("", "persistentvolumes") => Rules::new(storage::volume, storage::volume_update),
        ("", "replicationcontrollers") => {
            anew!(apps::replication_controller).with_status(counted!("ReplicationController"))
        }
        ("apps", "deployments") => {
            Rules::new(apps::deployment, apps::deployment_update).with_status(counted!("Deployment"))
        }
        ("apps", "replicasets") => {
            Rules::new(apps::replica_set, apps::replica_set_update).with_status(counted!("ReplicaSet"))
        }
        ("apps", "statefulsets") => {
            Rules::new(apps::stateful_set, apps::stateful_set_update).with_status(counted!("StatefulSet"))
        }
        ("apps", "daemonsets") => {
            Rules::new(apps::daemon_set, apps::daemon_set_update).with_status(counted!("DaemonSet"))
        }
        ("apps", "controllerrevisions") => Rules::new(apps::revision, apps::revision_update),
        ("batch", "jobs") => {
            Rules::new(jobs::job, job_update::job_update).with_status(job_status::job_status)
        }
        ("batch", "cronjobs") => Rules::new(jobs::cron_job, jobs::cron_job_update),
        ("autoscaling", "horizontalpodautoscalers") => {
            Rules::new(scaling::autoscaler, scaling::autoscaler_update)
                .with_status(scaling::autoscaler_status)
        }
        ("policy", "poddisruptionbudgets") => {
            anew!(rbac_and_policy::budget).with_status(rbac_and_policy::budget_status)
        }
        ("rbac.authorization.k8s.io", "roles") => anew!(rbac_and_policy::role),
        ("rbac.authorization.k8s.io", "clusterroles") => anew!(rbac_and_policy::cluster_role),
        ("rbac.authorization.k8s.io", "rolebindings") => {
            Rules::new(rbac_and_policy::role_binding, |new, old, errors| {
                rbac_and_policy::role_binding(new, errors);
                rbac_and_policy::binding_stays(new, old, errors);
            })
        }
        ("rbac.authorization.k8s.io", "clusterrolebindings") => {
            Rules::new(rbac_and_policy::cluster_role_binding, |new, old, errors| {
                rbac_and_policy::cluster_role_binding(new, errors);
                rbac_and_policy::binding_stays(new, old, errors);
            })
        }
        ("scheduling.k8s.io", "priorityclasses") => Rules::new(
            rbac_and_policy::priority_class,
            rbac_and_policy::priority_class_update,
        ),
        ("coordination.k8s.io", "leases") => {
            Rules::new(rbac_and_policy::lease, rbac_and_policy::lease_update)
        }
        ("node.k8s.io", "runtimeclasses") => Rules::new(
            rbac_and_policy::runtime_class,
            rbac_and_policy::runtime_class_update,
        ),
        ("networking.k8s.io", "networkpolicies") => Rules::new(networking::policy, networking::policy_update),
        ("networking.k8s.io", "ingresses") => Rules::new(networking::ingress, networking::ingress_update)
            .with_status(networking::ingress_status),
        ("networking.k8s.io", "ingressclasses") => {
            Rules::new(networking::ingress_class, networking::ingress_class_update)
        }
        ("networking.k8s.io", "ipaddresses") => {
            Rules::new(networking::ip_address, networking::ip_address_update)
        }
        ("networking.k8s.io", "servicecidrs") => {
            Rules::new(networking::service_cidr, networking::service_cidr_update)
        }
        ("discovery.k8s.io", "endpointslices") => Rules::new(networking::slice, networking::slice_update),
        ("storage.k8s.io", "storageclasses") => Rules::new(storage::class, storage::class_update),
        ("storage.k8s.io", "volumeattributesclasses") => {
            Rules::new(storage::attributes_class, storage::attributes_class_update)
        }
        ("storage.k8s.io", "csidrivers") => Rules::new(storage::driver, storage::driver_update),
        ("storage.k8s.io", "csinodes") => Rules::new(storage::node, storage::node_update),
        ("storage.k8s.io", "volumeattachments") => {
            Rules::new(storage::attachment, storage::attachment_update)
                .with_status(storage::attachment_update)
        }
        ("storage.k8s.io", "csistoragecapacities") => Rules::new(storage::capacity, storage::capacity_update),
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => Rules::new(registrations::webhooks, registrations::webhooks_update),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => Rules::new(
            admission_policies::validating_policy,
            admission_policies::validating_policy_update,
        ),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => Rules::new(
            admission_policies::validating_binding,
            admission_policies::validating_binding_update,
        ),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => Rules::new(
            admission_policies::mutating_policy,
            admission_policies::mutating_policy_update,
        ),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings") => Rules::new(
            admission_policies::mutating_binding,
            admission_policies::mutating_binding_update,
        ),
        ("apiregistration.k8s.io", "apiservices") => {
            anew!(registrations::api_service).with_status(registrations::api_service_status)
        }
        _ => Rules::new(nothing, no_change),
    }
}

/// The errors in a name that must be an address.
pub(crate) fn address_problems(name: &str) -> Vec<String> {
    let mut errors = Errors::default();
    addresses::canonical_address(&Path::new(""), name, &mut errors);
    errors.into_vec().into_iter().map(|error| error.detail).collect()
}

/// The errors in the `clientConfig` of a webhook, at `path`.
pub(crate) fn webhook_client(config: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    registrations::client_config(config, &path::Path::new(path), &mut errors);
    errors.into_vec()
}

/// The errors in a new object of a built-in resource that are found before its metadata is checked.
pub fn before_metadata(table: &GroupResource, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if *table == GroupResource::new("", "events") {
        events::common(object, &mut errors);
    }
    errors.into_vec()
}

/// The errors in a new object of a built-in resource, besides its metadata.
pub fn create(table: &GroupResource, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    (rules(table).create)(object, &mut errors);
    errors.into_vec()
}

/// The errors in a change, of the object itself (`""`) or of a part of it by a subresource.
pub fn update(table: &GroupResource, subresource: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    match (subresource, table.resource.as_str()) {
        ("", _) => (rules(table).update)(new, old, &mut errors),
        ("status", _) => (rules(table).status)(new, old, &mut errors),
        ("approval", "certificatesigningrequests") => signing::approval(new, old, &mut errors),
        ("ephemeralcontainers", "pods") => pod::ephemeral_containers(new, old, &mut errors),
        ("resize", "pods") => {
            let classes = (
                machinery::placement::qos_class(new),
                machinery::placement::qos_class(old),
            );
            pod::resize(new, old, classes, &mut errors);
        }
        ("finalize", "namespaces") => core::namespace_finalize(new, old, &mut errors),
        _ => {}
    }
    errors.into_vec()
}

/// A field that must not change.
fn immutable(new: &Value, old: &Value, pointer: &str, path: &Path<'_>, errors: &mut Errors) {
    let value = new.pointer(pointer);
    if !fields::same(value, old.pointer(pointer)) {
        match value {
            Some(value @ Value::Object(_)) => {
                errors.invalid_shown(path, go::plain_text(value), IMMUTABLE);
            }
            value => errors.invalid(path, value.cloned().unwrap_or_default(), IMMUTABLE),
        }
    }
}
