//! Reviews: questions about users and what they may do. They are created and never kept.

use serde_json::{Map, Value, json};

use super::{Act, allows, is_master, rbac};
use crate::authn::{self, User};
use crate::field_error::FieldError;
use crate::meta::at;
use crate::resources::Resource;
use crate::rest::context::{Answer, Context, Shown};
use crate::rest::incoming;
use crate::status::ApiError;

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
/// 400 and 422 for what is no question.
pub(crate) fn answer(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let (mut review, warnings) = incoming::read(context, body)?;
    let status = match context.resource.kind.as_str() {
        "TokenReview" => authn::review_token(context, &review)?,
        "SelfSubjectReview" => {
            review["metadata"] = json!({"creationTimestamp": context.state().now()});
            json!({"userInfo": context.user.info()})
        }
        "SelfSubjectRulesReview" => rules(context, &mut review)?,
        "SelfSubjectAccessReview" => {
            check_metadata("SelfSubjectAccessReview", &review)?;
            access(context, &review, &context.user)?
        }
        kind => {
            check_metadata(kind, &review)?;
            check_subject(context, kind, &review)?;
            access(context, &review, &subject(&review))?
        }
    };
    review["status"] = status;
    let mut answer = Answer::created(Shown::Made(review));
    answer.warnings = warnings;
    Ok(answer)
}

/// A question about access has no name and no labels.
fn check_metadata(kind: &str, review: &Value) -> Result<(), ApiError> {
    let is_local = kind == "LocalSubjectAccessReview";
    let given = review.get("metadata").and_then(Value::as_object);
    let said: serde_json::Map<String, Value> = given
        .into_iter()
        .flatten()
        .filter(|(field, value)| {
            !value.is_null() && *field != "managedFields" && !(is_local && *field == "namespace")
        })
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    if said.is_empty() {
        return Ok(());
    }
    let detail = if is_local {
        "must be empty except for namespace and managedFields"
    } else {
        "must be empty except for managedFields"
    };
    Err(invalid(&[FieldError::invalid(
        "metadata",
        Value::Object(said),
        detail,
    )]))
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
            .map(|(key, values)| (key.clone(), words(Some(values))))
            .collect(),
    }
}

fn check_subject(context: &Context, kind: &str, review: &Value) -> Result<(), ApiError> {
    let user = subject(review);
    let mut errors = Vec::new();
    if user.name.is_empty() && user.groups.is_empty() {
        errors.push(FieldError::invalid(
            "spec.user",
            "",
            "at least one of user or group must be specified",
        ));
    }
    if kind == "LocalSubjectAccessReview" {
        let given = at(review, "spec.resourceAttributes.namespace")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if given != context.request.namespace {
            let detail = format!("must match metadata.namespace: {}", context.request.namespace);
            errors.push(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                given,
                detail,
            ));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(invalid(&errors))
    }
}

fn access(context: &Context, review: &Value, user: &User) -> Result<Value, ApiError> {
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
        (Some(_), Some(path)) => {
            let shown = json!({"Path": text(path, "path"), "Verb": text(path, "verb")});
            let detail = "cannot be specified in combination with resourceAttributes";
            return Err(invalid(&[FieldError::invalid(
                "spec.nonResourceAttributes",
                shown,
                detail,
            )]));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(invalid(&[FieldError::invalid(
                "spec.resourceAttributes",
                Value::Null,
                detail,
            )]));
        }
        (Some(resource), None) => Act {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            path: String::new(),
        },
        (None, Some(path)) => Act {
            verb: text(path, "verb"),
            path: text(path, "path"),
            ..Act::default()
        },
    };
    let allowed = is_master(user) || allows(context.state(), user, &act);
    Ok(json!({"allowed": allowed}))
}

/// What the user may do in a namespace. As in the real server's answer the namespace itself is not in it.
fn rules(context: &Context, review: &mut Value) -> Result<Value, ApiError> {
    let namespace = at(review, "spec.namespace")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    review["spec"] = json!({});
    let mut all = rbac::rules(context.state(), &context.user, &namespace);
    if is_master(&context.user) {
        all.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        all.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    let pick = |rule: &Value, fields: &[&str]| -> Value {
        let present = fields
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), rule.get(field)?.clone())));
        Value::Object(present.collect::<Map<String, Value>>())
    };
    let resources = all.iter().filter(|rule| rule.get("resources").is_some());
    let paths = all.iter().filter(|rule| rule.get("nonResourceURLs").is_some());
    Ok(json!({
        "resourceRules": resources.map(|rule| pick(rule, &["verbs", "apiGroups", "resources", "resourceNames"])).collect::<Vec<_>>(),
        "nonResourceRules": paths.map(|rule| pick(rule, &["verbs", "nonResourceURLs"])).collect::<Vec<_>>(),
        "incomplete": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("SubjectAccessReview", json!({"creationTimestamp": null}), true)]
    #[case("SubjectAccessReview", json!({"name": "a"}), false)]
    #[case("SelfSubjectAccessReview", json!({"namespace": "a"}), false)]
    #[case("LocalSubjectAccessReview", json!({"namespace": "a"}), true)]
    #[case("LocalSubjectAccessReview", json!({"namespace": "a", "labels": {"a": "b"}}), false)]
    fn questions_have_no_metadata(#[case] kind: &str, #[case] metadata: Value, #[case] is_good: bool) {
        assert_eq!(
            check_metadata(kind, &json!({"metadata": metadata})).is_ok(),
            is_good
        );
    }
}
