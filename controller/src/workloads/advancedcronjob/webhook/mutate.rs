//! The defaults of an AdvancedCronJob.

use serde_json::{Map, Value, json};

use crate::gates::FeatureGates;
use crate::kit::json::omit_empty;
use crate::pods::template::{defaults, pod_template};

/// How many jobs that ended well are kept when the limit is not set.
const DEFAULT_SUCCESSFUL_LIMIT: i32 = 3;
/// How many jobs that failed are kept when the limit is not set.
const DEFAULT_FAILED_LIMIT: i32 = 1;

/// The templates that have a pod: their field, and whether the server keeps all of their metadata.
const OF_PODS: [(&str, bool); 2] = [("jobTemplate", true), ("broadcastJobTemplate", false)];
/// The template of jobs that pull images.
const IMAGES: &str = "imageListPullJobTemplate";
/// The fields that Go writes even where they are empty, by template.
const STRUCTS: [(&str, &[&str]); 3] = [
    ("jobTemplate", &[]),
    ("broadcastJobTemplate", &["completionPolicy", "failurePolicy"]),
    (IMAGES, &["completionPolicy"]),
];

/// Fills the defaults into `cron`, for a creation (no `old`) or an update. The defaults of a pod template are filled in when it is new or
/// has changed. When nothing is missing and there is no status the object is left as it came, otherwise its spec is written as Go
/// writes it.
///
/// # Errors
/// The decoder's text when the spec is none of an AdvancedCronJob (status 400).
pub(super) fn mutate_cron(cron: &mut Value, old: Option<&Value>, gates: &FeatureGates) -> Result<(), String> {
    let Some(spec) = cron.get("spec") else {
        return Ok(());
    };
    let canonical = canonical_spec(spec)?;
    let old = old.and_then(|old| canonical_spec(old.get("spec")?).ok());
    let is_new = old.is_none_or(|old| old.get("template") != canonical.get("template"));
    let mut defaulted = canonical.clone();
    default_spec(&mut defaulted);
    if is_new && !gates.is_on("TemplateNoDefaults") {
        for (field, _) in OF_PODS {
            let template = defaulted
                .get_mut("template")
                .and_then(|all| all.pointer_mut(&pod_of(field)));
            if let Some(template) = template {
                defaults::pod_template(template);
            }
        }
    }
    // OpenKruise empties the status, which the server ignores; but then it has changed the object, and writes all of it.
    let has_status = cron
        .get("status")
        .and_then(Value::as_object)
        .is_some_and(|status| !status.is_empty());
    if (defaulted != canonical || has_status)
        && let Some(cron) = cron.as_object_mut()
    {
        cron.insert("spec".to_owned(), Value::Object(defaulted));
    }
    Ok(())
}

/// The pod template in a template of jobs.
pub(super) fn pod_of(field: &str) -> String {
    format!("/{field}/spec/template")
}

fn default_spec(spec: &mut Map<String, Value>) {
    let images = spec
        .get_mut("template")
        .and_then(|template| template.get_mut(IMAGES)?.get_mut("spec")?.as_object_mut());
    let has_images = images.is_some();
    if let Some(images) = images {
        default_images(images);
    }
    let policy = if has_images { "Replace" } else { "Allow" };
    let mut set = |field: &str, default: Value| {
        spec.entry(field).or_insert(default);
    };
    set("concurrencyPolicy", json!(policy));
    set("paused", json!(false));
    set("successfulJobsHistoryLimit", json!(DEFAULT_SUCCESSFUL_LIMIT));
    set("failedJobsHistoryLimit", json!(DEFAULT_FAILED_LIMIT));
}

/// The defaults of a job that pulls images, if it does not say when it is over.
fn default_images(spec: &mut Map<String, Value>) {
    let Some(policy) = spec.get_mut("completionPolicy").and_then(Value::as_object_mut) else {
        return;
    };
    if policy.contains_key("type") {
        return;
    }
    policy.insert("type".to_owned(), json!("Always"));
    let pull = spec.entry("pullPolicy").or_insert_with(|| json!({}));
    if let Some(pull) = pull.as_object_mut() {
        pull.entry("timeoutSeconds").or_insert(json!(600));
        pull.entry("backoffLimit").or_insert(json!(3));
    }
    spec.entry("imagePullPolicy").or_insert(json!("IfNotPresent"));
}

/// The spec as Go writes it after reading it.
///
/// # Errors
/// The decoder's text when it is none.
pub(super) fn canonical_spec(spec: &Value) -> Result<Map<String, Value>, String> {
    let Value::Object(mut fields) = spec.clone() else {
        return Err("spec is not an object".to_owned());
    };
    fields.retain(|name, field| match field {
        Value::Null => false,
        Value::String(text) => name != "concurrencyPolicy" || !text.is_empty(),
        _ => true,
    });
    fields.entry("schedule").or_insert(json!(""));
    let template = fields.entry("template").or_insert_with(|| json!({}));
    let Value::Object(templates) = template else {
        return Err("spec.template is not an object".to_owned());
    };
    templates.retain(|_, template| !template.is_null());
    for (field, structs) in STRUCTS {
        let Some(template) = templates.get_mut(field) else {
            continue;
        };
        let Value::Object(parts) = template else {
            return Err(format!("spec.template.{field} is not an object"));
        };
        canonical_template(field, structs, parts)?;
    }
    Ok(fields)
}

/// Writes a template of jobs as Go does.
fn canonical_template(field: &str, structs: &[&str], parts: &mut Map<String, Value>) -> Result<(), String> {
    let metadata = parts.entry("metadata").or_insert_with(|| json!({}));
    let of_pods = OF_PODS.iter().find(|(name, _)| *name == field);
    if let (Some((_, true)), Some(metadata)) = (of_pods, metadata.as_object_mut()) {
        metadata.entry("creationTimestamp").or_insert(Value::Null);
    }
    let spec = parts.entry("spec").or_insert_with(|| json!({}));
    let Value::Object(spec) = spec else {
        return Err(format!("spec.template.{field}.spec is not an object"));
    };
    spec.retain(|_, part| !part.is_null());
    for name in structs {
        spec.entry(*name).or_insert_with(|| json!({}));
    }
    for (name, part) in spec.iter_mut().filter(|(name, _)| name.as_str() != "template") {
        // A list that is empty is written where there must be one.
        if name != "images" {
            omit_empty(part);
        }
    }
    if of_pods.is_some() {
        let template = spec.entry("template").or_insert_with(|| json!({}));
        *template = pod_template(template)?;
    } else {
        spec.entry("images").or_insert(Value::Null);
    }
    Ok(())
}
