//! Protection from deletion: the label `policy.kruise.io/delete-protection`, and the refusals of workloads.

use kruise_api::labels;
use serde_json::Value;

use super::admission::{Refusal, Request};
use crate::metrics::Family;

/// The gate of the protection.
pub const GATE: &str = "ResourcesDeletionProtection";
/// The metric of refusals about workloads.
pub const WORKLOADS: Family = (
    "workload_deletion_protection",
    "counter",
    "Number of times that a workload was protected from deletion",
);

/// How an object is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Always.
    Always,
    /// While something hangs on it.
    Cascading,
}

impl Protection {
    /// The text of a refusal.
    pub fn refusal(self) -> String {
        format!(
            "forbidden by ResourcesProtectionDeletion for {}={self:?}",
            labels::DELETION_PROTECTION
        )
    }
}

/// The object that a request is to delete, and its protection, if it has one. One that is being deleted already has none.
pub fn protected<'a>(request: &Request<'a>) -> Option<(&'a Value, Protection)> {
    let is_deletion = request.operation == "DELETE" && request.subresource.is_empty();
    if !is_deletion || !request.surroundings.gates.is_on(GATE) {
        return None;
    }
    let metadata = request.old?.get("metadata")?;
    let is_ending = metadata
        .get("deletionTimestamp")
        .is_some_and(|time| !time.is_null());
    let label = metadata
        .get("labels")?
        .get(labels::DELETION_PROTECTION)?
        .as_str()?;
    let protection = match label {
        "Always" => Protection::Always,
        "Cascading" => Protection::Cascading,
        _ => return None,
    };
    (!is_ending).then_some((request.old?, protection))
}

/// The answer to the deletion of a workload: one with replicas is protected by either value.
///
/// # Errors
/// The refusal.
pub fn workload(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let Some((workload, protection)) = protected(request) else {
        return Ok(None);
    };
    let replicas = workload
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let text = match protection {
        Protection::Always => protection.refusal(),
        Protection::Cascading if replicas > 0 => {
            format!("{} and replicas {replicas}>0", protection.refusal())
        }
        Protection::Cascading => return Ok(None),
    };
    let at = |pointer: &str| {
        workload
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let object = format!(
        "{}_{}_{}",
        at("/kind"),
        at("/metadata/namespace"),
        at("/metadata/name")
    );
    let pairs = [
        ("kind_namespace_name", object.as_str()),
        ("username", request.user),
    ];
    request.surroundings.metrics.add(WORKLOADS.0, &pairs, 1.0);
    Err(Refusal::new(403, text))
}
