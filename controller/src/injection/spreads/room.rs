//! How many pods a subset takes.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use crate::api::v1alpha1::{WorkloadSpread, WorkloadSpreadSubset, WorkloadSpreadSubsetStatus};
use crate::kit::numbers::{Round, scaled};

/// The number that stands for any number of pods.
pub(crate) const UNLIMITED: i32 = -1;

/// How many pods a subset takes when its workload has so many: none for any number.
///
/// # Errors
/// That the number cannot be read.
pub(crate) fn limit(subset: &WorkloadSpreadSubset, replicas: i32) -> Result<Option<i32>, String> {
    let Some(limit) = &subset.max_replicas else {
        return Ok(None);
    };
    let limit = scaled(limit, replicas, Round::Up).map_err(|error| error.to_string())?;
    match limit < 0 {
        true => Err(format!(
            "maxReplicas {limit} of subset {} is negative",
            subset.name
        )),
        false => Ok(Some(limit)),
    }
}

/// Whether the limits depend on the workload.
pub(crate) fn depends(spread: &WorkloadSpread) -> bool {
    let is_percentage =
        |subset: &WorkloadSpreadSubset| matches!(subset.max_replicas, Some(IntOrString::String(_)));
    spread.spec.subsets.iter().any(is_percentage)
}

/// The statuses of subsets that have no pod yet. A limit that cannot be read counts as none at all.
pub(super) fn empty(spread: &WorkloadSpread, replicas: i32) -> Vec<WorkloadSpreadSubsetStatus> {
    let status = |subset: &WorkloadSpreadSubset| WorkloadSpreadSubsetStatus {
        name: subset.name.clone(),
        missing_replicas: limit(subset, replicas).unwrap_or(Some(0)).unwrap_or(UNLIMITED),
        ..WorkloadSpreadSubsetStatus::default()
    };
    spread.spec.subsets.iter().map(status).collect()
}

/// The sum of the numbers at dotted paths of an object.
///
/// # Errors
/// The path that leads to no number.
pub(crate) fn sum<'a>(
    object: impl Fn(&str) -> Option<Value>,
    paths: impl Iterator<Item = &'a str>,
) -> Result<i32, String> {
    let mut sum: i64 = 0;
    for path in paths {
        let pointer = format!("/{}", path.trim_start_matches('.').replace('.', "/"));
        let number = object(&pointer).and_then(|value| value.as_i64());
        sum = sum.saturating_add(number.ok_or_else(|| format!("path {path:?} not exists"))?);
    }
    Ok(i32::try_from(sum).unwrap_or(if sum < 0 { i32::MIN } else { i32::MAX }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("spec.replicas", Ok(3))]
    #[case("spec.tasks.1.replicas", Ok(2))]
    #[case("spec.tasks.0.replicas,spec.tasks.1.replicas", Ok(3))]
    #[case("spec.tasks.2.replicas", Err("path \"spec.tasks.2.replicas\" not exists"))]
    #[case("spec", Err("path \"spec\" not exists"))]
    fn sums(#[case] paths: &str, #[case] want: Result<i32, &str>) {
        let object = json!({ "spec": { "replicas": 3, "tasks": [{ "replicas": 1 }, { "replicas": 2 }] } });
        let at = |pointer: &str| object.pointer(pointer).cloned();
        assert_eq!(sum(at, paths.split(',')), want.map_err(str::to_owned));
    }
}
