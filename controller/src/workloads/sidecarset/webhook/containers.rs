//! The errors of a set's containers and volumes.

use pod_rules::FieldError;
use pod_rules::field_error::go_quote;
use regex::Regex;
use serde_json::Value;

use crate::api::v1beta1::{
    PodField, ResourceExprs, ResourcesPolicy, ShareVolumePolicy, SidecarContainer, SidecarSetSpec,
};
use crate::injection::sidecars::calculator::{self, evaluate};
use crate::pods::template::rules;

/// Everything that is wrong with the containers and volumes.
pub(super) fn errors(spec: &SidecarSetSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if spec.inits().is_empty() && spec.sidecars().is_empty() {
        let detail = "no initContainer or container defined for SidecarSet";
        return vec![FieldError::required("spec", detail)];
    }
    for (at, init) in spec.inits().iter().enumerate() {
        let Some(policy) = &init.resources_policy else {
            continue;
        };
        if !init.is_native() {
            let detail = "resourcesPolicy is only supported for containers with RestartPolicy Always";
            let path = format!("spec[{at}].resourcesPolicy");
            errors.push(FieldError::invalid_shown(path, shown(policy), detail));
        }
        resources(at, init, policy, &mut errors);
    }
    for (at, container) in spec.sidecars().iter().enumerate() {
        own_fields(at, container, &mut errors);
    }
    let raw = |list: &[SidecarContainer]| -> Vec<Value> {
        list.iter()
            .map(|container| Value::Object(container.container.clone()))
            .collect()
    };
    let volumes = Value::Array(spec.volume_list().to_vec());
    errors.extend(rules::pod_parts(
        Value::Array(raw(spec.inits())),
        raw(spec.sidecars()),
        volumes,
    ));
    errors
}

fn own_fields(at: usize, container: &SidecarContainer, errors: &mut Vec<FieldError>) {
    let place = container.pod_inject_policy.as_deref().unwrap_or_default();
    if !matches!(place, "BeforeAppContainer" | "AfterAppContainer") {
        let detail = "unsupported pod inject policy";
        errors.push(FieldError::invalid(
            "spec.container.podInjectPolicy",
            place,
            detail,
        ));
    }
    let none = ShareVolumePolicy::default();
    let share = container.share_volume_policy.as_ref().unwrap_or(&none);
    let share = share.kind.as_deref().unwrap_or_default();
    if !matches!(share, "enabled" | "disabled") {
        let shown = format!("v1beta1.ShareVolumePolicy{{Type:{}}}", go_quote(share));
        let detail = "unsupported share volume policy";
        errors.push(FieldError::invalid_shown(
            "spec.container.shareVolumePolicy",
            shown,
            detail,
        ));
    }
    for transfer in container.transfer_envs.iter().flatten() {
        let from = transfer.source_container_name_from.as_ref();
        if let Some(field) = from.and_then(|from| from.field_ref.as_ref()) {
            pod_field(at, field, errors);
        }
    }
    if let Some(policy) = &container.resources_policy {
        resources(at, container, policy, errors);
    }
}

/// The errors of a field of the pod that has a container's name.
fn pod_field(at: usize, field: &PodField, errors: &mut Vec<FieldError>) {
    let path = format!("spec[{at}].transferEnv.fieldRef");
    if field.api_version.as_deref().unwrap_or_default().is_empty() {
        errors.push(FieldError::required(format!("{path}.apiVersion"), ""));
        return;
    }
    let text = field.field_path.as_str();
    if text.is_empty() {
        errors.push(FieldError::required(format!("{path}.fieldPath"), ""));
        return;
    }
    let path = format!("{path}.fieldPath");
    let subscript = text
        .split_once('[')
        .and_then(|(map, rest)| Some((map, rest.strip_prefix('\'')?.strip_suffix("']")?)));
    let detail = match subscript {
        Some(("metadata.labels" | "metadata.annotations", key)) => {
            let problems = pod_rules::names::qualified_problems(&key.to_lowercase());
            errors.extend(
                problems
                    .into_iter()
                    .map(|detail| FieldError::invalid(&path, key, detail)),
            );
            return;
        }
        Some((map, _)) => {
            format!("error converting fieldPath: field label does not support subscript: {map}")
        }
        None if matches!(text, "metadata.labels" | "metadata.annotations") => {
            format!("field path not supported: {text}")
        }
        None => format!("error converting fieldPath: field label not supported: {text}"),
    };
    errors.push(FieldError::invalid(path, text, detail));
}

/// The errors of a policy for resources.
fn resources(
    at: usize,
    container: &SidecarContainer,
    policy: &ResourcesPolicy,
    errors: &mut Vec<FieldError>,
) {
    let path = format!("spec[{at}].resourcesPolicy");
    let own = container.container.get("resources").and_then(Value::as_object);
    if own.is_some_and(|own| !own.is_empty()) {
        let detail = "resourcesPolicy and resources cannot be configured together";
        errors.push(FieldError::invalid_shown(path, shown(policy), detail));
        return;
    }
    let pattern = policy.target_containers_name_regex.as_deref().unwrap_or_default();
    let at = format!("{path}.targetContainersNameRegex");
    if pattern.is_empty() {
        errors.push(FieldError::required(at, "invalid empty regex"));
    } else if let Err(error) = Regex::new(pattern) {
        let detail = format!("invalid regex pattern: {}", regex_error(pattern, &error));
        errors.push(FieldError::invalid(at, pattern, detail));
    }
    let expressions = &policy.resources_expr;
    let at = format!("{path}.resourcesExpr");
    if expressions.limits.is_none() && expressions.requests.is_none() {
        let shown = "v1beta1.ResourcesExpr{Limits:(*v1beta1.ResourceExprLimits)(nil), \
                     Requests:(*v1beta1.ResourceExprRequests)(nil)}";
        let detail = "at least one of limits or requests must be configured";
        errors.push(FieldError::invalid_shown(at, shown, detail));
        return;
    }
    for (kind, expressions) in [
        ("limits", &expressions.limits),
        ("requests", &expressions.requests),
    ] {
        if let Some(expressions) = expressions {
            errors.extend(expression_errors(&format!("{at}.{kind}"), expressions));
        }
    }
}

/// The errors of expressions: each is tried with its variable as the number 1.
fn expression_errors(path: &str, expressions: &ResourceExprs) -> Vec<FieldError> {
    let rows = [("cpu", &expressions.cpu), ("memory", &expressions.memory)];
    let tried = rows.into_iter().filter_map(|(resource, expression)| {
        let expression = expression.as_ref().filter(|text| !text.is_empty())?;
        let error = evaluate(expression, (resource, calculator::Value::Number(1.0))).err()?;
        let detail = format!("invalid expression: {error}");
        Some(FieldError::invalid(
            format!("{path}.{resource}"),
            expression.as_str(),
            detail,
        ))
    });
    tried.collect()
}

/// The error of a regular expression in Go's words, as far as both libraries see the same.
fn regex_error(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let kind = last.strip_prefix("error: ").unwrap_or(last);
    let words = match kind {
        "unclosed group" => format!("missing closing ): `{pattern}`"),
        "unopened group" => format!("unexpected ): `{pattern}`"),
        "unclosed character class" => format!("missing closing ]: `{pattern}`"),
        other => other.to_owned(),
    };
    format!("error parsing regexp: {words}")
}

/// A policy as Go prints it, but for the addresses behind its pointers.
fn shown(policy: &ResourcesPolicy) -> String {
    let pointer = |kind: &str, is_set: bool| match is_set {
        true => format!("(*v1beta1.{kind})(...)"),
        false => format!("(*v1beta1.{kind})(nil)"),
    };
    let expressions = &policy.resources_expr;
    format!(
        "v1beta1.ResourcesPolicy{{TargetContainersMode:{}, TargetContainersNameRegex:{}, \
         ResourcesExpr:v1beta1.ResourcesExpr{{Limits:{}, Requests:{}}}}}",
        go_quote(&policy.target_containers_mode),
        go_quote(policy.target_containers_name_regex.as_deref().unwrap_or_default()),
        pointer("ResourceExprLimits", expressions.limits.is_some()),
        pointer("ResourceExprRequests", expressions.requests.is_some()),
    )
}
