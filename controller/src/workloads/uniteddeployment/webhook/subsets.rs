//! Errors in subsets and their numbers.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, names, pod, selectors};
use shared_json::json;

use crate::api::v1alpha1::{Subset, UnitedDeploymentSpec};
use crate::kit::go_syntax;
use crate::workloads::uniteddeployment::amounts::{AmountError, parse};

const PATH: &str = "spec.topology.subsets";
/// How many pods a subset has at most that does not say it, as far as sums go (OpenKruise: the same).
const MAX_UNSET: i32 = 1_000_000;

/// The sums of the numbers of subsets.
#[derive(Default)]
struct Sums {
    replicas: i64,
    min: i64,
    max: i64,
    with_replicas: usize,
    with_max: usize,
    has_bounds: bool,
}

/// Errors in the numbers.
pub(super) fn numbers(spec: &UnitedDeploymentSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut sums = Sums::default();
    // OpenKruise takes this number for an unset one.
    let replicas = spec.replicas.filter(|replicas| *replicas != -1);
    for (at, subset) in spec.topology.subsets.iter().enumerate() {
        add(at, subset, replicas, &mut sums, &mut errors);
    }
    if sums.with_replicas > 0 && sums.has_bounds {
        let detail = "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a UnitedDeployment";
        errors.push(FieldError::invalid_shown(PATH, "[]v1alpha1.Subset{...}", detail));
        return errors;
    }
    let count = spec.topology.subsets.len();
    let found = match sums.has_bounds {
        true => bounds(&sums, replicas, count),
        false => shares(&sums, replicas, count),
    };
    errors.extend(found);
    errors
}

/// Adds the numbers of a subset to the sums. The errors of minima and maxima stand at the same path, with the same value, as in
/// OpenKruise.
fn add(at: usize, subset: &Subset, all: Option<i32>, sums: &mut Sums, errors: &mut Vec<FieldError>) {
    let max_shown = subset
        .max_replicas
        .as_ref()
        .map_or_else(|| "\"null\"".to_owned(), go_syntax::int_or_string);
    let mut read = |value: &IntOrString, field: &str, shown: &str| {
        parse(value, all).unwrap_or_else(|error: AmountError| {
            let path = format!("{PATH}[{at}].{field}");
            errors.push(FieldError::invalid_shown(path, shown, error.to_string()));
            0
        })
    };
    if let Some(replicas) = &subset.replicas {
        sums.with_replicas += 1;
        sums.replicas += i64::from(read(replicas, "replicas", &go_syntax::int_or_string(replicas)));
    }
    let min = subset.min_replicas.as_ref();
    let min = min.map_or(0, |min| read(min, "minReplicas", &max_shown));
    let max = subset.max_replicas.as_ref();
    let max = max.map_or(MAX_UNSET, |max| read(max, "minReplicas", &max_shown));
    sums.has_bounds |= subset.min_replicas.is_some() || subset.max_replicas.is_some();
    sums.with_max += usize::from(subset.max_replicas.is_some());
    sums.min += i64::from(min);
    sums.max += i64::from(max);
    if min > max {
        let path = format!("{PATH}[{at}].minReplicas");
        let detail = format!("subset[{at}].minReplicas must be more than or equal to maxReplicas");
        errors.push(FieldError::invalid_shown(path, max_shown, detail));
    }
}

/// Errors in minima and maxima together.
fn bounds(sums: &Sums, replicas: Option<i32>, count: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if replicas.is_none() {
        let detail = "spec.replicas must be not empty if you set subset.minReplicas/maxReplicas";
        errors.push(FieldError::invalid(PATH, -1, detail));
    }
    if sums.with_max >= count {
        let detail = "at least one subset.maxReplicas must be empty";
        errors.push(FieldError::invalid(PATH, sums.with_max, detail));
    }
    if sums.min > sums.max {
        let detail = "sum of indicated subset.minReplicas should not be greater than sum of indicated subset.maxReplicas";
        errors.push(FieldError::invalid(PATH, sums.min, detail));
    }
    errors
}

/// Errors in the numbers that subsets say themselves, together. OpenKruise prints an address for the number of all pods.
fn shares(sums: &Sums, replicas: Option<i32>, count: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let sum = sums.replicas;
    let mut refuse = |detail: String| errors.push(FieldError::invalid(PATH, sum, detail));
    match replicas {
        None if sums.with_replicas != count => refuse(
            "if UnitedDeployment replicas is not provided, replicas of all subsets should be provided"
                .to_owned(),
        ),
        None => {}
        Some(replicas) => {
            if sum > i64::from(replicas) {
                refuse(format!(
                    "sum of indicated subset replicas {sum} should not be greater than UnitedDeployment replicas {replicas}"
                ));
            }
            if count > 0 && sums.with_replicas == count && sum != i64::from(replicas) {
                refuse(format!(
                    "if replicas of all subsets are provided, the sum of indicated subset replicas {sum} should equal \
                     UnitedDeployment replicas {replicas}"
                ));
            }
        }
    }
    errors
}

/// Errors in each subset.
pub(super) fn subsets(spec: &UnitedDeploymentSpec) -> Vec<FieldError> {
    let subsets = &spec.topology.subsets;
    let is_adaptive = spec.topology.schedule_strategy.kind == "Adaptive";
    let mut errors = Vec::new();
    for (at, subset) in subsets.iter().enumerate() {
        let path = format!("{PATH}[{at}].name");
        let name = subset.name.as_str();
        if name.is_empty() {
            errors.push(FieldError::required(path.as_str(), ""));
        }
        if subsets[..at].iter().any(|other| other.name == name) {
            let detail = format!("duplicated subset name {name}");
            errors.push(FieldError::invalid(path.as_str(), name, detail));
        }
        let problems = names::label_problems(name);
        if !problems.is_empty() {
            let detail = format!("invalid subset name {}", problems.join(", "));
            errors.push(FieldError::invalid(path, name, detail));
        }
        errors.extend(constraints(subset, at));
        if is_adaptive && subset.replicas.is_some() {
            let path = format!("{PATH}[{at}].replicas");
            let detail = "specify replicas use minReplicas/maxReplicas to enable adaptive strategy";
            errors.push(FieldError::forbidden(path, detail));
        }
    }
    errors
}

/// Errors in the term and the tolerations of a subset.
fn constraints(subset: &Subset, at: usize) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let path = Path::new(PATH);
    let path = path.index(at);
    let term = json!(subset.node_selector_term);
    selectors::node_term(&term, true, &path.field("nodeSelectorTerm"), &mut errors);
    let tolerations = json!(subset.tolerations);
    let tolerations = tolerations.as_array().map_or(&[][..], |list| list.as_slice());
    pod::tolerations(tolerations, &path.field("tolerations"), &mut errors);
    errors.into_vec()
}
