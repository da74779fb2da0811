//! The work that managers are measured by: for each kind, objects to create, changes, and the state that is waited for.

use shared_json::{Value, json};

/// The namespace of all objects of a load.
pub(super) const NAMESPACE: &str = "bench";
/// How many pods each StatefulSet has.
const PODS_PER_STATEFUL_SET: u32 = 100;
/// How many pods of a DaemonSet or of a BroadcastJob there are for each pod that is asked for.
const NODES_SHARE: u32 = 2;
/// How many namespaces there are to distribute to for each pod that is asked for.
const NAMESPACES_SHARE: u32 = 10;
/// How many nodes there are for each that pulls at a time.
const AT_A_TIME_SHARE: u32 = 10;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// One CloneSet.
    CloneSet,
    /// Advanced StatefulSets of 100 pods each.
    StatefulSet,
    /// One Advanced DaemonSet on half as many nodes.
    DaemonSet,
    /// A Deployment whose pods get one sidecar.
    SidecarSet,
    /// One BroadcastJob on half as many nodes.
    BroadcastJob,
    /// One UnitedDeployment of two subsets of CloneSets.
    UnitedDeployment,
    /// One CloneSet whose pods a WorkloadSpread places.
    WorkloadSpread,
    /// One CloneSet whose update asks a PodUnavailableBudget.
    PodUnavailableBudget,
    /// One Secret in a tenth as many namespaces.
    ResourceDistribution,
    /// One ImagePullJob over as many nodes, a tenth of them at a time.
    ImagePullJob,
}

/// All kinds of work.
pub const LOADS: [Load; 10] = [
    Load::CloneSet,
    Load::StatefulSet,
    Load::DaemonSet,
    Load::SidecarSet,
    Load::BroadcastJob,
    Load::UnitedDeployment,
    Load::WorkloadSpread,
    Load::PodUnavailableBudget,
    Load::ResourceDistribution,
    Load::ImagePullJob,
];

/// Objects of one kind whose statuses are waited for.
pub(super) struct Awaited {
    /// The version and kind.
    pub(super) kind: (&'static str, &'static str),
    /// Pointers and the numbers that are to be there, in each object.
    pub(super) numbers: Vec<(&'static str, u32)>,
}

/// A part of a load: the objects to write, and the condition to wait for then.
pub(super) struct Step {
    /// Its name in the output.
    pub(super) name: &'static str,
    /// Objects to create; in a step that changes, objects to patch with themselves.
    pub(super) objects: Vec<Value>,
    pub(super) awaited: Awaited,
}

impl Load {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CloneSet => "cloneset",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::SidecarSet => "sidecarset",
            Self::BroadcastJob => "broadcastjob",
            Self::UnitedDeployment => "uniteddeployment",
            Self::WorkloadSpread => "workloadspread",
            Self::PodUnavailableBudget => "podunavailablebudget",
            Self::ResourceDistribution => "resourcedistribution",
            Self::ImagePullJob => "imagepulljob",
        }
    }

    /// The feature gates that the kind needs, as the flag `--feature-gates` takes them.
    pub(super) fn feature_gates(self) -> &'static str {
        match self {
            Self::ResourceDistribution => "ResourceDistributionGate=true",
            Self::ImagePullJob => "ImagePullJobGate=true",
            _ => "",
        }
    }

    /// How many nodes there are; a node takes `pods_per_node`.
    pub(super) fn nodes(self, pods: u32, pods_per_node: u32) -> u32 {
        match self {
            Self::DaemonSet | Self::BroadcastJob => (pods / NODES_SHARE).max(1),
            Self::ResourceDistribution => 1,
            Self::ImagePullJob => pods.max(1),
            _ => pods / pods_per_node + 1,
        }
    }

    /// How many pods, or objects, a step brings about.
    pub(super) fn size(self, pods: u32) -> u32 {
        match self {
            Self::DaemonSet | Self::BroadcastJob => self.nodes(pods, 1),
            Self::ResourceDistribution => (pods / NAMESPACES_SHARE).max(1),
            Self::StatefulSet => stateful_sets(pods) * PODS_PER_STATEFUL_SET,
            _ => pods,
        }
    }

    /// Objects that are there before anything is measured.
    pub(super) fn before(self, pods: u32) -> Vec<Value> {
        match self {
            Self::SidecarSet => vec![sidecar_set("side", "sidecar:1")],
            Self::WorkloadSpread => vec![workload_spread(pods)],
            Self::PodUnavailableBudget => vec![budget()],
            Self::ResourceDistribution => (0..self.size(pods)).map(namespace).collect(),
            _ => Vec::new(),
        }
    }

    /// The measured steps: a creation, and an update where the kind has one.
    pub(super) fn steps(self, pods: u32) -> Vec<Step> {
        let create = Step {
            name: "created",
            objects: self.objects(pods, "1"),
            awaited: self.awaited(pods, false),
        };
        if matches!(self, Self::BroadcastJob | Self::ImagePullJob) {
            return vec![create];
        }
        let objects = match self {
            Self::SidecarSet => vec![sidecar_set("side", "sidecar:2")],
            _ => self.objects(pods, "2"),
        };
        let update = Step {
            name: "updated",
            objects,
            awaited: self.awaited(pods, true),
        };
        vec![create, update]
    }

    /// The objects with version `tag` of their image or content.
    fn objects(self, pods: u32, tag: &str) -> Vec<Value> {
        match self {
            Self::CloneSet | Self::WorkloadSpread | Self::PodUnavailableBudget => {
                vec![clone_set(pods, tag)]
            }
            Self::StatefulSet => (0..stateful_sets(pods))
                .map(|number| stateful_set(number, tag))
                .collect(),
            Self::DaemonSet => vec![daemon_set(tag)],
            Self::SidecarSet => vec![deployment(pods)],
            Self::BroadcastJob => vec![broadcast_job()],
            Self::UnitedDeployment => vec![united_deployment(pods, tag)],
            Self::ResourceDistribution => vec![distribution(tag)],
            Self::ImagePullJob => vec![image_pull_job(self.nodes(pods, 1))],
        }
    }

    fn awaited(self, pods: u32, updated: bool) -> Awaited {
        let size = self.size(pods);
        let (kind, mut numbers) = match self {
            Self::CloneSet | Self::WorkloadSpread | Self::PodUnavailableBudget => (
                ("apps.kruise.io/v1alpha1", "CloneSet"),
                vec![("/status/updatedReadyReplicas", size)],
            ),
            Self::StatefulSet => (
                ("apps.kruise.io/v1beta1", "StatefulSet"),
                vec![
                    ("/status/updatedReplicas", PODS_PER_STATEFUL_SET),
                    ("/status/readyReplicas", PODS_PER_STATEFUL_SET),
                ],
            ),
            Self::DaemonSet => (
                ("apps.kruise.io/v1alpha1", "DaemonSet"),
                vec![
                    ("/status/updatedNumberScheduled", size),
                    ("/status/numberReady", size),
                ],
            ),
            Self::SidecarSet => (
                ("apps.kruise.io/v1alpha1", "SidecarSet"),
                vec![("/status/updatedReadyPods", size), ("/status/readyPods", size)],
            ),
            Self::BroadcastJob => (
                ("apps.kruise.io/v1alpha1", "BroadcastJob"),
                vec![("/status/active", size)],
            ),
            Self::UnitedDeployment => (
                ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
                vec![("/status/updatedReadyReplicas", size)],
            ),
            Self::ResourceDistribution => (
                ("apps.kruise.io/v1alpha1", "ResourceDistribution"),
                vec![("/status/succeeded", size)],
            ),
            Self::ImagePullJob => (
                ("apps.kruise.io/v1beta1", "ImagePullJob"),
                vec![("/status/succeeded", size)],
            ),
        };
        if updated {
            numbers.push(("/status/observedGeneration", 2));
        }
        Awaited { kind, numbers }
    }
}

fn stateful_sets(pods: u32) -> u32 {
    (pods / PODS_PER_STATEFUL_SET).max(1)
}

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    })
}

/// A pod's template with the label `set` and one container of this version.
fn template(set: &str, tag: &str) -> Value {
    json!({
        "metadata": {"labels": {"set": set}},
        "spec": {"containers": [{"name": "main", "image": format!("nginx:{tag}")}]},
    })
}

fn clone_set(replicas: u32, tag: &str) -> Value {
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"set": "large"}},
        "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "100%"},
        "template": template("large", tag),
    });
    object("apps.kruise.io/v1alpha1", "CloneSet", "large", spec)
}

fn stateful_set(number: u32, tag: &str) -> Value {
    let name = format!("set-{number}");
    let mut template = template(&name, tag);
    template["spec"]["readinessGates"] = json!([{"conditionType": "InPlaceUpdateReady"}]);
    let spec = json!({
        "replicas": PODS_PER_STATEFUL_SET,
        "serviceName": name,
        "selector": {"matchLabels": {"set": name}},
        "podManagementPolicy": "Parallel",
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"},
        },
        "template": template,
    });
    object("apps.kruise.io/v1beta1", "StatefulSet", &name, spec)
}

fn daemon_set(tag: &str) -> Value {
    let spec = json!({
        "selector": {"matchLabels": {"set": "nodes"}},
        "burstReplicas": "100%",
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"},
        },
        "template": template("nodes", tag),
    });
    object("apps.kruise.io/v1alpha1", "DaemonSet", "nodes", spec)
}

fn deployment(replicas: u32) -> Value {
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"set": "plain"}},
        "template": template("plain", "1"),
    });
    object("apps/v1", "Deployment", "plain", spec)
}

/// A set whose container has the set's name.
pub(super) fn sidecar_set(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "namespace": NAMESPACE,
            "selector": {"matchLabels": {"set": "plain"}},
            "containers": [{"name": name, "image": image}],
            "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": "100%"},
        },
    })
}

fn broadcast_job() -> Value {
    let mut template = template("job", "1");
    template["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({ "template": template, "completionPolicy": {"type": "Never"} });
    object("apps.kruise.io/v1alpha1", "BroadcastJob", "job", spec)
}

fn image_pull_job(nodes: u32) -> Value {
    let spec = json!({
        "image": "nginx:1",
        "parallelism": (nodes / AT_A_TIME_SHARE).max(1),
        "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 1},
        "completionPolicy": {"type": "Always"},
    });
    object("apps.kruise.io/v1beta1", "ImagePullJob", "pull", spec)
}

fn united_deployment(replicas: u32, tag: &str) -> Value {
    let subset = |name: &str| {
        json!({
            "name": name,
            "nodeSelectorTerm": {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]},
            "replicas": "50%",
        })
    };
    let set = clone_set(0, tag);
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"set": "large"}},
        "template": {"cloneSetTemplate": {
            "metadata": {"labels": {"set": "large"}},
            "spec": {
                "selector": set["spec"]["selector"].clone(),
                "updateStrategy": set["spec"]["updateStrategy"].clone(),
                "template": set["spec"]["template"].clone(),
            },
        }},
        "topology": {"subsets": [subset("one"), subset("two")]},
    });
    object("apps.kruise.io/v1alpha1", "UnitedDeployment", "large", spec)
}

fn workload_spread(pods: u32) -> Value {
    let term =
        json!({"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]});
    let spec = json!({
        "targetRef": {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "large"},
        "subsets": [
            {"name": "first", "maxReplicas": pods / 2, "requiredNodeSelectorTerm": term.clone()},
            {"name": "rest", "requiredNodeSelectorTerm": term},
        ],
    });
    object("apps.kruise.io/v1alpha1", "WorkloadSpread", "spread", spec)
}

fn budget() -> Value {
    let spec = json!({
        "targetRef": {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "large"},
        "maxUnavailable": "50%",
    });
    object(
        "policy.kruise.io/v1alpha1",
        "PodUnavailableBudget",
        "budget",
        spec,
    )
}

fn namespace(number: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": format!("bench-{number}"), "labels": {"bench": "yes"}},
    })
}

fn distribution(content: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": "secret"},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"}, "stringData": {"content": content}},
            "targets": {"namespaceLabelSelector": {"matchLabels": {"bench": "yes"}}},
        },
    })
}
