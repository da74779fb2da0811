//! Registrations of webhooks and policies of admission.

use std::collections::BTreeSet;

use machinery::cel::policies::{Names, Problem, Wanted};
use pod_rules::field_error::{FieldError, FieldErrorKind, go_quote};
use pod_rules::names;
use shared_json::Value;

use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;
use super::selectors;

pub(super) const FAILURE: [&str; 2] = ["Fail", "Ignore"];
pub(super) const MATCH: [&str; 2] = ["Equivalent", "Exact"];
const NO_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const ALL_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
pub(super) const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
pub(super) const REINVOCATION: [&str; 2] = ["IfNeeded", "Never"];
const URL_FORM: &str = "; desired format: https://host[/path]";

/// The errors that an older registration may keep.
struct Lenient {
    effects: bool,
    versions: bool,
    names: bool,
}

/// A registration of webhooks.
pub(super) fn webhooks(object: &Value, errors: &mut Errors) {
    let strict = Lenient {
        effects: false,
        versions: false,
        names: false,
    };
    all_webhooks(object, &strict, errors);
}

/// A changed registration of webhooks: old errors may stay.
pub(super) fn webhooks_update(new: &Value, old: &Value, errors: &mut Errors) {
    let hooks = old.list("webhooks");
    let mut seen = BTreeSet::new();
    let lenient = Lenient {
        effects: hooks
            .iter()
            .any(|hook| !NO_EFFECTS.contains(&hook.text("sideEffects"))),
        versions: hooks.iter().any(|hook| {
            !hook.list("admissionReviewVersions").is_empty()
                && !hook
                    .texts("admissionReviewVersions")
                    .any(|version| matches!(version, "v1" | "v1beta1"))
        }),
        names: !hooks.iter().all(|hook| seen.insert(hook.text("name"))),
    };
    all_webhooks(new, &lenient, errors);
}

fn all_webhooks(object: &Value, lenient: &Lenient, errors: &mut Errors) {
    let path = Path::new("webhooks");
    let mut known = BTreeSet::new();
    for (index, hook) in object.list("webhooks").iter().enumerate() {
        let at = path.index(index);
        webhook(hook, lenient, &at, errors);
        review_versions(hook, lenient, &at.field("admissionReviewVersions"), errors);
        let name = hook.text("name");
        if !lenient.names && !name.is_empty() && !known.insert(name) {
            errors.duplicate(&at.field("name"), name);
        }
    }
}

fn webhook(hook: &Value, lenient: &Lenient, path: &Path<'_>, errors: &mut Errors) {
    full_name(hook.text("name"), &path.field("name"), errors);
    let list = path.field("rules");
    for (index, rule) in hook.list("rules").iter().enumerate() {
        self::rule(rule, &list.index(index), errors);
    }
    for (field, allowed) in [("failurePolicy", &FAILURE), ("matchPolicy", &MATCH)] {
        if let Some(policy) = hook.text_if_set(field) {
            errors.one_of_or_empty(&path.field(field), policy, allowed);
        }
    }
    let allowed: &[&str] = if lenient.effects {
        &ALL_EFFECTS
    } else {
        &NO_EFFECTS
    };
    let at = path.field("sideEffects");
    match hook.text_if_set("sideEffects") {
        None => errors.required(&at, &format!("must specify one of {}", allowed.join(", "))),
        Some(effects) => errors.one_of_or_empty(&at, effects, allowed),
    }
    if let Some(seconds) = hook.int("timeoutSeconds").filter(|n| !(1..=30).contains(n)) {
        errors.invalid(
            &path.field("timeoutSeconds"),
            seconds,
            "the timeout value must be between 1 and 30 seconds",
        );
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selectors::selector(hook.part(field), &path.field(field), errors);
    }
    if let Some(policy) = hook.text_if_set("reinvocationPolicy") {
        errors.one_of_or_empty(&path.field("reinvocationPolicy"), policy, &REINVOCATION);
    }
    client_config(
        hook.part("clientConfig").unwrap_or(&NOTHING),
        &path.field("clientConfig"),
        errors,
    );
    match_conditions(hook, &Names::default(), &path.field("matchConditions"), errors);
}

/// A name of three labels at least.
fn full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    let problems = names::subdomain_problems(name);
    if !problems.is_empty() {
        return errors.invalid(path, name, problems.join(","));
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.invalid(path, name, detail);
    }
}

/// Which requests are meant.
pub(super) fn rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operations = rule.list("operations");
    let at = path.field("operations");
    if operations.is_empty() {
        errors.required(&at, "");
    }
    if operations.len() > 1 && operations.iter().any(|operation| operation == "*") {
        let detail = "if '*' is present, must not specify other operations";
        errors.invalid(&at, operations.to_vec(), detail);
    }
    for (index, operation) in rule.texts("operations").enumerate() {
        errors.one_of_or_empty(&at.index(index), operation, &OPERATIONS);
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.list(field);
        let at = path.field(field);
        if list.is_empty() {
            errors.required(&at, "");
        }
        if list.len() > 1 && list.iter().any(|entry| entry == "*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.invalid(&at, list.to_vec(), detail);
        }
        if field == "apiVersions" {
            for (index, version) in rule.texts(field).enumerate() {
                if version.is_empty() {
                    errors.required(&at.index(index), "");
                }
            }
        }
    }
    resources(rule, &path.field("resources"), errors);
    if let Some(scope) = rule.text_if_set("scope") {
        errors.one_of_or_empty(&path.field("scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

fn resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list("resources");
    if list.is_empty() {
        errors.required(path, "");
    }
    let (mut whole, mut subs) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, text) in rule.texts("resources").enumerate() {
        let at = path.index(index);
        if text.is_empty() {
            errors.required(&at, "");
            continue;
        }
        let Some((resource, sub)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if whole.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.invalid(&at, text, detail);
        }
        if subs.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {text}");
            errors.invalid(&at, text, detail);
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            subs.insert(sub);
        }
    }
    let has = |wanted: &str| rule.texts("resources").any(|text| text == wanted);
    if list.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(path, list.to_vec(), detail);
    }
    if has("*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, list.to_vec(), detail);
    }
}

fn review_versions(hook: &Value, lenient: &Lenient, path: &Path<'_>, errors: &mut Errors) {
    let versions = hook.list("admissionReviewVersions");
    if versions.is_empty() {
        return errors.required(path, "must specify one of v1, v1beta1");
    }
    let mut seen = BTreeSet::new();
    let mut accepted = false;
    for (index, version) in hook.texts("admissionReviewVersions").enumerate() {
        if !seen.insert(version) {
            errors.invalid(&path.index(index), version, "duplicate version");
            continue;
        }
        errors.problems(&path.index(index), version, names::old_label_problems(version));
        accepted |= matches!(version, "v1" | "v1beta1");
    }
    if !accepted && !lenient.versions {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid(path, versions.to_vec(), detail);
    }
}

/// Where a webhook is: at a URL or behind a service.
pub(super) fn client_config(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (config.text_if_set("url"), config.part("service")) {
        (Some(url), None) => webhook_url(url, &path.field("url"), errors),
        (None, Some(service)) => webhook_service(service, &path.field("service"), errors),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

/// Where a webhook is reached.
fn service_port(port: i64, path: &Path<'_>, errors: &mut Errors) {
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(path, port, detail);
    }
}

/// The first part of a text that looks like an escaped byte and is none.
fn bad_escape(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let part = rest.get(at..)?;
        let digits = part.get(1..3).unwrap_or_default();
        if digits.len() < 2 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(part.get(..3).unwrap_or(part));
        }
        rest = part.get(3..)?;
    }
    None
}

pub(super) fn webhook_url(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(bad) = bad_escape(text) {
        let parsed = go_quote(text);
        let detail = format!(
            "url must be a valid URL: parse {parsed}: invalid URL escape {}{URL_FORM}",
            go_quote(bad)
        );
        return errors.required(path, &detail);
    }
    if text.starts_with(':') {
        let parsed = go_quote(text);
        let detail = format!("url must be a valid URL: parse {parsed}: missing protocol scheme{URL_FORM}");
        return errors.required(path, &detail);
    }
    let (scheme, rest) = text
        .split_once("://")
        .map_or(("", text), |(scheme, rest)| (scheme, rest));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.invalid(path, scheme, detail);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let authority = if scheme.is_empty() { "" } else { authority };
    let (user, host) = authority
        .rsplit_once('@')
        .map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        errors.invalid(path, "", format!("host must be specified{URL_FORM}"));
    }
    if let Some(user) = user {
        errors.invalid(path, user, "user information is not permitted in the URL");
    }
    let (before, fragment) = rest
        .split_once('#')
        .map_or((rest, ""), |(before, fragment)| (before, fragment));
    if !fragment.is_empty() {
        errors.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if let Some((_, query)) = before.split_once('?').filter(|(_, query)| !query.is_empty()) {
        errors.invalid(path, query, "query parameters are not permitted in the URL");
    }
}

/// The service that a webhook is reached through.
pub(super) fn webhook_service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    // The real server takes the one for the other here.
    for (field, other) in [("name", "namespace"), ("namespace", "name")] {
        if service.text(other).is_empty() {
            errors.required(&path.field(field), "");
        }
    }
    let port = service.int("port").unwrap_or_default();
    service_port(port, &path.field("port"), errors);
    let text = service.text("path");
    let at = path.field("path");
    match text {
        "" | "/" => return,
        "//" => return errors.invalid(&at, text, "segment[0] may not be empty"),
        _ => {}
    }
    if !text.starts_with('/') {
        errors.invalid(&at, text, "must start with a '/'");
    }
    let inner = text.get(1..).unwrap_or_default();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(&at, text, format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in names::subdomain_problems(step) {
            errors.invalid(&at, text, format!("segment[{index}]: {problem}"));
        }
    }
}

/// Conditions that all must hold; their expressions may use `cel_names`.
pub(super) fn match_conditions(holder: &Value, cel_names: &Names, path: &Path<'_>, errors: &mut Errors) {
    let list = holder.list("matchConditions");
    if list.len() > 64 {
        errors.too_many(path, list.len(), 64);
    }
    let mut known = BTreeSet::new();
    for (index, condition) in list.iter().enumerate() {
        let at = path.index(index);
        let (name, expression) = (condition.text("name"), condition.text("expression"));
        let read = (expression, Wanted::Bool, cel_names);
        expression_of(read, "", &at.field("expression"), errors);
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        } else {
            errors.problems(&at.field("name"), name, names::qualified_problems(name));
            if !known.insert(name) {
                errors.duplicate(&at.field("name"), name);
            }
        }
    }
}

/// A required expression, which must be valid and of the wanted type.
pub(super) fn expression_of(
    (expression, wanted, cel_names): (&str, Wanted, &Names),
    missing: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if expression.trim().is_empty() {
        return errors.required(path, missing);
    }
    match cel_names.problem(expression, wanted) {
        Some(Problem::Invalid(why)) => errors.invalid(path, expression, why),
        Some(Problem::Internal(why)) => errors.push(FieldError::new(
            FieldErrorKind::Internal,
            path.to_string(),
            None,
            why,
        )),
        None => {}
    }
}

/// The status of an APIService.
pub(super) fn api_service_status(new: &Value, _: &Value, errors: &mut Errors) {
    let status = new.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status.conditions");
    for (index, condition) in status.list("conditions").iter().enumerate() {
        let given = condition.text("status");
        if !matches!(given, "True" | "False" | "Unknown") {
            errors.push(FieldError::new(
                FieldErrorKind::NotSupported,
                path.index(index).field("status").to_string(),
                Some(Value::from(given)),
                "supported values: \"True\", \"False\", \"Unknown\"",
            ));
        }
    }
}

/// An APIService.
pub(super) fn api_service(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let (group, version) = (spec.text("group"), spec.text("version"));
    let metadata = object.part("metadata").unwrap_or(&NOTHING);
    let required = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let name = metadata.text(field);
        let is_given = field == "name" || !name.is_empty();
        if is_given && name != required && names::path_segment_problems(name).is_empty() {
            errors.invalid(
                &Path::new("metadata").field(field),
                name,
                format!("must be `spec.version+\".\"+spec.group`: \"{required}\""),
            );
        }
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&path.field("group"), detail);
    }
    if !group.is_empty() {
        let problems = names::subdomain_problems(group);
        if !problems.is_empty() {
            errors.invalid(&path.field("group"), group, problems.join(","));
        }
    }
    let problems = names::old_label_problems(version);
    if !problems.is_empty() {
        errors.invalid(&path.field("version"), version, problems.join(","));
    }
    let most = |field: &str, most: i64, errors: &mut Errors| {
        let value = spec.int(field).unwrap_or_default();
        if value <= 0 || value > most {
            let detail = format!("must be positive and less than {most}");
            errors.invalid(&path.field(field), value, detail);
        }
    };
    most("groupPriorityMinimum", 20_000, errors);
    most("versionPriority", 1_000, errors);
    match spec.part("service") {
        None => {
            if !spec.text("caBundle").is_empty() {
                let detail = "local APIServices may not have a caBundle";
                errors.invalid(
                    &path.field("caBundle"),
                    format!("{} bytes", spec.text("caBundle").len()),
                    detail,
                );
            }
            if spec.is_true("insecureSkipTLSVerify") {
                let detail = "local APIServices may not have insecureSkipTLSVerify";
                errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
            }
        }
        Some(service) => {
            let at = path.field("service");
            for field in ["namespace", "name"] {
                if service.text(field).is_empty() {
                    errors.required(&at.field(field), "");
                }
            }
            if let Some(port) = service.int("port") {
                service_port(port, &at.field("port"), errors);
            }
            if spec.is_true("insecureSkipTLSVerify") && !spec.text("caBundle").is_empty() {
                let detail = "may not be true if caBundle is present";
                errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
            }
        }
    }
}
