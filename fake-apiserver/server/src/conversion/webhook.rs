//! Custom resources whose versions a webhook converts.
//!
//! Everything that shows or reads an object in another version than the stored one waits for [`ready`] first, which asks the
//! webhook and remembers its answers, by uid and version; the conversion itself then only looks them up.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use machinery::meta::{ObjectMeta, at};
use machinery::status::ApiError;
use shared_json::{Array, Value, json};
use store::Stored;

use crate::resources::{ConversionHook, Resource};
use crate::server::ServerState;
use crate::webhook_client::post;

const TIMEOUT: Duration = Duration::from_secs(30);
pub(super) fn hook(resource: &Resource) -> Option<&ConversionHook> {
    resource.custom.as_ref()?.hook.as_ref()
}

fn version(object: &Value) -> &str {
    object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Converts those of some stored objects that are to be shown in another version than their own.
///
/// # Errors
/// 500: the webhook did not answer, or its answer is invalid.
pub(crate) async fn ready(
    state: &ServerState,
    resource: &Resource,
    stored: &[Arc<Stored>],
) -> Result<(), ApiError> {
    let Some(hook) = hook(resource) else {
        return Ok(());
    };
    let wanted = resource.api_version();
    let unknown: Vec<&Value> = stored
        .iter()
        .map(|stored| &*stored.value)
        .filter(|object| version(object) != wanted && hook.answer(object).is_none())
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let many = stored.len() > 1;
    let converted = convert(state, hook, &unknown, &wanted, many).await?;
    for (object, converted) in unknown.into_iter().zip(converted) {
        hook.remember(object, converted);
    }
    Ok(())
}

/// The stored form of an object that a client sent.
///
/// # Errors
/// 500: the webhook did not answer, or its answer is invalid.
pub(crate) async fn stored_form(
    state: &ServerState,
    resource: &Resource,
    object: Value,
) -> Result<Value, ApiError> {
    match hook(resource).filter(|_| !resource.is_storage_version()) {
        None => Ok(super::to_storage(resource, object)),
        Some(hook) => {
            let converted = convert(state, hook, &[&object], &resource.storage_api_version, false).await?;
            let mut converted = converted.into_iter().next().unwrap_or(object);
            if let Some(schema) = resource.custom.as_ref().and_then(|custom| custom.stored.as_ref()) {
                schema.prune(&mut converted);
            }
            Ok(converted)
        }
    }
}

/// An object that a client sent in one version of its resource, in another one.
///
/// # Errors
/// 500: the webhook did not answer, or its answer is invalid.
pub(crate) async fn between(
    state: &ServerState,
    from: &Resource,
    to: &Resource,
    object: Value,
) -> Result<Value, ApiError> {
    let Some(hook) = hook(from) else {
        return Ok(super::from_storage(to, super::to_storage(from, object)));
    };
    let converted = convert(state, hook, &[&object], &to.api_version(), false).await?;
    Ok(converted.into_iter().next().unwrap_or(object))
}

/// A written object as a reader gets it back, by way of the stored version: a dry run shows that.
///
/// # Errors
/// 500: the webhook did not answer, or its answer is invalid.
pub(crate) async fn written_and_read(
    state: &ServerState,
    resource: &Resource,
    object: Value,
) -> Result<Value, ApiError> {
    let mut stored = stored_form(state, resource, object).await?;
    let asked = hook(resource).filter(|_| !resource.is_storage_version());
    let (Some(hook), Some(custom)) = (asked, &resource.custom) else {
        return Ok(super::seen_from_storage(resource, &stored).into_owned());
    };
    if let Some(schema) = &custom.stored {
        schema.default(&mut stored);
    }
    let converted = convert(state, hook, &[&stored], &resource.api_version(), false).await?;
    let mut shown = converted.into_iter().next().unwrap_or(stored);
    custom.schema.prune(&mut shown);
    Ok(shown)
}

/// Asks the webhook. As many objects come back as were sent.
pub(super) async fn convert(
    state: &ServerState,
    hook: &ConversionHook,
    objects: &[&Value],
    wanted: &str,
    is_list: bool,
) -> Result<Array, ApiError> {
    let known = hook
        .review_versions
        .iter()
        .find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
    let refuse = |message: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message);
    let Some(review) = known else {
        return Err(refuse("no supported conversion review versions".to_owned()));
    };
    let first = objects.first().copied().unwrap_or(&Value::Null);
    let kind = first.get("kind").and_then(Value::as_str).unwrap_or_default();
    let of = if is_list {
        format!("{}, Kind={kind}List", version(first))
    } else {
        format!("{}, Kind={kind}", version(first))
    };
    let refuse = |problem: String| refuse(format!("conversion webhook for {of} {problem}"));
    let uid = state.new_uid();
    let api_version = format!("apiextensions.k8s.io/{review}");
    let mut document = json!({
        "kind": "ConversionReview", "apiVersion": api_version,
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
    });
    // An object is converted between its bytes in the store and the version that these have there, which it does not know.
    for object in document["request"]["objects"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        object.metadata_mut().remove("resourceVersion");
    }
    let answer = post(
        &state.store,
        state.network(),
        &state.webhook_connections,
        &hook.config,
        &document,
        TIMEOUT,
    )
    .await
    .map_err(|problem| refuse(format!("failed: {problem}")))?;
    let converted =
        read(&answer, &uid, &api_version).map_err(|problem| refuse(format!("failed: {problem}")))?;
    if converted.len() != objects.len() {
        let (got, expected) = (converted.len(), objects.len());
        return Err(refuse(format!("returned {got} objects, expected {expected}")));
    }
    let mut out = Array::with_capacity(converted.len());
    for (index, (mut converted, original)) in converted.into_iter().zip(objects).enumerate() {
        check(&converted, original, wanted).map_err(|(problem, of_group)| {
            let place = match (is_list, of_group) {
                (true, _) => format!("converted object at index {index}"),
                (false, true) => "object at index 0".to_owned(),
                (false, false) => "object".to_owned(),
            };
            refuse(format!("returned invalid {place}: {problem}"))
        })?;
        restore_metadata(&mut converted, original).map_err(|problem| {
            let place = if is_list {
                format!("metadata in object at index {index}")
            } else {
                "metadata".to_owned()
            };
            refuse(format!("returned invalid {place}: {problem}"))
        })?;
        out.push(converted);
    }
    Ok(out)
}

const V1: &str = "apiextensions.k8s.io/v1";
const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";
/// The real server's name for its table of the kinds that such a webhook may answer.
const SCHEME: &str = "pkg/util/webhook/client.go:71";

/// Answers of another kind or version are not read as one that was wanted; those that say neither are.
fn unread(version: &str, kind: &str, wanted: &str) -> Result<(), String> {
    let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
    if version.is_empty() || kind.is_empty() || (version, kind) == (wanted, "ConversionReview") {
        return Ok(());
    }
    if kind == "ConversionReview" && [V1, V1BETA1].contains(&version) {
        return Err(format!(
            "converting ({}.{kind}) to ({}.ConversionReview): unknown conversion",
            short(version),
            short(wanted)
        ));
    }
    Err(format!(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
    ))
}

/// The objects of an answer.
fn read(answer: &Value, uid: &str, api_version: &str) -> Result<Array, String> {
    let text = |path: &str| at(answer, path).and_then(Value::as_str).unwrap_or_default();
    let is_old = api_version.ends_with("/v1beta1");
    unread(text("apiVersion"), text("kind"), api_version)?;
    if !is_old && (text("apiVersion"), text("kind")) != (api_version, "ConversionReview") {
        let got = match (text("apiVersion"), text("kind")) {
            (version, kind) if !version.contains('/') => format!("/{version}, Kind={kind}"),
            (version, kind) => format!("{version}, Kind={kind}"),
        };
        return Err(format!(
            "expected webhook response of {api_version}, Kind=ConversionReview, got {got}"
        ));
    }
    if at(answer, "response").is_none_or(Value::is_null) {
        return Err("no response provided".to_owned());
    }
    if !is_old && text("response.uid") != uid {
        return Err(format!(
            "expected response.uid={uid:?}, got {:?}",
            text("response.uid")
        ));
    }
    let status = text("response.result.status");
    if status != "Success" {
        return Err(match text("response.result.message") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    let objects = at(answer, "response.convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// The error in a converted object, and whether it is about its group, version or kind.
fn check(converted: &Value, original: &Value, wanted: &str) -> Result<(), (String, bool)> {
    let kind = |object: &Value| {
        object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if version(converted) != wanted {
        let got = version(converted);
        return Err((
            format!("invalid groupVersion (expected {wanted}, received {got})"),
            true,
        ));
    }
    if kind(converted) != kind(original) {
        let problem = format!(
            "invalid kind (expected {}, received {})",
            kind(original),
            kind(converted)
        );
        return Err((problem, true));
    }
    for (what, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (expected, got) = (original.meta_str(field), converted.meta_str(field));
        if expected != got {
            return Err((format!("must have the same {what}: {expected} != {got}"), false));
        }
    }
    Ok(())
}

/// Of the metadata only labels and annotations may change.
fn restore_metadata(converted: &mut Value, original: &Value) -> Result<(), String> {
    let given = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given.clone(),
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                machinery::patch::go_type(other)
            ));
        }
    };
    let mut metadata = original.metadata().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            Some(value) if !value.is_null() => {
                let texts = value
                    .as_object()
                    .is_some_and(|map| map.values().all(Value::is_string));
                if !texts {
                    return Err(format!("invalid metadata.{field} in converted object"));
                }
                metadata.insert(field.to_owned(), value.clone());
            }
            _ => {
                metadata.remove(field);
            }
        }
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn answer(response: Value) -> Value {
        json!({"kind": "ConversionReview", "apiVersion": V1, "response": response})
    }

    #[rstest]
    #[case(answer(json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{}]})), Ok(1))]
    #[case(answer(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}})), Err("no"))]
    #[case(answer(json!({"uid": "u", "result": {"status": "Failed"}})), Err("response.result.status was 'Failed', not 'Success'"))]
    #[case(answer(json!({"uid": "x", "result": {"status": "Success"}})), Err("expected response.uid=\"u\", got \"x\""))]
    #[case(answer(Value::Null), Err("no response provided"))]
    #[case(json!({"kind": "", "apiVersion": "v1"}),
        Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /v1, Kind="))]
    #[case(json!({"kind": "X", "apiVersion": "v1"}),
        Err("no kind \"X\" is registered for version \"v1\" in scheme \"pkg/util/webhook/client.go:71\""))]
    #[case(json!({"kind": "ConversionReview", "apiVersion": V1BETA1}),
        Err("converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"))]
    fn answers(#[case] answer: Value, #[case] expected: Result<usize, &str>) {
        let got = read(&answer, "u", V1).map(|objects| objects.len());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[rstest]
    #[case(json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "a"}}), "")]
    #[case(json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}}), "invalid groupVersion (expected g/v2, received g/v1)")]
    #[case(json!({"apiVersion": "g/v2", "kind": "L", "metadata": {"name": "a"}}), "invalid kind (expected K, received L)")]
    #[case(json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "b"}}), "must have the same name: a != b")]
    fn what_stays(#[case] converted: Value, #[case] expected: &str) {
        let original = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}});
        let problem = check(&converted, &original, "g/v2")
            .err()
            .map(|(problem, _)| problem);
        assert_eq!(problem.unwrap_or_default(), expected);
    }

    #[test]
    fn only_labels_and_annotations_change() {
        let original = json!({"metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["f"]}});
        let mut converted = json!({"metadata": {"name": "a", "annotations": {"c": "d"}}});
        restore_metadata(&mut converted, &original).expect("metadata");
        let expected = json!({"name": "a", "annotations": {"c": "d"}, "finalizers": ["f"]});
        assert_eq!(converted["metadata"], expected);
        assert!(restore_metadata(&mut json!({}), &original).is_err());
    }
}
