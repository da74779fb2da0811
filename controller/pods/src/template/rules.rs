//! Errors in a pod template: by the API server's own rules (`pod_rules`), and by those of sets of pods.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};
use pod_rules::errors::Errors;
use pod_rules::fields::Fields as _;
use pod_rules::path::Path;
use pod_rules::pod::{self, Release, Scope};
use pod_rules::{FieldError, selectors};
use serde_json::{Value, json};

use kruise_api::v1alpha1::{ScatterTerm, UpdatePriorityStrategy};
use kruise_kit::go_syntax;

const PATH: &str = "spec.template";

/// Everything that the API server would find wrong with the template. Each of the `claims` counts as a volume of its name after the
/// template's own, as OpenKruise adds them.
pub fn pod_template(template: &Value, claims: &[Value]) -> Vec<FieldError> {
    let mut template = template.clone();
    if !claims.is_empty()
        && let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(volumes) = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut()
    {
        volumes.extend(claims.iter().map(|claim| {
            let name = claim.pointer("/metadata/name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
        }));
    }
    let template = shared_json::to_value(&template).unwrap_or_default();
    let mut errors = Errors::default();
    let scope = Scope {
        release: Release::V1_32,
        ..Scope::TEMPLATE
    };
    pod::template(&scope, &template, &Path::new(PATH), &mut errors);
    errors.into_vec()
}

/// Errors in the form of a template's labels and annotations.
pub fn marks(template: &Value) -> Vec<FieldError> {
    let metadata =
        shared_json::to_value(template.get("metadata").unwrap_or(&Value::Null)).unwrap_or_default();
    let path = format!("{PATH}.metadata");
    let path = Path::new(&path);
    let mut errors = Errors::default();
    selectors::labels(metadata.map("labels"), &path.field("labels"), &mut errors);
    pod::annotations(
        metadata.map("annotations"),
        &path.field("annotations"),
        &mut errors,
    );
    errors.into_vec()
}

/// Errors of a set of pods that are to run for good: settings that it cannot have. `kind` is its kind, as refusals name it.
pub fn of_sets(template: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = template.pointer("/spec/restartPolicy").and_then(Value::as_str);
    if let Some(policy) = policy.filter(|policy| !matches!(*policy, "" | "Always")) {
        let path = format!("{PATH}.spec.restartPolicy");
        errors.push(FieldError::not_supported(path, policy, &["Always"]));
    }
    let deadline = template.pointer("/spec/activeDeadlineSeconds");
    if deadline.is_some_and(|value| !value.is_null()) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        let path = format!("{PATH}.spec.activeDeadlineSeconds");
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

/// The longest name of an owner whose name becomes a label of its pods.
const NAME_BYTES_MAX: usize = 63;

/// The errors of the name of an object of that kind: letters, digits and `-`, and not too many of them.
pub fn job_name(object: &Value, kind: &str) -> Vec<FieldError> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let mut errors = Vec::new();
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_fine) {
        let detail = format!(
            "{kind} name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for validation is \
             '^[a-zA-Z0-9\\-]+$')"
        );
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    if name.len() > NAME_BYTES_MAX {
        let detail = format!("must be no more than {NAME_BYTES_MAX} characters");
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    errors
}

/// `must be greater than or equal to 0`.
pub fn non_negative(path: &str, number: Option<i32>, errors: &mut Vec<FieldError>) {
    if let Some(number) = number.filter(|number| *number < 0) {
        errors.push(FieldError::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        ));
    }
}

/// A number that is not negative, or a percentage without a fraction.
pub fn positive_number(path: &str, value: &IntOrString, errors: &mut Vec<FieldError>) {
    match value {
        IntOrString::Int(number) => non_negative(path, Some(*number), errors),
        IntOrString::String(text) if !is_percentage(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                          regex used for validation is '[0-9]+%')";
            let shown = go_syntax::int_or_string(value);
            errors.push(FieldError::invalid_shown(path, shown, detail));
        }
        IntOrString::String(_) => {}
    }
}

fn is_percentage(text: &str) -> bool {
    text.strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The same as [`selected`], and an error more where Go can make no selector of it.
pub fn selector(
    selector: &LabelSelector,
    template: &Value,
    kind: &str,
    errors: &mut Vec<FieldError>,
) -> bool {
    let is_usable = selected(selector, template, kind, errors);
    if !is_usable {
        let shown = go_syntax::selector(selector);
        errors.push(FieldError::invalid_shown("spec.selector", shown, ""));
    }
    is_usable
}

/// Checks the selector of a set of that kind, and the template's labels against it. Whether Go can make a selector of it: only then
/// the real webhook looks at the labels.
pub fn selected(
    selector: &LabelSelector,
    template: &Value,
    kind: &str,
    errors: &mut Vec<FieldError>,
) -> bool {
    let path = "spec.selector";
    let value = shared_json::to_value(selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&value), &Path::new(path), &mut found);
    errors.extend(found.into_vec());
    let is_empty = selectors::is_empty(&value);
    if is_empty {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid_shown(
            path,
            go_syntax::selector(selector),
            detail,
        ));
    }
    let Some(matcher) = selectors::is_usable(&value)
        .then(|| Selector::try_from(selector.clone()).ok())
        .flatten()
    else {
        return false;
    };
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    if !is_empty && !matcher.matches(&labels) {
        let value: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key:?}:{value:?}"))
            .collect();
        // A map that is not there prints otherwise than an empty one.
        let value = match value.is_empty() {
            true => "map[string]string(nil)".to_owned(),
            false => format!("map[string]string{{{}}}", value.join(", ")),
        };
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid_shown(
            "spec.template.metadata.labels",
            value,
            detail,
        ));
    }
    true
}

/// The error of the strategy by which pods are updated first, at `path`.
pub fn priority(priority: Option<&UpdatePriorityStrategy>, path: &str) -> Option<FieldError> {
    let priority = priority?;
    let weights = priority.weight_priority.as_deref().unwrap_or_default();
    let orders = priority.order_priority.as_deref().unwrap_or_default();
    let detail = if !weights.is_empty() && !orders.is_empty() {
        "only one of weightPriority and orderPriority can be used"
    } else if weights.iter().any(|term| !(0..=100).contains(&term.weight)) {
        "weight must be valid number in the range 1-100"
    } else if weights.iter().any(|term| {
        let selector = &term.match_selector;
        selector.match_labels.iter().flatten().count() + selector.match_expressions.iter().flatten().count()
            == 0
    }) {
        "selector can not be empty"
    } else if orders.iter().any(|term| term.ordered_key.is_empty()) {
        "order key can not be empty"
    } else {
        return None;
    };
    Some(FieldError::required(path, detail))
}

/// The error of the terms by which pods are not updated in a row, at `path`.
pub fn scatter(terms: &[ScatterTerm], path: &str) -> Option<FieldError> {
    let mut seen = BTreeSet::new();
    for term in terms {
        if term.key.is_empty() {
            return Some(FieldError::required(path, "key should not be empty"));
        }
        if !seen.insert((&term.key, &term.value)) {
            let detail = format!("duplicated key={} value={}", term.key, term.value);
            return Some(FieldError::required(path, detail));
        }
    }
    None
}

/// Errors in a list of ephemeral containers, at `ephemeralContainers`. Which pods they come to is not known: no rule about
/// the pod's containers and volumes counts.
pub fn ephemeral_containers(containers: Value) -> Vec<FieldError> {
    let spec = json!({
        "containers": [{ "name": ".", "image": "test", "terminationMessagePolicy": "File", "imagePullPolicy": "Always" }],
        "ephemeralContainers": containers, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
    });
    let spec = shared_json::to_value(&spec).unwrap_or_default();
    let mut errors = Errors::default();
    let scope = Scope {
        release: Release::V1_32,
        is_pod: true,
        ..Scope::TEMPLATE
    };
    pod::spec(&scope, &spec, &Path::new("spec"), &mut errors);
    let own = |mut error: FieldError| {
        let path = error.path.strip_prefix("spec.")?.to_owned();
        error.path = path;
        let of_the_pod = error.path.ends_with(".targetContainerName")
            || error.path.contains(".volumeDevices[")
            || (error.path.contains(".volumeMounts[") && !error.path.contains(".subPath"));
        (error.path.starts_with("ephemeralContainers") && !of_the_pod).then_some(error)
    };
    errors.into_vec().into_iter().filter_map(own).collect()
}

/// Errors in containers and volumes that are to be part of a pod, at `spec`.
pub fn pod_parts(inits: Value, mut containers: Vec<Value>, volumes: Value) -> Vec<FieldError> {
    if containers.is_empty() {
        containers.push(json!({ "name": "test", "image": "test", "terminationMessagePolicy": "File", "imagePullPolicy": "Always" }));
    }
    let spec = json!({ "initContainers": inits, "containers": containers, "volumes": volumes, "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30 });
    let spec = shared_json::to_value(&spec).unwrap_or_default();
    let scope = Scope {
        release: Release::V1_32,
        is_pod: true,
        ..Scope::TEMPLATE
    };
    let mut errors = Errors::default();
    pod::spec(&scope, &spec, &Path::new("spec"), &mut errors);
    errors.into_vec()
}
