//! The objects that install the daemon, with OpenKruise's names: its account and rights, and the DaemonSet.

use kube::Client;
use serde_json::{Value, json};

use super::ProcessError;
use super::gates::FeatureGates;
use super::install::{self, role_rules, secrets_namespace};
use crate::workloads::{READ, Right, STATUS};

/// The daemon's service account, and its DaemonSet.
const NAME: &str = "kruise-daemon";
/// Its role in the cluster, and the one in the namespace of its Secrets.
const ROLE: &str = "kruise-daemon-role";
/// The bindings of these roles.
const BINDING: &str = "kruise-daemon-rolebinding";
/// The port of its health and metrics.
const PORT: u16 = 10221;
/// The label of its pods.
const PLANE: (&str, &str) = ("control-plane", "daemon");

/// The rights of the daemon in the cluster.
const CLUSTER_RULES: [Right; 9] = [
    Right::new("apps.kruise.io", "containerrecreaterequests", READ),
    Right::new("apps.kruise.io", "containerrecreaterequests/status", STATUS),
    Right::new("apps.kruise.io", "nodeimages", READ),
    Right::new("apps.kruise.io", "nodeimages/status", STATUS),
    Right::new("apps.kruise.io", "nodepodprobes", READ),
    Right::new("apps.kruise.io", "nodepodprobes/status", STATUS),
    Right::new("", "events", &["create", "patch", "update"]),
    Right::new("", "pods", READ),
    Right::new("", "pods/status", STATUS),
];
/// Its rights in the namespace of the Secrets for registries.
const SECRET_RULES: [Right; 1] = [Right::new("", "secrets", READ)];

/// The user that a daemon in `namespace` is.
#[must_use]
pub fn user(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{NAME}")
}

/// The account and the rights of a daemon in `namespace`, whose Secrets are in `secrets`, and that namespace.
#[must_use]
pub fn objects(namespace: &str, secrets: &str) -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let version = format!("{rbac}/v1");
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]);
    vec![
        secrets_namespace(secrets),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}),
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": ROLE},
            "rules": role_rules(&CLUSTER_RULES)}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": BINDING},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ROLE}, "subjects": subjects}),
        json!({"apiVersion": version, "kind": "Role", "metadata": {"name": ROLE, "namespace": secrets},
            "rules": role_rules(&SECRET_RULES)}),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": BINDING, "namespace": secrets},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ROLE}, "subjects": subjects}),
    ]
}

/// Applies what a daemon in `namespace` needs before it starts; `secrets` is where it finds Secrets.
///
/// # Errors
/// If the server refuses one.
pub async fn install(client: &Client, namespace: &str, secrets: &str) -> Result<(), ProcessError> {
    install::apply(client, objects(namespace, secrets)).await
}

/// Everything, with a DaemonSet of `image` whose daemons have `feature_gates`, as the flag takes them.
///
/// # Errors
/// If a gate is unknown or its value is no truth value.
pub fn manifests(
    namespace: &str,
    secrets: &str,
    image: &str,
    feature_gates: &str,
) -> Result<Vec<Value>, ProcessError> {
    FeatureGates::parse(feature_gates)?;
    let mut out = objects(namespace, secrets);
    out.push(daemon_set(namespace, image, feature_gates));
    Ok(out)
}

/// The DaemonSet: a pod on every node with the network of the node, and the node's `/var/run` with the sockets of runtimes.
fn daemon_set(namespace: &str, image: &str, feature_gates: &str) -> Value {
    let labels = json!({ PLANE.0: PLANE.1 });
    let mut arguments = vec!["--logtostderr=true".to_owned(), "--v=4".to_owned()];
    if !feature_gates.is_empty() {
        arguments.push(format!("--feature-gates={feature_gates}"));
    }
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": true,
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 10,
                    "tolerations": [{"operator": "Exists"}],
                    "volumes": [{"name": "runtime-socket", "hostPath": {"path": "/var/run", "type": ""}}],
                    "containers": [{
                        "name": "daemon",
                        "image": image,
                        "command": ["/kruise-daemon"],
                        "args": arguments,
                        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                        "livenessProbe": {
                            "httpGet": {"path": "/healthz", "port": PORT},
                            "initialDelaySeconds": 60,
                        },
                        "resources": {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "100m", "memory": "100Mi"}},
                        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true},
                        "volumeMounts": [{"name": "runtime-socket", "mountPath": "/hostvarrun", "readOnly": true}],
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
#[path = "install_daemon_tests.rs"]
mod tests;
