//! The objects of an installation, with OpenKruise's names, and applying them.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::ProcessError;
use super::configurations::{REVIEW_VERSIONS, is_converted, kind_of, name_of};
use super::gates::FeatureGates;
use crate::protection;
use crate::webhook::{CONVERT_PATH, WebhookKind, rules};
use crate::workloads::{ALL, OWN, READ, Right, STATUS, crds};

/// The namespace of an installation, unless said otherwise.
pub const NAMESPACE: &str = "kruise-system";
/// The Service of the webhooks.
pub const SERVICE: &str = "kruise-webhook-service";
/// The Secret of the webhooks' certificates.
pub const SECRET: &str = "kruise-webhook-certs";
/// The port at which the manager serves its webhooks.
pub const WEBHOOK_PORT: u16 = 9876;
/// The manager's service account.
const ACCOUNT: &str = "kruise-manager";
/// The label of the manager's pods and namespace; webhooks about pods leave namespaces that have it alone, so that a manager
/// that is down does not keep itself from starting.
const PLANE: (&str, &str) = ("control-plane", "controller-manager");

/// The manager's rights in the whole cluster, for any kinds.
const CLUSTER_RULES: [Right; 10] = [
    Right::new(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["get", "list", "patch", "update", "watch"],
    ),
    Right::new(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        &["get", "list", "patch", "update", "watch"],
    ),
    // Whom the server trusts to convert versions is written into the definitions.
    Right::new(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["get", "list", "update", "watch"],
    ),
    // The barriers of containers that start in an order.
    Right::new("", "configmaps", &["create", "get", "patch"]),
    Right::new("", "events", OWN),
    Right::new("", "namespaces", READ),
    Right::new("", "nodes", READ),
    Right::new("", "pods", OWN),
    Right::new("", "pods/status", STATUS),
    Right::new("", "secrets", &["create", "get", "list", "update", "watch"]),
];

/// Its rights in its own namespace, to be elected.
const ELECTION_RULES: [Right; 2] = [
    Right::new("coordination.k8s.io", "leases", OWN),
    Right::new("", "events", &["create"]),
];

/// The rules of a role, one for each resource.
pub(super) fn role_rules<'a>(rights: impl IntoIterator<Item = &'a Right>) -> Value {
    let mut rules: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        let verbs = rules.entry((right.group, right.resource)).or_default();
        verbs.extend(right.verbs);
    }
    rules
        .into_iter()
        .map(|((group, resource), verbs)| {
            json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
        })
        .collect()
}

/// A webhook configuration as it is installed, without a caBundle.
fn configuration(kind: WebhookKind, namespace: &str) -> Value {
    let webhooks: Vec<Value> = rules()
        .filter(|rule| rule.kind == kind)
        .map(|rule| {
            let mut webhook = json!({
                "name": rule.name,
                "admissionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": rule.path}},
                "failurePolicy": "Fail",
                "rules": [{
                    "apiGroups": rule.groups, "apiVersions": rule.versions,
                    "operations": rule.operations, "resources": rule.resources,
                }],
                "sideEffects": "None",
            });
            if let Some(label) = rule.label() {
                webhook["objectSelector"] =
                    json!({"matchExpressions": [{"key": label, "operator": "Exists"}]});
            }
            if rule
                .resources
                .iter()
                .any(|resource| matches!(*resource, "pods" | "pods/eviction"))
            {
                webhook["namespaceSelector"] =
                    json!({"matchExpressions": [{"key": PLANE.0, "operator": "DoesNotExist"}]});
            }
            webhook
        })
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind_of(kind),
        "metadata": {"name": name_of(kind)}, "webhooks": webhooks,
    })
}

fn deployment(namespace: &str, image: &str, feature_gates: &str) -> Value {
    let labels = json!({ PLANE.0: PLANE.1 });
    let mut arguments = vec![
        "--enable-leader-election".to_owned(),
        "--logtostderr=true".to_owned(),
        "--v=4".to_owned(),
        "--metrics-addr=:8080".to_owned(),
        "--health-probe-addr=:8000".to_owned(),
        format!("--leader-election-namespace={namespace}"),
    ];
    if !feature_gates.is_empty() {
        arguments.push(format!("--feature-gates={feature_gates}"));
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "kruise-controller-manager", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "terminationGracePeriodSeconds": 10,
                    "containers": [{
                        "name": "manager",
                        "image": image,
                        "command": ["/manager"],
                        "args": arguments,
                        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
                        "ports": [
                            {"name": "webhook-server", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},
                            {"name": "metrics", "containerPort": 8080, "protocol": "TCP"},
                            {"name": "health", "containerPort": 8000, "protocol": "TCP"},
                        ],
                        "livenessProbe": {"httpGet": {"path": "healthz", "port": 8000}},
                        "readinessProbe": {"httpGet": {"path": "readyz", "port": 8000}},
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
                        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532},
                    }],
                },
            },
        },
    })
}

/// The user that a manager in `namespace` is.
#[must_use]
pub fn user(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{ACCOUNT}")
}

/// The account of a manager in `namespace` with these feature gates, and its rights.
#[must_use]
pub fn access(namespace: &str, gates: &FeatureGates) -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let version = format!("{rbac}/v1");
    let subjects = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]);
    let of_kinds = ALL.iter().flat_map(|workload| workload.rbac);
    let of_kinds = of_kinds
        .chain(protection::RIGHTS)
        .filter(|right| right.gate.is_none_or(|gate| gates.is_on(gate)));
    let rules = CLUSTER_RULES.iter().chain(of_kinds);
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}),
        json!({"apiVersion": version, "kind": "Role",
            "metadata": {"name": "kruise-leader-election-role", "namespace": namespace},
            "rules": role_rules(&ELECTION_RULES)}),
        json!({"apiVersion": version, "kind": "ClusterRole",
            "metadata": {"name": "kruise-manager-role"}, "rules": role_rules(rules)}),
        json!({"apiVersion": version, "kind": "RoleBinding",
            "metadata": {"name": "kruise-leader-election-rolebinding", "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "kruise-leader-election-role"}, "subjects": subjects}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding",
            "metadata": {"name": "kruise-manager-rolebinding"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "kruise-manager-role"}, "subjects": subjects}),
    ]
}

/// Everything but the Deployment: the objects that a manager with these feature gates needs which runs somewhere else.
#[must_use]
pub fn objects(namespace: &str, gates: &FeatureGates) -> Vec<Value> {
    let mut out = crds(gates);
    for definition in out.iter_mut().filter(|definition| is_converted(definition)) {
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": CONVERT_PATH}},
                "conversionReviewVersions": REVIEW_VERSIONS,
            },
        });
    }
    out.push(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {PLANE.0: PLANE.1}}}),
    );
    out.extend(access(namespace, gates));
    out.extend([
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": namespace},
            "spec": {"ports": [{"port": 443, "targetPort": WEBHOOK_PORT}], "selector": {PLANE.0: PLANE.1}}}),
        configuration(WebhookKind::Mutating, namespace),
        configuration(WebhookKind::Validating, namespace),
    ]);
    out
}

/// Everything, with a Deployment of `image` whose manager has `feature_gates`, as the flag takes them.
///
/// # Errors
/// If a gate is unknown or its value is no truth value.
pub fn manifests(namespace: &str, image: &str, feature_gates: &str) -> Result<Vec<Value>, ProcessError> {
    let mut out = objects(namespace, &FeatureGates::parse(feature_gates)?);
    out.push(deployment(namespace, image, feature_gates));
    Ok(out)
}

/// The resource of a kind whose plural is not formed by the rule.
fn resource(object: &Value) -> ApiResource {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")))
}

/// The namespace where daemons find the Secrets for registries, copied there by jobs that pull images.
pub(super) fn secrets_namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Applies what a manager with these feature gates in `namespace` needs before it starts; `secrets` is where it copies Secrets to. A webhook configuration that is there already stays as it is: the
/// manager that serves it looks after it. So does the webhook that converts the versions of a definition.
///
/// # Errors
/// If the server refuses one.
pub async fn install(
    client: &Client,
    (namespace, secrets): (&str, &str),
    gates: &FeatureGates,
) -> Result<(), ProcessError> {
    let mut objects = objects(namespace, gates);
    objects.push(secrets_namespace(secrets));
    apply(client, objects).await
}

/// Applies objects in their order.
pub(super) async fn apply(client: &Client, objects: Vec<Value>) -> Result<(), ProcessError> {
    for mut object in objects {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (name, kind) = (&text("/metadata/name"), &text("/kind"));
        let failed = |error| ProcessError::request(&format!("install {kind} {name}"), error);
        let resource = resource(&object);
        let api: Api<DynamicObject> = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        if kind.ends_with("WebhookConfiguration")
            && api.get_metadata_opt(name).await.map_err(failed)?.is_some()
        {
            continue;
        }
        if object.pointer("/spec/conversion").is_some()
            && let Some(known) = api.get_opt(name).await.map_err(failed)?
            && let Some(conversion) = known.data.pointer("/spec/conversion")
            && conversion.get("strategy") == Some(&json!("Webhook"))
        {
            object["spec"]["conversion"] = conversion.clone();
        }
        let params = PatchParams::apply("kruise-manager-install").force();
        api.patch(name, &params, &Patch::Apply(&object))
            .await
            .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
