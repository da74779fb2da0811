//! SidecarSet.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shared::{ScatterTerm, UpdatePriorityStrategy, is_zero, is_zero_i64, schemaless};

/// The containers, volumes and annotations that pods get, and how they are upgraded.
///
/// The fields of containers and volumes that Kubernetes defines are kept as they came: the server does not look into them.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "SidecarSet",
    plural = "sidecarsets",
    status = "SidecarSetStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"MATCHED","type":"integer","jsonPath":".status.matchedPods"}"#,
    printcolumn = r#"{"name":"UPDATED","type":"integer","jsonPath":".status.updatedPods"}"#,
    printcolumn = r#"{"name":"READY","type":"integer","jsonPath":".status.readyPods"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetSpec {
    /// Which pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// In which namespaces. All of them when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Init containers to inject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<SidecarContainer>>,
    /// Containers to inject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<SidecarContainer>>,
    /// The volumes of the containers, a list of Volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemaless")]
    pub volumes: Option<Value>,
    /// How pods that have the containers are upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<SidecarSetUpdateStrategy>,
    /// How new pods get the containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection_strategy: Option<SidecarSetInjectionStrategy>,
    /// Secrets with which the images are pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<PullSecret>>,
    /// How many revisions are kept. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Annotations that pods get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_pod_metadata: Option<Vec<SidecarSetPatchPodMetadata>>,
    /// A name for the present revision, by which injection can ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_version: Option<String>,
}

impl SidecarSetSpec {
    /// The init containers; none where the field is absent.
    #[must_use]
    pub fn inits(&self) -> &[SidecarContainer] {
        self.init_containers.as_deref().unwrap_or_default()
    }

    /// The containers; none where the field is absent.
    #[must_use]
    pub fn sidecars(&self) -> &[SidecarContainer] {
        self.containers.as_deref().unwrap_or_default()
    }

    /// The volumes; none where the field does not hold a list.
    #[must_use]
    pub fn volume_list(&self) -> &[Value] {
        let list = self.volumes.as_ref().and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// The annotations that pods get.
    #[must_use]
    pub fn patches(&self) -> &[SidecarSetPatchPodMetadata] {
        self.patch_pod_metadata.as_deref().unwrap_or_default()
    }
}

/// A container to inject. The fields of its own are in the order in which Go writes them, since hashes depend on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct SidecarContainer {
    /// Whether it stands before or after the pod's own containers: `BeforeAppContainer` or `AfterAppContainer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_inject_policy: Option<String>,
    /// How it is upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_strategy: Option<SidecarContainerUpgradeStrategy>,
    /// Whether it gets the volume mounts of the pod's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_volume_policy: Option<ShareVolumePolicy>,
    /// Whether it gets the volume devices of the pod's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_volume_device_policy: Option<ShareVolumePolicy>,
    /// The environment variables of other containers that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "transferEnv")]
    pub transfer_envs: Option<Vec<TransferEnvVar>>,
    /// How its resources follow from those of the pod's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_policy: Option<ResourcesPolicy>,
    /// The fields of a Container of Kubernetes.
    #[serde(flatten)]
    #[schemars(skip)]
    pub container: Map<String, Value>,
}

impl SidecarContainer {
    /// The text of a field of the container; empty where there is none.
    fn text(&self, field: &str) -> &str {
        let value = self.container.get(field).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Its image.
    #[must_use]
    pub fn image(&self) -> &str {
        self.text("image")
    }

    /// Whether it is an init container that keeps running beside the pod's containers.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.text("restartPolicy") == "Always"
    }

    /// Whether it stands before the pod's own containers.
    #[must_use]
    pub fn is_before(&self) -> bool {
        self.pod_inject_policy.as_deref() == Some("BeforeAppContainer")
    }

    /// Whether it is upgraded by a second container that stands in for it.
    #[must_use]
    pub fn is_hot(&self) -> bool {
        let strategy = self.upgrade_strategy.as_ref();
        strategy.and_then(|strategy| strategy.upgrade_type.as_deref()) == Some("HotUpgrade")
    }

    /// The image of the second container while it does nothing.
    #[must_use]
    pub fn empty_image(&self) -> &str {
        let strategy = self.upgrade_strategy.as_ref();
        let image = strategy.and_then(|strategy| strategy.hot_upgrade_empty_image.as_deref());
        image.unwrap_or_default()
    }
}

/// How a container is upgraded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarContainerUpgradeStrategy {
    /// `ColdUpgrade` (default) or `HotUpgrade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_type: Option<String>,
    /// The image of the second container while it does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_upgrade_empty_image: Option<String>,
}

/// Whether a container gets something of the pod's own containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareVolumePolicy {
    /// `enabled` or `disabled`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl ShareVolumePolicy {
    /// Whether it does.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.kind.as_deref() == Some("enabled")
    }
}

/// Environment variables of another container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferEnvVar {
    /// The other container's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_container_name: Option<String>,
    /// The field of the pod that has the other container's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_container_name_from: Option<SourceContainerNameSource>,
    /// The name of a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_name: Option<String>,
    /// The names of variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_names: Option<Vec<String>>,
}

/// The field of the pod that has a container's name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceContainerNameSource {
    /// A label or an annotation of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<PodField>,
}

/// A field of the pod, in the order in which Go writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodField {
    /// Defaults to `v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// As `metadata.labels['app']`.
    pub field_path: String,
}

/// How a container's resources follow from those of the pod's own containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesPolicy {
    /// `sum` or `max` over the containers.
    #[schemars(extend("enum" = ["sum", "max"]))]
    pub target_containers_mode: String,
    /// A regular expression for the names of the containers. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_containers_name_regex: Option<String>,
    /// The expressions.
    pub resources_expr: ResourcesExpr,
}

/// Expressions for resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourcesExpr {
    /// Those of limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceExprs>,
    /// Those of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceExprs>,
}

/// Expressions by resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceExprs {
    /// That of CPU, over `cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// That of memory, over `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

/// A Secret with which images are pulled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PullSecret {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How pods that have the containers are upgraded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetUpdateStrategy {
    /// `RollingUpdate` (default) or `NotUpdate`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Do not upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Which pods alone are upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many pods keep the old version; a number, or a percentage rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable; a number, or a percentage rounded up. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// Which pods first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_strategy: Option<UpdatePriorityStrategy>,
    /// Which pods not in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter_strategy: Option<Vec<ScatterTerm>>,
}

/// How new pods get the containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SidecarSetInjectionStrategy {
    /// Do not inject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The revision to inject; the present one when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<SidecarSetInjectRevision>,
}

/// The revision to inject.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetInjectRevision {
    /// By its custom version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_version: Option<String>,
    /// By its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_name: Option<String>,
    /// `Always` (default), or `Partial`: into the pods that updates leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["Always", "Partial"]))]
    pub policy: Option<String>,
}

/// Annotations that pods get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetPatchPodMetadata {
    /// The annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// `Retain` (default), `Overwrite` or `MergePatchJson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_policy: Option<String>,
}

/// How far the upgrade is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["matchedPods", "readyPods", "updatedPods"]))]
pub struct SidecarSetStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// Pods that have the containers.
    #[serde(default)]
    pub matched_pods: i32,
    /// Those that have the present version.
    #[serde(default)]
    pub updated_pods: i32,
    /// Those that are ready.
    #[serde(default)]
    pub ready_pods: i32,
    /// Those that have the present version and are ready.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub updated_ready_pods: i32,
    /// The name of the present revision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub latest_revision: String,
    /// How often a revision's name was taken by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
}
