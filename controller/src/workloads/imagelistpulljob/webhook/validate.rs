//! The errors of an ImageListPullJob.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::v1beta1::ImageListPullJobSpec;
use crate::images::rules;

/// How many images a list may have.
const IMAGES_MAX: usize = 255;

/// The first error of a list; nothing means that it is allowed. Texts and their order are those of OpenKruise.
pub(super) fn validate_list(list: &Value) -> Option<String> {
    let mut spec = list.get("spec").cloned().unwrap_or_else(|| json!({}));
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
        fields.entry("images").or_insert_with(|| json!([]));
        fields.entry("completionPolicy").or_insert_with(|| json!({}));
    }
    let spec: ImageListPullJobSpec = match serde_json::from_value(spec) {
        Ok(spec) => spec,
        Err(error) => return Some(error.to_string()),
    };
    rules::selectors(
        spec.template.selector.as_ref(),
        spec.template.pod_selector.as_ref(),
    )
    .or_else(|| images(&spec.images))
    .or_else(|| rules::completion(&spec.template.completion_policy))
}

fn images(images: &[String]) -> Option<String> {
    if images.is_empty() {
        return Some("image can not be empty".to_owned());
    }
    if images.iter().collect::<BTreeSet<_>>().len() < images.len() {
        return Some("images cannot have duplicate values".to_owned());
    }
    if images.len() > IMAGES_MAX {
        return Some(format!("the maximum number of images cannot > {IMAGES_MAX}"));
    }
    images.iter().find_map(|image| rules::image(image))
}
