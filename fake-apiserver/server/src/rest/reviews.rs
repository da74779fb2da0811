//! Reviews: questions about users and their rights. They are created and never stored.

use machinery::meta::at;
use machinery::selector::LabelSelector;
use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use pod_rules::names;
use rules::validation::go;
use shared_json::{Array, Map, Name, Value, json};

use super::ownership;
use super::token_review;
use crate::authn::User;
use crate::authz::{Act, decision, is_master, rbac};
use crate::context::{Answer, Context, Shown};
use crate::incoming;
use crate::message::payload::Payload;
use crate::resources::Resource;

/// Whether creating an object of this resource asks something.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    )
}

/// Answers a review.
///
/// # Errors
/// 400 and 422 for an invalid review.
pub(crate) fn answer(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (mut review, warnings) = incoming::read(context, body)?;
    context.warnings.tell(warnings);
    if context.resource.kind == "LocalSubjectAccessReview" {
        let given = at(&review, "metadata.namespace").and_then(Value::as_str);
        if given.is_some_and(|given| !given.is_empty() && given != context.request.namespace) {
            return Err(ApiError::other_namespace());
        }
    }
    settle(context, &mut review);
    let status = match context.resource.kind.as_str() {
        "TokenReview" => token_review::status(context, &review)?,
        "SelfSubjectReview" => {
            review["metadata"] = json!({"creationTimestamp": context.state().now()});
            json!({"userInfo": context.user.info()})
        }
        "SelfSubjectRulesReview" => rules(context, &mut review)?,
        "SelfSubjectAccessReview" => {
            check(context, "SelfSubjectAccessReview", &review)?;
            access(context, &review, &context.user)
        }
        kind => {
            if kind == "LocalSubjectAccessReview" {
                review["metadata"]["namespace"] = Value::from(context.request.namespace.clone());
            }
            check(context, kind, &review)?;
            access(context, &review, &subject(&review))
        }
    };
    review["status"] = status;
    Ok(Answer::created(Shown::Made(review)))
}

/// The fields of a review's metadata, in the order of output.
const SHOWN: [&str; 10] = [
    "name",
    "generateName",
    "namespace",
    "resourceVersion",
    "generation",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
/// The same of an entry of managed fields.
const ENTRY: [&str; 6] = [
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
];
/// The fields that the server alone sets.
const OWN: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// Prepares a review's metadata first: drops the fields that the server alone sets, sets the namespace to the
/// path's, and records the owner of its fields.
fn settle(context: &Context, review: &mut Value) {
    if review
        .get("metadata")
        .is_none_or(|metadata| !metadata.is_object())
    {
        review["metadata"] = json!({});
    }
    if let Some(metadata) = review.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !OWN.contains(&field.as_str()));
        metadata.remove("namespace");
    }
    ownership::own_new(context, review);
}

/// A question about access has no name and no labels.
fn metadata_error(kind: &str, review: &Value) -> Option<FieldError> {
    let is_local = kind == "LocalSubjectAccessReview";
    let given = review.get("metadata").and_then(Value::as_object);
    // The namespace is the path's, whatever is said.
    let is_said = |(field, value): &(&Name, &Value)| {
        !value.is_null() && *field != "managedFields" && *field != "namespace"
    };
    if !given.into_iter().flatten().any(|entry| is_said(&entry)) {
        return None;
    }
    // All of it is shown, in the order of the struct.
    let said = given.map_or_else(String::new, |given| in_order(given, &SHOWN));
    let detail = if is_local {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    Some(FieldError {
        shown: Some(said),
        ..FieldError::invalid("metadata", Value::Null, detail)
    })
}

/// An object as JSON, with these fields in this order.
fn in_order(object: &Map, fields: &[&str]) -> String {
    let shown = fields.iter().filter_map(|field| {
        let value = object.get(*field)?;
        let text = match value.as_array() {
            Some(entries) if *field == "managedFields" => {
                let entries = entries.iter().filter_map(Value::as_object);
                let entries: Vec<String> = entries.map(|entry| in_order(entry, &ENTRY)).collect();
                format!("[{}]", entries.join(","))
            }
            _ => go::json(value),
        };
        Some(format!("\"{field}\":{text}"))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

const SELECTORS: &str = "spec.resourceAttributes";
const KNOWN_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

fn requirements<'a>(resource: &'a Value, name: &str) -> &'a [Value] {
    let list = resource
        .get(name)
        .and_then(|selector| selector.get("requirements"));
    list.and_then(Value::as_array).map_or(&[], Array::as_slice)
}

/// The errors in a selector that narrows a question. Unknown operators are let through.
fn selector_errors(resource: &Value, name: &str) -> Vec<FieldError> {
    let Some(selector) = resource.get(name).filter(|selector| selector.is_object()) else {
        return Vec::new();
    };
    let path = format!("{SELECTORS}.{name}");
    let raw = selector
        .get("rawSelector")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let requirements = requirements(resource, name);
    let mut errors = Vec::new();
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(format!("{path}.rawSelector"), raw, detail));
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(format!("{path}.requirements"), &detail));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let at = format!("{path}.requirements[{index}]");
        let values = requirement
            .get("values")
            .and_then(Value::as_array)
            .map_or(0, Array::len);
        match requirement
            .get("operator")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "In" | "NotIn" if values == 0 => errors.push(FieldError::required(
                format!("{at}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values > 0 => errors.push(FieldError::forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            _ => {}
        }
        let key = requirement.get("key").and_then(Value::as_str).unwrap_or_default();
        if name == "labelSelector" {
            let problems = names::qualified_problems(key);
            errors.extend(
                problems
                    .into_iter()
                    .map(|problem| FieldError::invalid(format!("{at}.key"), key, problem)),
            );
        } else if key.is_empty() {
            errors.push(FieldError::required(format!("{at}.key"), "must be specified"));
        }
    }
    errors
}

/// Whether the text of a selector is none.
fn is_unread(resource: &Value, name: &str) -> bool {
    let raw = resource
        .get(name)
        .and_then(|selector| selector.get("rawSelector"));
    let raw = raw.and_then(Value::as_str).unwrap_or_default();
    match name {
        "labelSelector" => LabelSelector::parse(raw).is_err(),
        _ => raw.split(',').any(|term| !term.is_empty() && !term.contains('=')),
    }
}

/// The parts of the selectors that could not be understood, though they are not errors.
fn unread_selectors(resource: &Value) -> Option<String> {
    let told = ["fieldSelector", "labelSelector"].into_iter().filter_map(|name| {
        let all = requirements(resource, name);
        let unread = all.iter().filter(|requirement| {
            let operator = requirement
                .get("operator")
                .and_then(Value::as_str)
                .unwrap_or_default();
            !KNOWN_OPERATORS.contains(&operator)
        });
        let partially = match unread.count() {
            0 if !is_unread(resource, name) => return None,
            0 => "",
            unread if unread < all.len() => "partially ",
            _ => "",
        };
        Some(format!(
            "{SELECTORS}.{name} {partially}ignored due to parse error"
        ))
    });
    let told: Vec<String> = told.collect();
    Some(told.join("; ")).filter(|told| !told.is_empty())
}

fn invalid(errors: &[FieldError]) -> ApiError {
    ApiError::invalid("authorization.k8s.io", "", "", errors)
}

/// The user that a review is about.
fn subject(review: &Value) -> User {
    let text = |path: &str| {
        at(review, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let words = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let extra = at(review, "spec.extra").and_then(Value::as_object);
    User {
        name: text("spec.user"),
        uid: text("spec.uid"),
        groups: words(at(review, "spec.groups")),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.to_string(), words(Some(values))))
            .collect(),
    }
}

/// All errors in a question at once.
fn check(context: &Context, kind: &str, review: &Value) -> Result<(), ApiError> {
    let part = |path: &str| at(review, path).filter(|value| value.is_object());
    let (resource, path) = (
        part("spec.resourceAttributes"),
        part("spec.nonResourceAttributes"),
    );
    let text = |value: &Value, field: &str| {
        let value = value.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let of_path = |path: &Value, detail: &str| {
        let shown = json!({"Path": text(path, "path"), "Verb": text(path, "verb")});
        FieldError::invalid("spec.nonResourceAttributes", shown, detail)
    };
    let mut errors = Vec::new();
    match (resource, path) {
        (Some(_), Some(path)) => errors.push(of_path(
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let user = subject(review);
    if kind != "SelfSubjectAccessReview" && user.name.is_empty() && user.groups.is_empty() {
        errors.push(FieldError::invalid(
            "spec.user",
            "",
            "at least one of user or group must be specified",
        ));
    }
    if let Some(resource) = resource {
        for name in ["fieldSelector", "labelSelector"] {
            errors.extend(selector_errors(resource, name));
        }
    }
    errors.extend(metadata_error(kind, review));
    if kind == "LocalSubjectAccessReview" {
        let given = resource.map(|resource| text(resource, "namespace"));
        if let Some(given) = given.filter(|given| *given != context.request.namespace) {
            let detail = "must match metadata.namespace";
            errors.push(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                given,
                detail,
            ));
        }
        if let Some(path) = path {
            errors.push(of_path(path, "disallowed on this kind of request"));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(invalid(&errors))
    }
}

fn access(context: &Context, review: &Value, user: &User) -> Value {
    let part = |path: &str| at(review, path).filter(|value| value.is_object());
    let (resource, path) = (
        part("spec.resourceAttributes"),
        part("spec.nonResourceAttributes"),
    );
    let text = |value: &Value, field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let act = match (resource, path) {
        (Some(resource), _) => Act {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            ..Act::default()
        },
        (None, path) => {
            let path = path.unwrap_or(&Value::Null);
            Act {
                verb: text(path, "verb"),
                path: text(path, "path"),
                ..Act::default()
            }
        }
    };
    let (allowed, reason) = decision(context.state(), user, &act);
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = Value::from(reason);
    }
    if let Some(error) = resource.and_then(unread_selectors) {
        status["evaluationError"] = Value::from(error);
    }
    status
}

/// The user's rights in a namespace. As in the real server's answer the namespace itself is not in it.
fn rules(context: &Context, review: &mut Value) -> Result<Value, ApiError> {
    let namespace = at(review, "spec.namespace")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    review["spec"] = json!({});
    if let Some(metadata) = review.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let mut all = rbac::rules(context.state(), &context.user, &namespace);
    if is_master(&context.user) {
        // A server with roles has them from the role `cluster-admin`.
        let may_all = [
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
        ];
        for rule in may_all {
            if !all.contains(&rule) {
                all.push(rule);
            }
        }
    }
    let pick = |rule: &Value, fields: &[&str]| -> Value {
        let present = fields
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), rule.get(field)?.clone())));
        Value::Object(present.collect::<Map>())
    };
    let resources = all.iter().filter(|rule| rule.get("resources").is_some());
    let paths = all.iter().filter(|rule| rule.get("nonResourceURLs").is_some());
    let mut status = json!({
        "resourceRules": resources.map(|rule| pick(rule, &["verbs", "apiGroups", "resources", "resourceNames"])).collect::<Vec<_>>(),
        "nonResourceRules": paths.map(|rule| pick(rule, &["verbs", "nonResourceURLs"])).collect::<Vec<_>>(),
        "incomplete": false,
    });
    let unresolved = rbac::unresolved(context.state(), &context.user, &namespace);
    if !unresolved.is_empty() {
        status["evaluationError"] = Value::from(rbac::aggregate(&unresolved));
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(json!({"labelSelector": {"rawSelector": "a=b"}}), "", None)]
    #[case(json!({"labelSelector": {}}), "requirements", None)]
    #[case(json!({"fieldSelector": {"requirements": [{"key": "a", "operator": "In"}]}}), "requirements[0].values", None)]
    #[case(json!({"labelSelector": {"requirements": [{"key": "a", "operator": "X"}]}}), "", Some("labelSelector ignored"))]
    #[case(json!({"labelSelector": {"requirements": [{"key": "a", "operator": "X"}, {"key": "b", "operator": "Exists"}]}}), "", Some("partially"))]
    #[case(json!({"labelSelector": {"requirements": [{"key": "a b", "operator": "Exists"}]}}), "requirements[0].key", None)]
    #[case(json!({"fieldSelector": {"requirements": [{"operator": "Exists"}]}}), "requirements[0].key", None)]
    #[case(json!({"labelSelector": {"rawSelector": "!!"}}), "", Some("labelSelector ignored"))]
    fn selectors(#[case] resource: Value, #[case] wrong: &str, #[case] unread: Option<&str>) {
        let names = ["fieldSelector", "labelSelector"];
        let errors: Vec<FieldError> = names
            .iter()
            .flat_map(|name| selector_errors(&resource, name))
            .collect();
        assert_eq!(errors.is_empty(), wrong.is_empty());
        assert!(errors.iter().all(|error| error.path.ends_with(wrong)));
        let told = unread_selectors(&resource);
        assert_eq!(told.is_some(), unread.is_some());
        assert!(told.unwrap_or_default().contains(unread.unwrap_or_default()));
    }

    #[rstest]
    #[case("SubjectAccessReview", json!({"creationTimestamp": null}), true)]
    #[case("SubjectAccessReview", json!({"name": "a"}), false)]
    #[case("SelfSubjectAccessReview", json!({"namespace": "a"}), true)]
    #[case("LocalSubjectAccessReview", json!({"namespace": "a"}), true)]
    #[case("LocalSubjectAccessReview", json!({"namespace": "a", "labels": {"a": "b"}}), false)]
    fn questions_have_no_metadata(#[case] kind: &str, #[case] metadata: Value, #[case] is_good: bool) {
        assert_eq!(
            metadata_error(kind, &json!({"metadata": metadata})).is_none(),
            is_good
        );
    }
}
