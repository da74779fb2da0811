//! The specs of workloads as their webhooks see and write them: a selector, a pod template and templates of claims.

use kruise_kit::json::omit_empty;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{claim_template, defaults, pod_template};

/// A field that Go decodes into a number: its pointer, and the struct with the path that Go's decoder names before it.
pub type Number = (&'static str, &'static str);

/// The spec as Go writes it after reading it into the type `T`. `structs` are fields that Go writes even where they are empty.
///
/// # Errors
/// The decoder's text when `spec` is none of a `T`.
pub fn canonical_spec<T: DeserializeOwned + Serialize>(
    spec: &Value,
    numbers: &[Number],
    structs: &[&str],
) -> Result<Map<String, Value>, String> {
    for (field, of) in numbers {
        if spec.pointer(field).is_some_and(Value::is_string) {
            let path = field.replace('/', ".");
            return Err(format!(
                "json: cannot unmarshal string into Go struct field {of}{path} of type int32"
            ));
        }
    }
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else {
        return Err("spec is not an object".to_owned());
    };
    fields.retain(|_, value| !value.is_null());
    let template = fields.get("template").cloned().unwrap_or_else(|| json!({}));
    fields.insert("template".to_owned(), pod_template(&template)?);
    if let Some(Value::Array(claims)) = fields.get_mut("volumeClaimTemplates") {
        for claim in claims {
            *claim = claim_template(claim)?;
        }
    }
    // Without a selector the type's decoder would refuse an object that the server's schema has to refuse in its own words.
    let has_selector = fields.contains_key("selector");
    fields.entry("selector").or_insert_with(|| json!({}));
    let typed: T = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    let Ok(Value::Object(mut fields)) = serde_json::to_value(typed) else {
        return Err("spec is not an object".to_owned());
    };
    if !has_selector {
        fields.remove("selector");
    }
    for name in structs {
        fields.entry(*name).or_insert_with(|| json!({}));
    }
    for (name, field) in &mut fields {
        if name != "template" && name != "volumeClaimTemplates" {
            omit_empty(field);
        }
    }
    Ok(fields)
}

/// Fills the defaults of the API server into the pod template and the templates of claims.
pub fn default_templates(spec: &mut Map<String, Value>) {
    if let Some(template) = spec.get_mut("template") {
        defaults::pod_template(template);
    }
    let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
    claims.into_iter().flatten().for_each(defaults::claim_template);
}
