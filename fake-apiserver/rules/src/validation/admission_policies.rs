//! Policies of admission, those that refuse and those that change, and their bindings.

use std::collections::BTreeSet;

use machinery::cel::policies::{Names, Wanted};
use pod_rules::field_error::FieldError;
use pod_rules::names;
use shared_json::Value;

use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::go;
use super::path::Path;
use super::registrations::{
    self, FAILURE, MATCH, MUTATING_OPERATIONS, REINVOCATION, expression_of, match_conditions,
};
use super::selectors;

const AUDIT_ANNOTATIONS_MAX: usize = 20;

fn param_kind(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(kind) = spec.part("paramKind") else {
        return;
    };
    let path = path.field("paramKind");
    let (version, name) = (kind.text("apiVersion"), kind.text("kind"));
    let at = path.field("apiVersion");
    if version.is_empty() {
        errors.required(&at, "");
    } else if version.matches('/').count() > 1 {
        errors.invalid(&at, version, format!("unexpected GroupVersion string: {version}"));
    } else {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        if !group.is_empty() {
            let problems = names::subdomain_problems(group);
            if !problems.is_empty() {
                errors.invalid(&at, group, problems.join(","));
            }
        }
        let problems = names::old_label_problems(version);
        if !problems.is_empty() {
            errors.invalid(&at, version, problems.join(","));
        }
    }
    let at = path.field("kind");
    if name.is_empty() {
        errors.required(&at, "");
    } else {
        let problems = names::old_label_problems(&name.to_lowercase());
        if !problems.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                problems.join(",")
            );
            errors.invalid(&at, name, detail);
        }
    }
}

fn match_resources(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = resources.text_if_set("matchPolicy");
    errors.one_of_if_set(&path.field("matchPolicy"), policy, &MATCH);
    for field in ["namespaceSelector", "objectSelector"] {
        match resources.part(field) {
            None => errors.required(&path.field(field), ""),
            selector => selectors::selector(selector, &path.field(field), errors),
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let list = path.field(field);
        for (index, rule) in resources.list(field).iter().enumerate() {
            let at = list.index(index);
            let names_path = at.field("resourceNames");
            let mut known = BTreeSet::new();
            for (index, name) in rule.texts("resourceNames").enumerate() {
                let at = names_path.index(index);
                errors.problems(&at, name, names::path_segment_problems(name));
                if !known.insert(name) {
                    errors.duplicate(&at, name);
                }
            }
            registrations::rule(rule, &at, errors);
        }
    }
}

/// The part that validating and mutating policies share, which comes before their own.
fn policy_head(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    // One that is said to be nothing is none of those that there are.
    match spec.text_if_set("failurePolicy") {
        None => errors.required(&path.field("failurePolicy"), ""),
        Some(given) => errors.one_of_or_empty(&path.field("failurePolicy"), given, &FAILURE),
    }
    param_kind(spec, path, errors);
    let at = path.field("matchConstraints");
    match spec.part("matchConstraints") {
        None => errors.required(&at, ""),
        Some(resources) => {
            match_resources(resources, &at, errors);
            if resources.list("resourceRules").is_empty() {
                errors.required(&at.field("resourceRules"), "");
            }
        }
    }
}

/// The variables of a policy, each of which may use those before it.
fn variables(spec: &Value, cel_names: &mut Names, path: &Path<'_>, errors: &mut Errors) {
    let list = path.field("variables");
    if spec.has("variables") {
        cel_names.begin_variables();
    }
    for (index, variable) in spec.list("variables").iter().enumerate() {
        let at = list.index(index);
        let name = variable.text("name");
        if name.trim().is_empty() {
            errors.required(&at.field("name"), "name is not specified");
        } else if !is_identifier(name) {
            errors.invalid(&at.field("name"), name, "must be a valid CEL identifier");
        }
        let expression = variable.text("expression");
        expression_of(
            (expression, Wanted::Anything, cel_names),
            "expression is not specified",
            &at.field("expression"),
            errors,
        );
        cel_names.declare(name, expression);
    }
}

fn is_identifier(name: &str) -> bool {
    let first = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !machinery::cel::values::is_reserved(name)
}

/// A ValidatingAdmissionPolicy.
pub(super) fn validating_policy(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    policy_head(spec, &path, errors);
    let mut cel_names = Names::of_policy(spec.has("paramKind"));
    match_conditions(spec, &cel_names, &path.field("matchConditions"), errors);
    variables(spec, &mut cel_names, &path, errors);
    let (validations, audits) = (spec.list("validations"), spec.list("auditAnnotations"));
    let (validations_path, audits_path) = (path.field("validations"), path.field("auditAnnotations"));
    if validations.is_empty() && audits.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.required(&validations_path, detail);
        return errors.required(&audits_path, detail);
    }
    if audits.len() > AUDIT_ANNOTATIONS_MAX {
        let shown: Vec<String> = audits
            .iter()
            .map(|audit| {
                let text = |field: &str| go::json(&Value::from(audit.text(field)));
                format!(
                    "{{\"Key\":{},\"ValueExpression\":{}}}",
                    text("key"),
                    text("valueExpression")
                )
            })
            .collect();
        errors.push(FieldError {
            shown: Some(format!("[{}]", shown.join(","))),
            ..FieldError::invalid(
                audits_path.to_string(),
                Value::Null,
                format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations"),
            )
        });
    }
    for (index, validation) in validations.iter().enumerate() {
        validation_of(validation, &cel_names, &validations_path.index(index), errors);
    }
    let name = object.part("metadata").map_or("", |meta| meta.text("name"));
    let mut known = BTreeSet::new();
    for (index, audit) in audits.iter().enumerate() {
        let at = audits_path.index(index);
        let key = audit.text("key");
        let full = format!("{name}/{key}");
        errors.problems(&at.field("key"), &full, names::qualified_problems(&full));
        expression_of(
            (audit.text("valueExpression"), Wanted::TextOrNull, &cel_names),
            "valueExpression is not specified",
            &at.field("valueExpression"),
            errors,
        );
        if !known.insert(key) {
            errors.duplicate(&at.field("key"), key);
        }
    }
}

fn validation_of(validation: &Value, cel_names: &Names, path: &Path<'_>, errors: &mut Errors) {
    expression_of(
        (validation.text("expression"), Wanted::Bool, cel_names),
        "expression is not specified",
        &path.field("expression"),
        errors,
    );
    const NOT_EMPTY: &str = "must be non-empty if specified";
    let expression = validation.text("messageExpression");
    if !expression.is_empty() {
        let at = path.field("messageExpression");
        if expression.trim().is_empty() {
            errors.invalid(&at, expression, NOT_EMPTY);
        } else {
            expression_of((expression, Wanted::Text, cel_names), "", &at, errors);
        }
    }
    let message = validation.text("message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&path.field("message"), message, NOT_EMPTY);
    } else if message.trim().contains('\n') {
        errors.invalid(&path.field("message"), message, "must not contain line breaks");
    }
    if let Some(reason) = validation.text_if_set("reason") {
        errors.one_of_or_empty(
            &path.field("reason"),
            reason,
            &["Forbidden", "Invalid", "RequestEntityTooLarge"],
        );
    }
}

/// A changed ValidatingAdmissionPolicy.
pub(super) fn validating_policy_update(new: &Value, _old: &Value, errors: &mut Errors) {
    validating_policy(new, errors);
}

/// A MutatingAdmissionPolicy.
pub(super) fn mutating_policy(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    policy_head(spec, &path, errors);
    mutating_operations(
        spec.part("matchConstraints"),
        &path.field("matchConstraints"),
        errors,
    );
    let mut cel_names = Names::of_policy(spec.has("paramKind"));
    match_conditions(spec, &cel_names, &path.field("matchConditions"), errors);
    cel_names.begin_variables();
    variables(spec, &mut cel_names, &path, errors);
    let list = path.field("mutations");
    if spec.list("mutations").is_empty() {
        errors.required(&list, "mutations must contain at least one item");
    }
    for (index, mutation) in spec.list("mutations").iter().enumerate() {
        let at = list.index(index);
        let kind = mutation.text("patchType");
        let (own, other) = match kind {
            "" => {
                errors.required(&at.field("patchType"), "");
                continue;
            }
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            kind => {
                errors.not_supported(&at.field("patchType"), kind, &["ApplyConfiguration", "JSONPatch"]);
                continue;
            }
        };
        match mutation.part(own) {
            None => {
                let detail = format!("must be specified when patchType is {kind}");
                errors.required(&at.field(own), &detail);
            }
            Some(part) => {
                let at = at.field(own);
                let wanted = if kind == "JSONPatch" {
                    Wanted::Patches
                } else {
                    Wanted::Object
                };
                let read = (part.text("expression"), wanted, &cel_names);
                expression_of(read, "", &at.field("expression"), errors);
            }
        }
        if mutation.has(other) {
            let detail = format!("must not be specified when patchType is {kind}");
            errors.invalid(&at.field(other), format!("{{{other}}}"), detail);
        }
    }
    errors.one_of(
        &path.field("reinvocationPolicy"),
        spec.text("reinvocationPolicy"),
        &REINVOCATION,
    );
}

/// A changed MutatingAdmissionPolicy.
pub(super) fn mutating_policy_update(new: &Value, _old: &Value, errors: &mut Errors) {
    mutating_policy(new, errors);
}

fn mutating_operations(resources: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let rules = resources.map_or(&[][..], |resources| resources.list("resourceRules"));
    for operation in rules.iter().flat_map(|rule| rule.texts("operations")) {
        errors.one_of_or_empty(
            &path.field("resourceRules.operations"),
            operation,
            &MUTATING_OPERATIONS,
        );
    }
}

fn binding(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = spec.text("policyName");
    if name.is_empty() {
        errors.required(&path.field("policyName"), "");
    } else {
        errors.problems(&path.field("policyName"), name, names::subdomain_problems(name));
    }
    if let Some(reference) = spec.part("paramRef") {
        let path = path.field("paramRef");
        let name = reference.text("name");
        let selector = reference.part("selector");
        const EXCLUSIVE: &str = "name and selector are mutually exclusive";
        if !name.is_empty() {
            errors.problems(&path.field("name"), name, names::path_segment_problems(name));
            if selector.is_some() {
                errors.forbidden(&path.field("name"), EXCLUSIVE);
            }
        }
        if selector.is_some() {
            selectors::selector(selector, &path.field("selector"), errors);
            if !name.is_empty() {
                errors.forbidden(&path.field("selector"), EXCLUSIVE);
            }
        }
        if name.is_empty() && selector.is_none() {
            errors.required(&path, "one of name or selector must be specified");
        }
        errors.one_of(
            &path.field("parameterNotFoundAction"),
            reference.text("parameterNotFoundAction"),
            &["Deny", "Allow"],
        );
    }
    if let Some(resources) = spec.part("matchResources") {
        match_resources(resources, &path.field("matchResources"), errors);
    }
}

/// A ValidatingAdmissionPolicyBinding.
pub(super) fn validating_binding(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    binding(spec, &path, errors);
    let at = path.field("validationActions");
    let mut seen = BTreeSet::new();
    for (index, action) in spec.texts("validationActions").enumerate() {
        errors.one_of_or_empty(&at.index(index), action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(action) {
            errors.duplicate(&at.index(index), action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.invalid(&at, spec.list("validationActions").to_vec(), detail);
    }
    if seen.is_empty() {
        errors.required(&at, "at least one validation action is required");
    }
}

/// A changed ValidatingAdmissionPolicyBinding.
pub(super) fn validating_binding_update(new: &Value, _old: &Value, errors: &mut Errors) {
    validating_binding(new, errors);
}

/// A MutatingAdmissionPolicyBinding.
pub(super) fn mutating_binding(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    binding(spec, &path, errors);
    mutating_operations(spec.part("matchResources"), &path.field("matchResources"), errors);
}

/// A changed MutatingAdmissionPolicyBinding.
pub(super) fn mutating_binding_update(new: &Value, _old: &Value, errors: &mut Errors) {
    mutating_binding(new, errors);
}
