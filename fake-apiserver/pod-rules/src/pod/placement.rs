//! Where a pod may run: affinity, tolerations, spreading.

use std::collections::BTreeSet;

use shared_json::{Name, Value};

use crate::errors::Errors;
use crate::fields::Fields;
use crate::names;
use crate::path::Path;
use crate::selectors;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(affinity) = spec.part("affinity") else {
        return;
    };
    let path = path.field("affinity");
    if let Some(nodes) = affinity.part("nodeAffinity") {
        let path = path.field("nodeAffinity");
        if let Some(selector) = nodes.part(REQUIRED) {
            selectors::node_selector(selector, &path.field(REQUIRED), errors);
        }
        let terms = path.field(PREFERRED);
        for (index, term) in nodes.list(PREFERRED).iter().enumerate() {
            let at = terms.index(index);
            weight(term, &at, errors);
            if let Some(preference) = term.part("preference") {
                selectors::node_term(preference, false, &at.field("preference"), errors);
            }
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.part(field) else {
            continue;
        };
        let path = path.field(field);
        let terms = path.field(REQUIRED);
        for (index, term) in pods.list(REQUIRED).iter().enumerate() {
            pod_term(term, &terms.index(index), errors);
        }
        let terms = path.field(PREFERRED);
        for (index, term) in pods.list(PREFERRED).iter().enumerate() {
            let at = terms.index(index);
            weight(term, &at, errors);
            let term = term.part("podAffinityTerm").unwrap_or(&crate::fields::NOTHING);
            pod_term(term, &at.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = term.int("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selectors::selector(term.part(field), &path.field(field), errors);
    }
    for name in term.texts("namespaces") {
        errors.problems(&path.field("namespace"), name, names::label_problems(name));
    }
    label_keys(
        &term.texts("matchLabelKeys").collect::<Vec<_>>(),
        &term.texts("mismatchLabelKeys").collect::<Vec<_>>(),
        term.part("labelSelector"),
        path,
        errors,
    );
    let key = term.text("topologyKey");
    let at = path.field("topologyKey");
    if key.is_empty() {
        errors.required(&at, "can not be empty");
    }
    errors.problems(&at, key, names::qualified_problems(key));
}

/// Keys whose values are those of the pod itself, and which must be no others than the selector's.
fn label_keys(
    matching: &[&str],
    differing: &[&str],
    selector: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for (field, keys) in [("matchLabelKeys", matching), ("mismatchLabelKeys", differing)] {
        let at = path.field(field);
        if !keys.is_empty() && selector.is_none() {
            errors.forbidden(&at, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            errors.problems(&at.index(index), key, names::qualified_problems(key));
        }
    }
    if let Some(selector) = selector {
        let mut known: BTreeSet<&str> = selector.map("matchLabels").keys().map(Name::as_str).collect();
        for expression in selector.list("matchExpressions") {
            let key = expression.text("key");
            if let Some(index) = matching.iter().rposition(|other| *other == key)
                && known.contains(key)
            {
                errors.invalid(
                    &path.index(index),
                    key,
                    "exists in both matchLabelKeys and labelSelector",
                );
            }
            known.insert(key);
        }
    }
    let at = path.field("matchLabelKeys");
    for (index, key) in matching.iter().enumerate() {
        if differing.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&at.index(index), *key, detail);
        }
    }
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The tolerations of a pod.
pub fn tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = path.index(index);
        let (key, operator) = (toleration.text("key"), toleration.text("operator"));
        let (value, effect) = (toleration.text("value"), toleration.text("effect"));
        let operator_path = at.field("operator");
        if !key.is_empty() {
            errors.problems(&at.field("key"), key, names::qualified_problems(key));
        }
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator_path, operator, detail);
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&at.field("effect"), effect, detail);
        }
        match operator {
            "Equal" | "" => {
                let problems = names::label_value_problems(value);
                if !problems.is_empty() {
                    errors.invalid(&operator_path, value, problems.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.invalid(&operator_path, value, detail);
                }
            }
            "Lt" | "Gt" => {
                errors.not_supported(&operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]);
            }
            other => errors.not_supported(&operator_path, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of_or_empty(&at.field("effect"), effect, &EFFECTS);
        }
    }
}

/// The taints of a node.
pub fn taints(taints: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = path.index(index);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        errors.problems(&at.field("key"), key, names::qualified_problems(key));
        let problems = names::label_value_problems(value);
        if !problems.is_empty() {
            errors.invalid(&at.field("value"), value, problems.join(";"));
        }
        errors.one_of(&at.field("effect"), effect, &EFFECTS);
        if !seen.insert((effect, key)) {
            let shown = crate::go::text("core.Taint", Some(taint));
            errors.duplicate_shown(&at, shown, "taints must be unique by key and effect pair");
        }
    }
}

pub(super) fn spread(constraints: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, constraint) in constraints.iter().enumerate() {
        let at = path.index(index);
        let skew = constraint.int("maxSkew").unwrap_or_default();
        if skew <= 0 {
            errors.invalid(&at.field("maxSkew"), skew, "must be greater than zero");
        }
        let (key, action) = (
            constraint.text("topologyKey"),
            constraint.text("whenUnsatisfiable"),
        );
        if key.is_empty() {
            errors.required(&at.field("topologyKey"), "can not be empty");
        }
        errors.one_of_or_empty(
            &at.field("whenUnsatisfiable"),
            action,
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        let repeated = constraints
            .iter()
            .skip(index + 1)
            .any(|other| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action);
        if repeated {
            errors.duplicate(
                &at.field("{topologyKey, whenUnsatisfiable}"),
                format!("{{{key}, {action}}}"),
            );
        }
        if let Some(domains) = constraint.int("minDomains") {
            let at = at.field("minDomains");
            if domains <= 0 {
                errors.invalid(&at, domains, "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&at, domains, detail);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint.text_if_set(field) {
                errors.one_of_or_empty(&at.field(field), policy, &["Honor", "Ignore"]);
            }
        }
        let keys: Vec<&str> = constraint.texts("matchLabelKeys").collect();
        label_keys(&keys, &[], constraint.part("labelSelector"), &at, errors);
        selectors::selector(
            constraint.part("labelSelector"),
            &at.field("labelSelector"),
            errors,
        );
    }
}
