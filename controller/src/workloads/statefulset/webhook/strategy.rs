//! The errors of a StatefulSet's strategies.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::FieldError;
use pod_rules::field_error::go_quote;
use serde_json::Value;

use crate::api::labels;
use crate::api::v1beta1::{RollingUpdateStatefulSetStrategy, StatefulSetSpec};
use crate::kit::go_syntax;
use crate::kit::numbers::{Round, scaled};
use crate::pods::template::rules;

/// The most that `minReadySeconds` may be.
const MIN_READY_S_MAX: i32 = 300;

/// The errors of `scaleStrategy`.
pub(super) fn scale(spec: &StatefulSetSpec, errors: &mut Vec<FieldError>) {
    let strategy = spec.scale_strategy.as_ref();
    if let Some(value) = strategy.and_then(|strategy| strategy.max_unavailable.as_ref()) {
        max_unavailable(spec, value, "spec.scaleStrategy.maxUnavailable", errors);
    }
}

fn is_parallel(spec: &StatefulSetSpec) -> bool {
    spec.pod_management_policy.as_deref() == Some("Parallel")
}

/// The errors of a number of pods that may be unavailable.
fn max_unavailable(spec: &StatefulSetSpec, value: &IntOrString, path: &str, errors: &mut Vec<FieldError>) {
    let shown = go_syntax::int_or_string(value);
    rules::positive_number(path, value, errors);
    match scaled(value, 1, Round::Up) {
        Err(error) => {
            let detail = format!("getValueFromIntOrPercent error: {error}");
            errors.push(FieldError::invalid(path, 0, detail));
        }
        Ok(number) if number < 1 => {
            errors.push(FieldError::invalid(path, number, "should not be less than 1"))
        }
        Ok(_) => {}
    }
    if !is_parallel(spec) && *value != IntOrString::Int(1) {
        let detail = "can only work with Parallel PodManagementPolicyType";
        errors.push(FieldError::invalid_shown(path, shown, detail));
    }
}

/// The errors of `updateStrategy`.
pub(super) fn update(spec: &StatefulSetSpec, errors: &mut Vec<FieldError>) {
    let strategy = spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let path = "spec.updateStrategy";
    match strategy
        .and_then(|strategy| strategy.kind.as_deref())
        .unwrap_or_default()
    {
        "" => errors.push(FieldError::required(path, "")),
        "RollingUpdate" => {
            if let Some(rolling) = rolling {
                rolling_update(spec, rolling, errors);
            }
        }
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                let shown = shown(rolling);
                errors.push(FieldError::invalid_shown(
                    format!("{path}.rollingUpdate"),
                    shown,
                    detail,
                ));
            }
        }
        other => {
            let rolling = match rolling {
                None => "(*v1beta1.RollingUpdateStatefulSetStrategy)(nil)".to_owned(),
                Some(rolling) => format!("&{}", shown(rolling)),
            };
            let shown = format!(
                "v1beta1.StatefulSetUpdateStrategy{{Type:{}, RollingUpdate:{rolling}}}",
                go_quote(other)
            );
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid_shown(path, shown, detail));
        }
    }
}

/// A strategy as Go prints it, but for its pointers: Go prints addresses there.
fn shown(rolling: &RollingUpdateStatefulSetStrategy) -> String {
    let pointer = |kind: &str, is_set: bool| match is_set {
        true => format!("({kind})(...)"),
        false => format!("({kind})(nil)"),
    };
    format!(
        "v1beta1.RollingUpdateStatefulSetStrategy{{Partition:{}, MaxUnavailable:{}, PodUpdatePolicy:{}, Paused:{}, \
         UnorderedUpdate:{}, InPlaceUpdateStrategy:{}, MinReadySeconds:{}}}",
        pointer("*int32", rolling.partition.is_some()),
        pointer("*intstr.IntOrString", rolling.max_unavailable.is_some()),
        go_quote(rolling.pod_update_policy.as_deref().unwrap_or_default()),
        rolling.paused == Some(true),
        pointer(
            "*v1beta1.UnorderedUpdateStrategy",
            rolling.unordered_update.is_some()
        ),
        pointer(
            "*pub.InPlaceUpdateStrategy",
            rolling.in_place_update_strategy.is_some()
        ),
        pointer("*int32", rolling.min_ready_seconds.is_some()),
    )
}

fn rolling_update(
    spec: &StatefulSetSpec,
    rolling: &RollingUpdateStatefulSetStrategy,
    errors: &mut Vec<FieldError>,
) {
    let path = |field: &str| format!("spec.updateStrategy.rollingUpdate.{field}");
    rules::non_negative(&path("partition"), rolling.partition, errors);
    rules::non_negative(&path("minReadySeconds"), rolling.min_ready_seconds, errors);
    if let Some(seconds) = rolling
        .min_ready_seconds
        .filter(|seconds| *seconds > MIN_READY_S_MAX)
    {
        let detail = format!("must be no more than {MIN_READY_S_MAX} seconds");
        errors.push(FieldError::invalid(path("minReadySeconds"), seconds, detail));
    }
    match &rolling.max_unavailable {
        None => errors.push(FieldError::required(path("maxUnavailable"), "")),
        Some(value) => max_unavailable(spec, value, &path("maxUnavailable"), errors),
    }
    match rolling.pod_update_policy.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(path("podUpdatePolicy"), "")),
        "ReCreate" => {}
        policy @ ("InPlaceIfPossible" | "InPlaceOnly") => readiness_gate(spec, policy, errors),
        other => {
            let detail = "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'";
            errors.push(FieldError::invalid(path("podUpdatePolicy"), other, detail));
        }
    }
    if let Some(unordered) = &rolling.unordered_update {
        if !is_parallel(spec) {
            let detail = "unorderedUpdate can only work with Parallel PodManagementPolicyType";
            errors.push(FieldError::required(path("unorderedUpdate"), detail));
        }
        let priorities = unordered.priority_strategy.as_ref();
        let path = path("unorderedUpdate.priorityStrategy");
        errors.extend(rules::priority(priorities, &path));
    }
}

/// Pods can be updated in place only with their readiness gate.
fn readiness_gate(spec: &StatefulSetSpec, policy: &str, errors: &mut Vec<FieldError>) {
    let gates = spec
        .template
        .pointer("/spec/readinessGates")
        .and_then(Value::as_array);
    let kinds: Vec<&str> = gates
        .into_iter()
        .flatten()
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .collect();
    if kinds.contains(&labels::IN_PLACE_READY) {
        return;
    }
    let shown: Vec<String> = kinds
        .iter()
        .map(|kind| format!("v1.PodReadinessGate{{ConditionType:{}}}", go_quote(kind)))
        .collect();
    let shown = match gates {
        None => "[]v1.PodReadinessGate(nil)".to_owned(),
        Some(_) => format!("[]v1.PodReadinessGate{{{}}}", shown.join(", ")),
    };
    let detail = format!("must contains InPlaceUpdateReady when podUpdatePolicy is {policy}");
    errors.push(FieldError::invalid_shown(
        "spec.template.spec.readinessGates",
        shown,
        detail,
    ));
}
