//! The defaults of a NodeImage.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::api::v1beta1::{ImageTagSpec, NodeImageSpec};
use crate::images::{BACKOFF_LIMIT, TIMEOUT_S};

/// The numbers of a pull policy, and their types in Go.
const NUMBERS: [(&str, &str); 4] = [
    ("timeoutSeconds", "int32"),
    ("backoffLimit", "int32"),
    ("ttlSecondsAfterFinished", "int32"),
    ("activeDeadlineSeconds", "int64"),
];

/// Fills the defaults into a list, and sorts its tags. A list that needs neither stays as it came.
///
/// # Errors
/// The decoder's text when the spec is none of a list (status 400).
pub(super) fn mutate_image(image: &mut Value, now: Timestamp) -> Result<(), String> {
    let version = image
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let version = version.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(spec) = image.get("spec").and_then(Value::as_object) else {
        return Ok(());
    };
    let Some(images) = spec.get("images").filter(|images| !images.is_null()) else {
        return Ok(());
    };
    decodes(images, &version)?;
    let Ok(mut typed) = serde_json::from_value::<NodeImageSpec>(with_tags(Value::Object(spec.clone())))
    else {
        // The schema says what is wrong.
        return Ok(());
    };
    let before = typed.clone();
    for tag in typed.images.values_mut().flat_map(|spec| &mut spec.tags) {
        default_tag(tag, now);
    }
    for spec in typed.images.values_mut() {
        spec.tags.sort_by(|one, other| one.tag.cmp(&other.tag));
    }
    if typed == before {
        return Ok(());
    }
    if let (Some(image), Ok(spec)) = (image.as_object_mut(), serde_json::to_value(&typed)) {
        image.insert("spec".to_owned(), spec);
    }
    Ok(())
}

fn default_tag(tag: &mut ImageTagSpec, now: Timestamp) {
    tag.created_at.get_or_insert(Time(now));
    let policy = tag.pull_policy.get_or_insert_default();
    policy.timeout_seconds.get_or_insert(TIMEOUT_S);
    policy.backoff_limit.get_or_insert(BACKOFF_LIMIT);
}

/// The spec, in which each tag has a name: Go reads an empty one where there is none.
fn with_tags(mut spec: Value) -> Value {
    let images = spec.get_mut("images").and_then(Value::as_object_mut);
    let images = images.into_iter().flat_map(|images| images.values_mut());
    let lists = images.filter_map(|image| image.get_mut("tags")?.as_array_mut());
    for tag in lists.flatten().filter_map(Value::as_object_mut) {
        tag.entry("tag").or_insert_with(|| Value::from(""));
        tag.retain(|_, field| !field.is_null());
    }
    spec
}

/// The error of Go's decoder about fields that have another type.
fn decodes(images: &Value, version: &str) -> Result<(), String> {
    let kind = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null => "null",
    };
    let error = |value: &Value, field: &str, wanted: &str| {
        let found = kind(value);
        Err(format!(
            "json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
        ))
    };
    let Some(map) = images.as_object() else {
        return error(
            images,
            "NodeImageSpec.spec.images",
            &format!("map[string]{version}.ImageSpec"),
        );
    };
    for tags in map.values().filter_map(|image| image.get("tags")) {
        let Some(list) = tags.as_array() else {
            if tags.is_null() {
                continue;
            }
            return error(
                tags,
                "ImageSpec.spec.images.tags",
                &format!("[]{version}.ImageTagSpec"),
            );
        };
        for tag in list {
            for (field, wanted) in NUMBERS {
                let value = tag.get("pullPolicy").and_then(|policy| policy.get(field));
                if let Some(value) = value.filter(|value| value.is_string()) {
                    return error(
                        value,
                        &format!("ImageTagPullPolicy.spec.images.tags.pullPolicy.{field}"),
                        wanted,
                    );
                }
            }
            time(tag.get("createdAt").and_then(Value::as_str))?;
        }
    }
    Ok(())
}

/// Go's error about a text that is no time: that it misses the year.
fn time(text: Option<&str>) -> Result<(), String> {
    match text {
        Some(text) if text.parse::<Timestamp>().is_err() => Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        )),
        _ => Ok(()),
    }
}
