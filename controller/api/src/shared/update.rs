//! The order and the details of updates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pods are updated first. Only one of the two may be used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePriorityStrategy {
    /// By the value of labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_priority: Option<Vec<OrderPriorityTerm>>,
    /// By the sum of the weights of matching selectors, highest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_priority: Option<Vec<WeightPriorityTerm>>,
}

/// A label whose value's trailing number orders pods, highest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderPriorityTerm {
    /// The label's key.
    pub ordered_key: String,
}

/// A selector and the weight of a pod that it matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeightPriorityTerm {
    /// 1 to 100.
    pub weight: i32,
    /// Which pods weigh it.
    pub match_selector: LabelSelector,
}

/// Pods with this label are spread over the order of the update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScatterTerm {
    /// The label's key.
    pub key: String,
    /// The label's value.
    pub value: String,
}

/// Details of updates in place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// How many seconds a pod is out of service before its containers are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
}
