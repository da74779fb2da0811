//! The built-in controllers, those of kube-controller-manager.
//!
//! Each is a client of the API and holds nothing but a `kube::Client`.

mod absent;
mod attributes_classes;
mod autoscaling;
mod binding;
mod certificate_cleaner;
mod certificates;
mod cluster_roles;
mod custom_resources;
mod device_taints;
mod disruption;
mod endpoints;
mod ephemeral;
mod garbage;
mod graph;
mod load_balancers;
mod mirroring;
mod namespaces;
mod node_lifecycle;
mod node_ttl;
mod node_zones;
mod packing;
mod pod_garbage;
mod policy_types;
mod quota_status;
mod resource_claims;
mod runtime;
mod service_accounts;
mod statuses;
mod subsets;
mod tokens;
mod topology;
mod volumes;
mod watching;
mod workloads;

pub use custom_resources::CustomResourceCleanup;
pub use garbage::GarbageCollector;
pub use namespaces::NamespaceController;
use runtime::Res;
pub use runtime::{BuiltIn, ControllerManager};
pub use service_accounts::ServiceAccountController;

/// The controller that a name stands for.
fn builtin(which: BuiltIn) -> Box<dyn runtime::Controller> {
    match which {
        BuiltIn::ReplicaSet => Box::new(workloads::replicaset::ReplicaSets(Res::ReplicaSets)),
        BuiltIn::ReplicationController => {
            Box::new(workloads::replicaset::ReplicaSets(Res::ReplicationControllers))
        }
        BuiltIn::Deployment => Box::new(workloads::deployment::Deployments),
        BuiltIn::StatefulSet => Box::new(workloads::statefulset::StatefulSets),
        BuiltIn::DaemonSet => Box::new(workloads::daemonset::DaemonSets::default()),
        BuiltIn::CertificateApproval => Box::new(certificates::CertificateApproval),
        BuiltIn::CertificateCleaner => Box::new(certificate_cleaner::CertificateCleaner),
        BuiltIn::CertificateSigning => Box::new(certificates::CertificateSigning),
        BuiltIn::Job => Box::new(workloads::job::Jobs::default()),
        BuiltIn::CronJob => Box::new(workloads::cronjob::CronJobs::default()),
        BuiltIn::TtlAfterFinished => Box::new(workloads::ttl::TtlAfterFinished),
        BuiltIn::EndpointSlice => Box::new(endpoints::EndpointSlices::default()),
        BuiltIn::EndpointSliceMirroring => Box::new(mirroring::EndpointSliceMirroring),
        BuiltIn::Disruption => Box::new(disruption::Disruption),
        BuiltIn::ResourceQuota => Box::new(quota_status::ResourceQuotas),
        BuiltIn::PersistentVolume => Box::new(volumes::Volumes::default()),
        BuiltIn::NodeLifecycle => Box::new(node_lifecycle::NodeLifecycle::default()),
        BuiltIn::AttributesClassProtection => Box::new(attributes_classes::AttributesClasses),
        BuiltIn::NodeTtl => Box::new(node_ttl::NodeTtl::default()),
        BuiltIn::EphemeralVolume => Box::new(ephemeral::EphemeralVolumes),
        BuiltIn::ServiceAccountToken => Box::new(tokens::ServiceAccountTokens),
        BuiltIn::AdmissionPolicyStatus => Box::new(policy_types::AdmissionPolicies),
        BuiltIn::ResourceClaim => Box::new(resource_claims::ResourceClaims::default()),
        BuiltIn::DeviceTaintEviction => Box::new(device_taints::DeviceTaints::default()),
        BuiltIn::ServiceCidr => Box::new(statuses::ServiceCidrs),
        BuiltIn::LoadBalancer => Box::new(load_balancers::LoadBalancers),
        BuiltIn::PodGarbage => Box::new(pod_garbage::PodGarbage),
        BuiltIn::HorizontalPodAutoscaler => Box::new(autoscaling::Autoscalers::default()),
        BuiltIn::ClusterRoleAggregation => Box::new(cluster_roles::ClusterRoleAggregation),
    }
}
