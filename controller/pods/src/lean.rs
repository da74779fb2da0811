//! A pod as the caches hold it: the fields that controllers read, and no more.
//!
//! The generated type of a pod with one container takes more than 10 KiB, most of it for fields that are absent. A manager
//! keeps every pod of a cluster, so fields that no controller reads are dropped while the pod is decoded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::Pod as Whole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use pod_rules::fields::path;
use pod_rules::nodes::daemon;
use serde::{Deserialize, Deserializer};
use shared_json::{Value, json};

use super::word::Word;

/// The terms of an affinity's required part.
const REQUIRED_TERMS: &str = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Pod {
    /// Everything but the managed fields and the deprecated link to itself.
    #[serde(deserialize_with = "slim_meta")]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    /// Its status.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: PodStatus,
}

/// The specification of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Empty before it is scheduled.
    #[serde(deserialize_with = "null_is_default")]
    pub node_name: Box<str>,
    /// Its containers, without init containers.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Box<[Container]>,
    /// Its init containers.
    #[serde(deserialize_with = "null_is_default")]
    pub init_containers: Box<[InitContainer]>,
    /// Its ephemeral containers.
    #[serde(deserialize_with = "null_is_default")]
    pub ephemeral_containers: Box<[EphemeralContainer]>,
    /// The conditions that must be true before it is ready.
    #[serde(deserialize_with = "null_is_default")]
    pub readiness_gates: Box<[ReadinessGate]>,
    /// The nodes that it must run on by its affinity.
    #[serde(rename = "affinity", deserialize_with = "required_nodes")]
    pub required: RequiredNodes,
    /// Which containers are started anew.
    pub restart_policy: RestartPolicy,
    /// The labels that its node must have; null if it does not say.
    #[serde(deserialize_with = "null_is_default")]
    pub node_selector: Value,
    /// The taints that it tolerates, as a list; null for those that every pod does.
    #[serde(deserialize_with = "own_tolerations")]
    pub tolerations: Value,
    /// How long it may take to end.
    pub termination_grace_period_seconds: Option<i64>,
}

impl PodSpec {
    /// The tolerations, those that every pod has included.
    pub fn all_tolerations(&self) -> Value {
        let mut all = DEFAULT_TOLERATIONS.clone();
        all.extend(self.tolerations.as_array().into_iter().flatten().cloned());
        Value::from(all)
    }
}

/// The nodes that a pod must run on by its affinity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequiredNodes {
    /// The node that it names; empty if it names none.
    pub named: Box<str>,
    /// The terms, if they say more than that name; null otherwise.
    pub terms: Value,
}

/// The tolerations that admission gives to every pod that does not say otherwise.
static DEFAULT_TOLERATIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let of = |key: &str| json!({ "effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300 });
    keys.map(of).into()
});

/// Which containers of a pod are started anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub enum RestartPolicy {
    /// All that end.
    #[default]
    Always,
    /// Those that fail.
    OnFailure,
    /// None.
    Never,
}

impl From<Value> for RestartPolicy {
    fn from(policy: Value) -> Self {
        match policy.as_str() {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }
}

/// A condition that must be true before a pod is ready.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// Its type.
    pub condition_type: Word,
}

/// An init container, of which only the name is kept.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct InitContainer {
    /// Its name in the pod.
    pub name: Box<str>,
}

/// An ephemeral container, of which its name and its job are kept.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct EphemeralContainer {
    /// Its name in the pod.
    pub name: Box<str>,
    /// The uid of the job that it is of; empty for one that a person has added.
    #[serde(default, rename = "env", deserialize_with = "job_id")]
    pub job: Box<str>,
}

/// How an ephemeral container stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub enum EphemeralState {
    /// It waits to start, or nothing is known of it.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended otherwise, or could not be started.
    Failed,
}

impl From<Value> for EphemeralState {
    fn from(state: Value) -> Self {
        if let Some(end) = state.get("terminated").filter(|end| !end.is_null()) {
            return match end.get("exitCode").and_then(Value::as_i64) {
                Some(0) => Self::Succeeded,
                _ => Self::Failed,
            };
        }
        let reason = path(&state, "/waiting/reason").and_then(Value::as_str);
        match (state.get("running"), reason) {
            (Some(running), _) if !running.is_null() => Self::Running,
            (_, Some("RunContainerError")) => Self::Failed,
            _ => Self::Waiting,
        }
    }
}

/// How an ephemeral container is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct EphemeralStatus {
    /// Its name in the pod.
    pub name: Box<str>,
    /// How it stands.
    #[serde(default)]
    pub state: EphemeralState,
}

/// The specification of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// The image that it runs.
    pub image: Option<String>,
    /// The variables that come from somewhere, and those that say when the container is to end.
    #[serde(default, deserialize_with = "kept_variables")]
    pub env: Box<[EnvVar]>,
    /// The ports that have names.
    #[serde(default, deserialize_with = "named_ports")]
    pub ports: Box<[NamedPort]>,
    /// Its requests of resources and its limits.
    pub resources: Option<Resources>,
    /// Whether it restarts, by the resource that changes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resize_policy: Box<[ResizePolicy]>,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedPort {
    /// Its name; empty if it has none.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: Box<str>,
    /// Its number.
    pub container_port: i32,
}

/// A variable of a container's environment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value, of those that say when the container is to end.
    #[serde(default)]
    pub value: Option<Box<str>>,
    /// Where its value comes from.
    pub value_from: Option<EnvVarSource>,
}

/// Where a variable's value comes from.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVarSource {
    /// A field of the pod.
    pub field_ref: Option<FieldRef>,
    /// A key of a ConfigMap.
    pub config_map_key_ref: Option<KeyRef>,
}

/// A field of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// As `metadata.labels['app']`.
    pub field_path: String,
}

/// A key of a ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct KeyRef {
    /// The key.
    pub key: String,
}

/// Amounts of CPU, memory and others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The most it may use.
    #[serde(deserialize_with = "null_is_default")]
    pub limits: Amounts,
    /// The amounts that are kept for it.
    #[serde(deserialize_with = "null_is_default")]
    pub requests: Amounts,
}

/// Amounts by resource, ordered by its name, as they were written: `500m`, `1Gi`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<Box<str>, Box<str>>")]
pub struct Amounts(pub Box<[(Box<str>, Box<str>)]>);

impl From<BTreeMap<Box<str>, Box<str>>> for Amounts {
    fn from(amounts: BTreeMap<Box<str>, Box<str>>) -> Self {
        Self(amounts.into_iter().collect())
    }
}

/// Whether a container restarts when its amount of a resource changes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResizePolicy {
    /// Which resource.
    pub resource_name: String,
    /// `NotRequired` or `RestartContainer`.
    pub restart_policy: String,
}

/// The status of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, …; empty when unknown.
    #[serde(deserialize_with = "null_is_default")]
    pub phase: Word,
    /// Its address; empty as long as it has none.
    #[serde(rename = "podIP", deserialize_with = "null_is_default")]
    pub ip: Box<str>,
    /// Its conditions.
    #[serde(deserialize_with = "null_is_default")]
    pub conditions: Box<[PodCondition]>,
    /// The states of its containers, without init containers.
    #[serde(deserialize_with = "null_is_default")]
    pub container_statuses: Box<[ContainerStatus]>,
    /// The states of its ephemeral containers.
    #[serde(deserialize_with = "null_is_default")]
    pub ephemeral_container_statuses: Box<[EphemeralStatus]>,
    /// How often its init containers were started anew, all together.
    #[serde(rename = "initContainerStatuses", deserialize_with = "all_restarts")]
    pub init_restarts: i32,
}

/// A condition of a pod.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCondition {
    /// Which.
    #[serde(rename = "type")]
    pub kind: Word,
    /// `True`, `False` or `Unknown`.
    pub status: Word,
    /// Since when.
    pub last_transition_time: Option<Time>,
    /// Why, in a word; empty if it does not say.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reason: Word,
    /// Why, in words.
    pub message: Option<Box<str>>,
}

/// The status of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Its name in the pod.
    pub name: String,
    /// The image as the runtime names it.
    pub image: String,
    /// The image's content.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// `containerd://…`; none before it was created.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
    /// Whether it passes its readiness probe.
    pub ready: bool,
    /// How often it was started anew.
    pub restart_count: i32,
    /// Whether it runs or has ended.
    #[serde(deserialize_with = "null_is_default")]
    pub state: ContainerState,
    /// The resources that it got of its node.
    pub resources: Option<Resources>,
}

/// The state of a container: whether it runs or has ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "WrittenState")]
pub struct ContainerState {
    /// Whether it runs.
    pub running: bool,
    /// Since when it runs.
    pub started_at: Option<Time>,
    /// The exit code of one that has ended.
    pub exit_code: Option<i32>,
}

/// The same as a pod's status has it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenState {
    running: Option<Running>,
    terminated: Option<End>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Running {
    started_at: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct End {
    exit_code: i32,
}

impl From<WrittenState> for ContainerState {
    fn from(state: WrittenState) -> Self {
        Self {
            running: state.running.is_some(),
            started_at: state.running.and_then(|running| running.started_at),
            exit_code: state.terminated.map(|end| end.exit_code),
        }
    }
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = <Whole as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Whole::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Whole::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Whole::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Whole::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    decoder: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(decoder)?.unwrap_or_default())
}

fn required_nodes<'de, D: Deserializer<'de>>(decoder: D) -> Result<RequiredNodes, D::Error> {
    let affinity: Value = null_is_default(decoder)?;
    let Some(terms) = path(&affinity, REQUIRED_TERMS) else {
        return Ok(RequiredNodes::default());
    };
    let named = daemon::node_named_by(&affinity);
    let pinned =
        json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [named] }] }]);
    let terms = (*terms != pinned).then(|| terms.clone());
    Ok(RequiredNodes {
        named: named.into(),
        terms: terms.unwrap_or_default(),
    })
}

fn own_tolerations<'de, D: Deserializer<'de>>(decoder: D) -> Result<Value, D::Error> {
    let mut own: Vec<Value> = null_is_default(decoder)?;
    own.retain(|toleration| !DEFAULT_TOLERATIONS.contains(toleration));
    Ok(match own.is_empty() {
        true => Value::Null,
        false => Value::from(own),
    })
}

/// The variable by which an ephemeral container says which job it is of.
const JOB_ID: &str = "KRUISE_EJOB_ID";

fn job_id<'de, D: Deserializer<'de>>(decoder: D) -> Result<Box<str>, D::Error> {
    let env: Vec<Value> = null_is_default(decoder)?;
    let is_id = |variable: &&Value| variable.get("name").and_then(Value::as_str) == Some(JOB_ID);
    let id = env
        .iter()
        .rfind(is_id)
        .and_then(|variable| variable.get("value")?.as_str());
    Ok(id.unwrap_or_default().into())
}

fn all_restarts<'de, D: Deserializer<'de>>(decoder: D) -> Result<i32, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Restarts {
        restart_count: i32,
    }
    let all: Vec<Restarts> = null_is_default(decoder)?;
    let sum = |total: i32, one: Restarts| total.saturating_add(one.restart_count);
    Ok(all.into_iter().fold(0, sum))
}

/// The beginning of the names of variables that say when a container is to end.
const END_PREFIX: &str = "KRUISE_TERMINATE_SIDECAR_";

fn kept_variables<'de, D: Deserializer<'de>>(decoder: D) -> Result<Box<[EnvVar]>, D::Error> {
    let variables: Vec<EnvVar> = null_is_default(decoder)?;
    let kept = |variable: EnvVar| {
        let is_end = variable.name.starts_with(END_PREFIX);
        let value = variable.value.filter(|_| is_end);
        let variable = EnvVar { value, ..variable };
        (variable.value_from.is_some() || variable.value.is_some()).then_some(variable)
    };
    Ok(variables.into_iter().filter_map(kept).collect())
}

fn named_ports<'de, D: Deserializer<'de>>(decoder: D) -> Result<Box<[NamedPort]>, D::Error> {
    let ports: Vec<NamedPort> = null_is_default(decoder)?;
    Ok(ports.into_iter().filter(|port| !port.name.is_empty()).collect())
}

fn slim_meta<'de, D: Deserializer<'de>>(decoder: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Slim {
        annotations: Option<BTreeMap<String, String>>,
        creation_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        deletion_timestamp: Option<Time>,
        finalizers: Option<Vec<String>>,
        generate_name: Option<String>,
        generation: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        name: Option<String>,
        namespace: Option<String>,
        owner_references: Option<Vec<OwnerReference>>,
        resource_version: Option<String>,
        uid: Option<String>,
    }
    fn fitted<T>(list: Option<Vec<T>>) -> Option<Vec<T>> {
        list.map(|mut list| {
            list.shrink_to_fit();
            list
        })
    }
    let slim = Slim::deserialize(decoder)?;
    Ok(ObjectMeta {
        annotations: slim.annotations,
        creation_timestamp: slim.creation_timestamp,
        deletion_grace_period_seconds: slim.deletion_grace_period_seconds,
        deletion_timestamp: slim.deletion_timestamp,
        finalizers: fitted(slim.finalizers),
        generate_name: slim.generate_name,
        generation: slim.generation,
        labels: slim.labels,
        managed_fields: None,
        name: slim.name,
        namespace: slim.namespace,
        owner_references: fitted(slim.owner_references),
        resource_version: slim.resource_version,
        self_link: None,
        uid: slim.uid,
    })
}

#[cfg(test)]
#[path = "lean_tests.rs"]
mod tests;
