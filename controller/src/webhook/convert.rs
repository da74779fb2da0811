//! From a ConversionReview to its answer.

use serde_json::{Value, json};

use crate::kit::conversion::Conversion;
use crate::workloads::{CONVERSIONS, DEFINITIONS};

/// The path at which versions are converted.
pub const CONVERT_PATH: &str = "/convert";

/// Answers `review` (`apiextensions.k8s.io/v1`): gives it back with the objects in the version that it asks for.
#[must_use]
pub fn convert(review: &Value) -> Value {
    let null = Value::Null;
    let request = review.get("request").unwrap_or(&null);
    let wanted = request
        .get("desiredAPIVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let objects = request.get("objects").and_then(Value::as_array);
    let converted: Result<Vec<Value>, String> = objects
        .into_iter()
        .flatten()
        .map(|object| to_version(object, wanted))
        .collect();
    let (objects, result) = match converted {
        Ok(objects) => (objects, json!({ "status": "Success" })),
        Err(message) => (Vec::new(), json!({ "status": "Failure", "message": message })),
    };
    let version = review.get("apiVersion").cloned();
    json!({
        "apiVersion": version.unwrap_or_else(|| json!("apiextensions.k8s.io/v1")),
        "kind": "ConversionReview",
        "response": { "uid": request.get("uid"), "convertedObjects": objects, "result": result },
    })
}

/// An object of one of the kinds in another version of it, such as `apps.kruise.io/v1beta1`; a text says why it has no such form.
pub(crate) fn to_version(object: &Value, wanted: &str) -> Result<Value, String> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (from, kind) = (text("apiVersion"), text("kind"));
    let group = from.split('/').next().unwrap_or_default();
    if let Some(conversion) = conversion(group, kind) {
        return conversion.to(object.clone(), wanted);
    }
    // Versions that differ in their names alone. OpenKruise's own definitions have some of them converted, too.
    let mut definitions = DEFINITIONS.iter().copied().flatten();
    let Some(definition) = definitions.find(|crd| crd.is_of(group, kind)) else {
        return Err(format!("there is no conversion of {group}, Kind={kind}"));
    };
    if let Some(unknown) = [from, wanted].iter().find(|version| !definition.serves(version)) {
        return Err(format!("{kind} has no version {unknown}"));
    }
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), json!(wanted));
    }
    Ok(object)
}

/// The conversion of a kind, if it has one.
pub(crate) fn conversion(group: &str, kind: &str) -> Option<&'static Conversion> {
    let mut all = CONVERSIONS.iter().copied().flatten();
    all.find(|conversion| conversion.group == group && conversion.kind == kind)
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
