//! The kinds of objects that the built-in controllers handle.

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Res {
    Namespaces,
    Nodes,
    Pods,
    Services,
    Endpoints,
    Volumes,
    Claims,
    Quotas,
    Secrets,
    ConfigMaps,
    ServiceAccounts,
    StorageClasses,
    ReplicaSets,
    ReplicationControllers,
    Deployments,
    StatefulSets,
    DaemonSets,
    Revisions,
    Jobs,
    CronJobs,
    Slices,
    Budgets,
    Leases,
    ClusterRoles,
    Autoscalers,
    AdmissionPolicies,
    ServiceCidrs,
    ResourceClaims,
    ResourceClaimTemplates,
    DeviceSlices,
    CertificateRequests,
    AttributesClasses,
}

/// Group and version, plural, kind.
const TABLE: [(Res, &str, &str, &str); 32] = [
    (Res::Namespaces, "v1", "namespaces", "Namespace"),
    (Res::Nodes, "v1", "nodes", "Node"),
    (Res::Pods, "v1", "pods", "Pod"),
    (Res::Services, "v1", "services", "Service"),
    (Res::Endpoints, "v1", "endpoints", "Endpoints"),
    (Res::Volumes, "v1", "persistentvolumes", "PersistentVolume"),
    (
        Res::Claims,
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
    ),
    (Res::Quotas, "v1", "resourcequotas", "ResourceQuota"),
    (Res::Secrets, "v1", "secrets", "Secret"),
    (Res::ConfigMaps, "v1", "configmaps", "ConfigMap"),
    (Res::ServiceAccounts, "v1", "serviceaccounts", "ServiceAccount"),
    (
        Res::StorageClasses,
        "storage.k8s.io/v1",
        "storageclasses",
        "StorageClass",
    ),
    (Res::ReplicaSets, "apps/v1", "replicasets", "ReplicaSet"),
    (
        Res::ReplicationControllers,
        "v1",
        "replicationcontrollers",
        "ReplicationController",
    ),
    (Res::Deployments, "apps/v1", "deployments", "Deployment"),
    (Res::StatefulSets, "apps/v1", "statefulsets", "StatefulSet"),
    (Res::DaemonSets, "apps/v1", "daemonsets", "DaemonSet"),
    (
        Res::Revisions,
        "apps/v1",
        "controllerrevisions",
        "ControllerRevision",
    ),
    (Res::Jobs, "batch/v1", "jobs", "Job"),
    (Res::CronJobs, "batch/v1", "cronjobs", "CronJob"),
    (
        Res::Slices,
        "discovery.k8s.io/v1",
        "endpointslices",
        "EndpointSlice",
    ),
    (
        Res::Budgets,
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
    ),
    (Res::Leases, "coordination.k8s.io/v1", "leases", "Lease"),
    (
        Res::ClusterRoles,
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        "ClusterRole",
    ),
    (
        Res::Autoscalers,
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
    ),
    (
        Res::AdmissionPolicies,
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
    ),
    (
        Res::ServiceCidrs,
        "networking.k8s.io/v1",
        "servicecidrs",
        "ServiceCIDR",
    ),
    (
        Res::ResourceClaims,
        "resource.k8s.io/v1",
        "resourceclaims",
        "ResourceClaim",
    ),
    (
        Res::ResourceClaimTemplates,
        "resource.k8s.io/v1",
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
    ),
    (
        Res::DeviceSlices,
        "resource.k8s.io/v1",
        "resourceslices",
        "ResourceSlice",
    ),
    (
        Res::CertificateRequests,
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
    ),
    (
        Res::AttributesClasses,
        "storage.k8s.io/v1",
        "volumeattributesclasses",
        "VolumeAttributesClass",
    ),
];

impl Res {
    fn row(self) -> &'static (Self, &'static str, &'static str, &'static str) {
        TABLE.iter().find(|row| row.0 == self).unwrap_or(&TABLE[0])
    }

    pub(crate) fn api_version(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn kind(self) -> &'static str {
        self.row().3
    }

    /// The path of all objects of the kind, or of those in a namespace.
    pub(crate) fn path(self, namespace: &str) -> String {
        let (_, version, plural, _) = self.row();
        let root = if version.contains('/') { "apis" } else { "api" };
        if namespace.is_empty() {
            format!("/{root}/{version}/{plural}")
        } else {
            format!("/{root}/{version}/namespaces/{namespace}/{plural}")
        }
    }
}

/// Namespace (empty for objects without one) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: shared_json::Text,
    pub name: shared_json::Text,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(crate) fn of(object: &shared_json::Value) -> Self {
        use machinery::meta::ObjectMeta as _;
        Self {
            namespace: object.meta_text("namespace"),
            name: object.meta_text("name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Res::Pods.path("a"), "/api/v1/namespaces/a/pods");
        assert_eq!(Res::Deployments.path(""), "/apis/apps/v1/deployments");
        // Every kind has its own row.
        for row in &TABLE {
            assert_eq!(row.0.row().2, row.2);
        }
    }
}
