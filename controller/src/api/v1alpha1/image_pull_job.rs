//! ImagePullJob, as far as a CloneSet makes them.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An image to pull on the nodes of some pods. What is not needed here is kept as it came.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ImagePullJob",
    plural = "imagepulljobs",
    namespaced,
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullJobSpec {
    /// The image.
    pub image: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
