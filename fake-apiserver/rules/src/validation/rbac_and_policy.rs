//! Kinds with few fields: RBAC, disruption budgets, priority classes, leases, runtime classes, scales.

use pod_rules::names;
use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING};
use super::path::Path;
use super::{amounts, apps, go, immutable, pod, selectors};

const RBAC: &str = "rbac.authorization.k8s.io";

fn rules(object: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::new("rules");
    for (index, rule) in object.list("rules").iter().enumerate() {
        let at = path.index(index);
        if rule.list("verbs").is_empty() {
            errors.required(&at.field("verbs"), "verbs must contain at least one value");
        }
        let urls = rule.list("nonResourceURLs");
        if !urls.is_empty() {
            let at = at.field("nonResourceURLs");
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.invalid(&at, urls.to_vec(), detail);
            }
            let both = ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|field| !rule.list(field).is_empty());
            if both {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.invalid(&at, urls.to_vec(), detail);
            }
            continue;
        }
        if rule.list("apiGroups").is_empty() {
            errors.required(
                &at.field("apiGroups"),
                "resource rules must supply at least one api group",
            );
        }
        if rule.list("resources").is_empty() {
            errors.required(
                &at.field("resources"),
                "resource rules must supply at least one resource",
            );
        }
    }
}

/// A Role.
pub(super) fn role(object: &Value, errors: &mut Errors) {
    rules(object, true, errors);
}

/// A ClusterRole.
pub(super) fn cluster_role(object: &Value, errors: &mut Errors) {
    rules(object, false, errors);
    let Some(aggregation) = object.part("aggregationRule") else {
        return;
    };
    let path = Path::new("aggregationRule.clusterRoleSelectors");
    let list = aggregation.list("clusterRoleSelectors");
    if list.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&path, detail);
    }
    for (index, selector) in list.iter().enumerate() {
        selectors::selector(Some(selector), &path.index(index), errors);
        if !selectors::is_usable(selector) {
            errors.invalid(&path.index(index), Value::Null, "invalid label selector.");
        }
    }
}

fn binding(object: &Value, namespaced: bool, errors: &mut Errors) {
    let reference = object.part("roleRef").unwrap_or(&NOTHING);
    let path = Path::new("roleRef");
    errors.one_of_or_empty(&path.field("apiGroup"), reference.text("apiGroup"), &[RBAC]);
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    errors.one_of_or_empty(&path.field("kind"), reference.text("kind"), kinds);
    let name = reference.text("name");
    if name.is_empty() {
        errors.required(&path.field("name"), "");
    } else {
        errors.problems(&path.field("name"), name, names::path_segment_problems(name));
    }
    let path = Path::new("subjects");
    for (index, subject) in object.list("subjects").iter().enumerate() {
        let at = path.index(index);
        let (name, group) = (subject.text("name"), subject.text("apiGroup"));
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        }
        match subject.text("kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    errors.problems(&at.field("name"), name, names::subdomain_problems(name));
                }
                if !group.is_empty() {
                    errors.not_supported(&at.field("apiGroup"), group, &[""]);
                }
                if !namespaced && subject.text("namespace").is_empty() {
                    errors.required(&at.field("namespace"), "");
                }
            }
            "User" | "Group" => errors.one_of_or_empty(&at.field("apiGroup"), group, &[RBAC]),
            other => errors.not_supported(&at.field("kind"), other, &["ServiceAccount", "User", "Group"]),
        }
    }
}

/// A RoleBinding.
pub(super) fn role_binding(object: &Value, errors: &mut Errors) {
    binding(object, true, errors);
}

/// A ClusterRoleBinding.
pub(super) fn cluster_role_binding(object: &Value, errors: &mut Errors) {
    binding(object, false, errors);
}

/// A role that is bound stays bound.
pub(super) fn binding_stays(new: &Value, old: &Value, errors: &mut Errors) {
    let reference = new.part("roleRef");
    if reference != old.part("roleRef") {
        let shown = go::text("rbac.RoleRef", reference);
        errors.invalid_shown(&Path::new("roleRef"), shown, "cannot change roleRef");
    }
}

/// A PodDisruptionBudget.
pub(super) fn budget(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let (least, most) = (spec.part("minAvailable"), spec.part("maxUnavailable"));
    if least.is_some() && most.is_some() {
        let shown = go::text("policy.PodDisruptionBudgetSpec", Some(spec));
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.invalid_shown(&path, shown, detail);
    }
    for (field, value) in [("minAvailable", least), ("maxUnavailable", most)] {
        if value.is_some() {
            apps::int_or_percent(value, &path.field(field), errors);
            apps::at_most_all(value, &path.field(field), errors);
        }
    }
    selectors::selector(spec.part("selector"), &path.field("selector"), errors);
    if let Some(policy) = spec.text_if_set("unhealthyPodEvictionPolicy") {
        errors.one_of_or_empty(
            &path.field("unhealthyPodEvictionPolicy"),
            policy,
            &["AlwaysAllow", "IfHealthyBudget"],
        );
    }
}

/// A changed status of a PodDisruptionBudget.
pub(super) fn budget_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = new.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status");
    conditions(status, &path.field("conditions"), errors);
    for field in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        errors.not_negative(&path.field(field), status.int(field));
    }
}

const REASON_TEXT: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
    alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  \
    or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
    '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Conditions of the common form.
pub(super) fn conditions(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut known = std::collections::BTreeSet::new();
    for (index, condition) in status.list("conditions").iter().enumerate() {
        let at = path.index(index);
        let kind = condition.text("type");
        if !known.insert(kind) {
            errors.duplicate(&at.field("type"), kind);
        }
        errors.problems(&at.field("type"), kind, names::qualified_problems(kind));
        errors.one_of_or_empty(
            &at.field("status"),
            condition.text("status"),
            &["False", "True", "Unknown"],
        );
        if let Some(generation) = condition.int("observedGeneration").filter(|n| *n < 0) {
            let detail = "must be greater than or equal to zero";
            errors.invalid(&at.field("observedGeneration"), generation, detail);
        }
        if !condition.has("lastTransitionTime") {
            errors.required(&at.field("lastTransitionTime"), "");
        }
        let reason = condition.text("reason");
        if reason.is_empty() {
            errors.required(&at.field("reason"), "");
        } else {
            let first = reason.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
            let last = reason
                .bytes()
                .last()
                .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
            let inner = reason
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':'));
            if !(first && last && inner) {
                errors.invalid(&at.field("reason"), reason, REASON_TEXT);
            }
            if reason.len() > 1024 {
                errors.too_long(&at.field("reason"), 1024);
            }
        }
        if condition.text("message").len() > 32 * 1024 {
            errors.too_long(&at.field("message"), 32 * 1024);
        }
    }
}

const USER_PRIORITY_MOST: i64 = 1_000_000_000;

/// A PriorityClass.
pub(super) fn priority_class(object: &Value, errors: &mut Errors) {
    let name = object.part("metadata").map_or("", |meta| meta.text("name"));
    let value = object.int("value").unwrap_or_default();
    if name.starts_with("system-") {
        let known = match name {
            "system-node-critical" => Some(2_000_001_000),
            "system-cluster-critical" => Some(2_000_000_000),
            _ => None,
        };
        let trouble = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some(known) if known != value => Some(format!("value of {name} PriorityClass must be {known}")),
            Some(_) if object.is_true("globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(trouble) = trouble {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {trouble}"
            );
            errors.forbidden(&Path::new("metadata.name"), &detail);
        }
    } else if value > USER_PRIORITY_MOST {
        let detail = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MOST}");
        errors.forbidden(&Path::new("value"), &detail);
    }
    if let Some(policy) = object.text_if_set("preemptionPolicy") {
        errors.one_of(
            &Path::new("preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }
}

/// A changed PriorityClass.
pub(super) fn priority_class_update(new: &Value, old: &Value, errors: &mut Errors) {
    if new.int("value") != old.int("value") {
        errors.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    immutable(
        new,
        old,
        "/preemptionPolicy",
        &Path::new("preemptionPolicy"),
        errors,
    );
}

/// A Lease.
pub(super) fn lease(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|n| *n <= 0) {
        errors.invalid(
            &path.field("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    errors.not_negative(&path.field("leaseTransitions"), spec.int("leaseTransitions"));
    let strategy = spec.text_if_set("strategy");
    if let Some(strategy) = strategy {
        let at = path.field("strategy.strategy");
        if strategy.contains('/') {
            errors.problems(&at, strategy, names::qualified_problems(strategy));
        } else {
            errors.one_of_or_empty(&at, strategy, &["OldestEmulationVersion"]);
        }
    }
    if !spec.text("preferredHolder").is_empty() && strategy.is_none_or(str::is_empty) {
        errors.forbidden(
            &path.field("preferredHolder"),
            "may only be specified if `strategy` is defined",
        );
    }
}

/// A changed Lease.
pub(super) fn lease_update(new: &Value, _old: &Value, errors: &mut Errors) {
    lease(new, errors);
}

/// A RuntimeClass.
pub(super) fn runtime_class(object: &Value, errors: &mut Errors) {
    let handler = object.text("handler");
    let path = Path::new("handler");
    if handler.is_empty() {
        errors.required(&path, "");
    } else {
        errors.problems(&path, handler, names::label_problems(handler));
    }
    if let Some(overhead) = object.part("overhead") {
        let none = shared_json::Map::new();
        amounts::requirements(
            &none,
            overhead.map("podFixed"),
            amounts::container_resource_name,
            &Path::new("overhead"),
            errors,
        );
    }
    if let Some(scheduling) = object.part("scheduling") {
        let path = Path::new("scheduling");
        selectors::labels(
            scheduling.map("nodeSelector"),
            &path.field("nodeSelector"),
            errors,
        );
        let list = scheduling.list("tolerations");
        let at = path.field("tolerations");
        pod::tolerations(list, &at, errors);
        let key = |toleration: &Value| go::only(toleration, &["key", "operator", "value", "effect"]);
        for (index, toleration) in list.iter().enumerate() {
            if list.iter().take(index).any(|other| key(other) == key(toleration)) {
                let shown = go::text("core.Toleration", Some(toleration));
                errors.duplicate_shown(&at.index(index), shown, "");
            }
        }
    }
}

/// A changed RuntimeClass.
pub(super) fn runtime_class_update(new: &Value, old: &Value, errors: &mut Errors) {
    runtime_class(new, errors);
    if new.text("handler") != old.text("handler") {
        errors.invalid(&Path::new("handler"), new.text("handler"), IMMUTABLE);
    }
}
