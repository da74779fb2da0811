//! The errors of a NodeImage.

use std::collections::BTreeSet;

use serde_json::Value;

/// How many images a node may have to pull.
const IMAGES_MAX: usize = 256;

/// The first error of a list; nothing means that it is allowed. Texts and their order are those of OpenKruise.
pub(super) fn validate_image(image: &Value) -> Option<String> {
    let images = image.pointer("/spec/images").and_then(Value::as_object)?;
    if images.len() > IMAGES_MAX {
        let count = images.len();
        return Some(format!(
            "spec images length {count} can not be more than {IMAGES_MAX}"
        ));
    }
    images.iter().find_map(|(name, spec)| {
        if name.is_empty() {
            return Some("image name can not be empty".to_owned());
        }
        let mut known = BTreeSet::new();
        let tags = spec.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().find_map(|tag| {
            let error = tag_error(name, tag);
            error.or_else(|| {
                let text = tag.get("tag").and_then(Value::as_str).unwrap_or_default();
                (!known.insert(text)).then(|| format!("duplicated tag {text} for image {name}"))
            })
        })
    })
}

fn tag_error(name: &str, tag: &Value) -> Option<String> {
    let text = tag.get("tag").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Some(format!("tag for image {name} can not be empty"));
    }
    if tag.get("version").and_then(Value::as_i64).unwrap_or_default() < 0 {
        return Some(format!("version for {name}/{text} can not be less than 0"));
    }
    let ttl = tag.pointer("/pullPolicy/ttlSecondsAfterFinished");
    ttl.is_none_or(Value::is_null)
        .then(|| format!("pullPolicy.ttlSecondsAfterFinished for {name}/{text} must set"))
}
