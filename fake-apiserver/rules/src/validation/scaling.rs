//! HorizontalPodAutoscalers.

use machinery::types::Quantity;
use pod_rules::names;
use shared_json::Value;

use super::amounts;
use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;

const WINDOW_MOST: i64 = 3600;
const PERIOD_MOST: i64 = 1800;
const SOURCES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// An autoscaler, in either version.
pub(super) fn autoscaler(object: &Value, errors: &mut Errors) {
    judge(object, None, errors);
}

fn judge(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let before = old.and_then(|old| old.pointer("/spec/scaleTargetRef"));
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let least = spec.int("minReplicas");
    let most = spec.int("maxReplicas").unwrap_or_default();
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.invalid(
            &path.field("minReplicas"),
            least,
            "must be greater than or equal to 1",
        );
    }
    let at = path.field("maxReplicas");
    if most == 0 {
        errors.required(&at, "must be set and greater than 0");
    } else if most < 0 {
        errors.invalid(&at, most, "must be greater than or equal to 1");
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid(&at, most, "must be greater than or equal to `minReplicas`");
    }
    let target = spec.part("scaleTargetRef").unwrap_or(&NOTHING);
    let same = |field: &str| before.is_some_and(|before| before.text(field) == target.text(field));
    let version = if same("apiVersion") && same("kind") {
        Version::LetBe
    } else if target.text("kind") == "ReplicationController" {
        Version::OfAnyGroup
    } else {
        Version::OfAGroup
    };
    reference(target, version, &path.field("scaleTargetRef"), errors);
    let list = path.field("metrics");
    let metrics = spec.list("metrics");
    for (index, metric) in metrics.iter().enumerate() {
        self::metric(metric, &list.index(index), errors);
    }
    if least == Some(0)
        && !metrics
            .iter()
            .any(|metric| matches!(metric.text("type"), "Object" | "External"))
    {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&list, detail);
    }
    if let Some(share) = spec
        .int("targetCPUUtilizationPercentage")
        .filter(|share| *share < 1)
    {
        // The old version is one metric of the new one.
        let at = path.field("metrics");
        errors.invalid(
            &at.index(0).field("resource.target.averageUtilization"),
            share,
            "must be greater than 0",
        );
    }
    if let Some(behavior) = spec.part("behavior") {
        let path = path.field("behavior");
        for field in ["scaleUp", "scaleDown"] {
            if let Some(rules) = behavior.part(field) {
                scaling(rules, &path.field(field), errors);
            }
        }
    }
}

/// A changed autoscaler.
pub(super) fn autoscaler_update(new: &Value, old: &Value, errors: &mut Errors) {
    judge(new, Some(old), errors);
}

/// A changed status of an autoscaler.
pub(super) fn autoscaler_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = new.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status");
    for field in ["currentReplicas", "desiredReplicas"] {
        errors.not_negative(&path.field(field), status.int(field));
    }
}

/// The rule for the version of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// It was there before.
    LetBe,
    /// It may be that of the group without a name.
    OfAnyGroup,
    OfAGroup,
}

fn reference(target: &Value, needed: Version, path: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let text = target.text(field);
        if text.is_empty() {
            errors.required(&path.field(field), "");
        } else {
            errors.problems(&path.field(field), text, names::path_segment_problems(text));
        }
    }
    let version = target.text("apiVersion");
    if needed == Version::LetBe {
        return;
    }
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let slashes = version.matches('/').count();
    if group.is_empty() && slashes < 2 && needed == Version::OfAGroup {
        let detail = "apiVersion must specify API group";
        errors.invalid(&path.field("apiVersion"), version, detail);
    } else if slashes > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.invalid(&path.field("apiVersion"), version, detail);
    }
}

fn scaling(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(window) = rules.int("stabilizationWindowSeconds") {
        let at = path.field("stabilizationWindowSeconds");
        if window < 0 {
            errors.invalid(&at, window, "must be greater than or equal to zero");
        }
        if window > WINDOW_MOST {
            let detail = format!("must be less than or equal to {WINDOW_MOST}");
            errors.invalid(&at, window, detail);
        }
    }
    if let Some(policy) = rules.text_if_set("selectPolicy") {
        errors.one_of_or_empty(&path.field("selectPolicy"), policy, &["Disabled", "Max", "Min"]);
    }
    let list = path.field("policies");
    if rules.list("policies").is_empty() {
        errors.required(&list, "must specify at least one Policy");
    }
    for (index, policy) in rules.list("policies").iter().enumerate() {
        let at = list.index(index);
        errors.one_of_or_empty(&at.field("type"), policy.text("type"), &["Percent", "Pods"]);
        let (value, period) = (
            policy.int("value").unwrap_or_default(),
            policy.int("periodSeconds").unwrap_or_default(),
        );
        if value <= 0 {
            errors.invalid(&at.field("value"), value, "must be greater than zero");
        }
        let at = at.field("periodSeconds");
        if period <= 0 {
            errors.invalid(&at, period, "must be greater than zero");
        }
        if period > PERIOD_MOST {
            let detail = format!("must be less than or equal to {PERIOD_MOST}");
            errors.invalid(&at, period, detail);
        }
    }
    if let Some(tolerance) = rules.part("tolerance") {
        amounts::not_negative(&path.field("tolerance"), tolerance, errors);
    }
}

fn metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = metric.text("type");
    let kind_path = path.field("type");
    if kind.is_empty() {
        errors.required(&kind_path, "must specify a metric source type");
    }
    errors.one_of_or_empty(&kind_path, kind, &SOURCES);
    let mut present = Vec::new();
    for (field, judge) in [
        ("object", object as fn(&Value, &Path<'_>, &mut Errors)),
        ("external", external),
        ("pods", pods),
        ("resource", resource),
        ("containerResource", container_resource),
    ] {
        let Some(source) = metric.part(field) else {
            continue;
        };
        present.push(field);
        if present.len() == 1 {
            judge(source, &path.field(field), errors);
        }
    }
    let expected = match kind {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if expected.is_empty() {
        errors.not_supported(&kind_path, kind, &SOURCES);
    } else if !metric.has(expected) {
        let detail = "must populate information for the given metric source";
        errors.required(&path.field(expected), detail);
    }
    if present.len() != 1 {
        for field in present.into_iter().filter(|field| *field != expected) {
            errors.forbidden(&path.field(field), "must populate the given metric source only");
        }
    }
}

fn identifier(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = source.part("metric").map_or("", |metric| metric.text("name"));
    let at = path.field("metric.name");
    if name.is_empty() {
        errors.required(&at, "must specify a metric name");
    } else {
        errors.problems(&at, name, names::path_segment_problems(name));
    }
}

fn target<'a>(source: &'a Value, path: &Path<'_>, errors: &mut Errors) -> &'a Value {
    let target = source.part("target").unwrap_or(&NOTHING);
    let path = path.field("target");
    let kind = target.text("type");
    if kind.is_empty() {
        errors.required(&path.field("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&path.field("type"), kind, detail);
    }
    for field in ["value", "averageValue"] {
        if let Some(amount) = target
            .part(field)
            .filter(|amount| Quantity::of(amount).nanos() <= 0)
        {
            errors.invalid(&path.field(field), amounts::shown(amount), "must be positive");
        }
    }
    if let Some(share) = target.int("averageUtilization").filter(|share| *share < 1) {
        errors.invalid(&path.field("averageUtilization"), share, "must be greater than 0");
    }
    target
}

fn object(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let described = source.part("describedObject").unwrap_or(&NOTHING);
    reference(
        described,
        Version::OfAnyGroup,
        &path.field("describedObject"),
        errors,
    );
    identifier(source, path, errors);
    let target = target(source, path, errors);
    if !target.has("value") && !target.has("averageValue") {
        let detail = "must set either a target value or averageValue";
        errors.required(&path.field("target.averageValue"), detail);
    }
}

fn external(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    identifier(source, path, errors);
    let target = target(source, path, errors);
    match (target.has("value"), target.has("averageValue")) {
        (false, false) => errors.required(
            &path.field("target.averageValue"),
            "must set either a target value for metric or a per-pod target",
        ),
        (true, true) => errors.forbidden(
            &path.field("target.value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        _ => {}
    }
}

fn pods(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    identifier(source, path, errors);
    if !target(source, path, errors).has("averageValue") {
        let detail = "must specify a positive target averageValue";
        errors.required(&path.field("target.averageValue"), detail);
    }
}

fn resource(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if source.text("name").is_empty() {
        errors.required(&path.field("name"), "must specify a resource name");
    }
    share_or_value(source, path, errors);
}

fn container_resource(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, container) = (source.text("name"), source.text("container"));
    if name.is_empty() {
        errors.required(&path.field("name"), "must specify a resource name");
    } else {
        amounts::container_resource_name(name, &path.field("name"), errors);
    }
    if container.is_empty() {
        errors.required(&path.field("container"), "must specify a container");
    } else {
        errors.problems(
            &path.field("container"),
            container,
            names::label_problems(container),
        );
    }
    share_or_value(source, path, errors);
}

fn share_or_value(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = target(source, path, errors);
    match (target.has("averageUtilization"), target.has("averageValue")) {
        (false, false) => errors.required(
            &path.field("target.averageUtilization"),
            "must set either a target raw value or a target utilization",
        ),
        (true, true) => errors.forbidden(
            &path.field("target.averageValue"),
            "may not set both a target raw value and a target utilization",
        ),
        _ => {}
    }
}
