//! The scale of an object: how many replicas there are and are wanted, as an object of its own.
//!
//! Who owns the replicas is kept in the managed fields of the object that is scaled, and translated to those of the scale
//! and back, so that an apply of a scale conflicts with whoever else sets the replicas.

use http::StatusCode;
use shared_json::{Array, Map, Value, json};

use super::context::{Answer, Context, Shown};
use super::conversion;
use super::incoming;
use super::kind_check::SCHEME;
use super::ownership::Ownership;
use super::patch::{PatchKind, apply_failed, refused};
use super::update::{Update, check_name, registry_key, update};
use crate::encode::cells::label_selector_text;
use crate::field_error::FieldError;
use crate::http::decode;
use crate::http::request::Verb;
use crate::meta::{ObjectMeta, at};
use crate::patch::apply::{self as server_side, FieldSet, Operation};
use crate::patch::{go_json, json as json_patch, merge};
use crate::status::ApiError;
use crate::types;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Where the object keeps its replicas: dotted paths of spec, status and the selector's text.
fn paths(context: &Context) -> (String, String, Option<String>) {
    let strip = |path: &str| path.trim_start_matches('.').to_owned();
    match context
        .resource
        .custom
        .as_ref()
        .and_then(|custom| custom.scale.as_ref())
    {
        Some(scale) => {
            let selector = scale.label_selector.as_deref().map(strip);
            (
                strip(&scale.spec_replicas),
                strip(&scale.status_replicas),
                selector,
            )
        }
        None => ("spec.replicas".to_owned(), "status.replicas".to_owned(), None),
    }
}

/// The scale of an object for one who asks for it: a custom resource must say how many replicas it wants.
///
/// # Errors
/// 500.
pub(super) fn read(context: &Context, object: &Value) -> Result<Value, ApiError> {
    let (spec_path, _, _) = paths(context);
    if context.resource.is_custom() && at(object, &spec_path).is_none_or(Value::is_null) {
        let why = format!("the spec replicas field \".{spec_path}\" does not exist");
        return Err(ApiError::internal(&why));
    }
    Ok(of(context, object))
}

/// The scale of an object.
pub(super) fn of(context: &Context, object: &Value) -> Value {
    let (spec_path, status_path, selector_path) = paths(context);
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let selector = match &selector_path {
        Some(path) => at(object, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        None if context.resource.is_custom() => String::new(),
        None => match at(object, "spec.selector") {
            Some(selector)
                if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() =>
            {
                label_selector_text(selector)
            }
            Some(labels) => label_selector_text(&json!({"matchLabels": labels})),
            None => String::new(),
        },
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().and_then(|meta| meta.get(field)) {
            metadata[field] = value.clone();
        }
    }
    let mut spec = json!({});
    if number(&spec_path) != 0 {
        spec["replicas"] = Value::from(number(&spec_path));
    }
    let mut status = json!({"replicas": number(&status_path)});
    if !selector.is_empty() {
        status["selector"] = Value::from(selector);
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// Gives an object the replicas that a scale asks for.
pub(super) fn take(context: &Context, object: &mut Value, scale: &Value) {
    let replicas = at(scale, "spec.replicas").and_then(Value::as_i64);
    let (path, _, _) = paths(context);
    set_at(object, &path, Value::from(replicas.unwrap_or_default()));
}

/// What is wrong with the types of a scale's fields.
fn scale_schema(scale: &Value) -> Result<(), String> {
    match types::builtin(("autoscaling", "v1", "Scale")) {
        Some(schema) => schema.check_types(scale).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Whether there is such a kind as the scale says that it is.
fn registered(scale: &Value) -> Result<(), String> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (SCALE_VERSION, "Scale") => Ok(()),
        (version, kind) => Err(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
        )),
    }
}

fn check_scale(scale: &Value) -> Result<(), ApiError> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !matches!(kind, "" | "Scale") {
        let short = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a Scale: converting ({short}.{kind}) to \
             (autoscaling.Scale): unknown conversion"
        )));
    }
    if kind == "Scale" && matches!(version, "extensions/v1beta1" | "apps/v1beta1" | "apps/v1beta2") {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version (autoscaling/v1)"
        )));
    }
    if kind == "Scale" && !matches!(version, "" | "autoscaling/v1") {
        let short = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "Scale in version \"{short}\" cannot be handled as a Scale: no kind \"Scale\" is registered for version \
             \"{version}\" in scheme \"{SCHEME}\""
        )));
    }
    scale_schema(scale).map_err(|problem| {
        ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {problem}"
        ))
    })
}

/// Replaces, patches or applies the scale.
pub(super) async fn put(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let (spec_path, _, _) = paths(context);
    if context.request.verb == Verb::Update {
        // What is sent is read before anybody looks for the object.
        let scale = decode::decode(&context.content_type, body)?;
        check_scale(&scale)?;
        check_name(context, &scale)?;
    }
    let make = |old: &Value| {
        let mut present = of(context, old);
        let owners = shown_owners(entries(old), &spec_path);
        if !owners.is_empty() {
            present["metadata"]["managedFields"] = Value::from(owners);
        }
        let scale = changed(context, &present, body)?;
        check_name(context, &scale)?;
        let namespace = scale.namespace();
        if !namespace.is_empty() && namespace != context.request.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if !context.resource.is_custom() && !scale.uid().is_empty() && scale.uid() != old.uid() {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {}, UID in object meta: {}",
                registry_key(context),
                scale.uid(),
                old.uid()
            );
            return Err(ApiError::conflict(
                &context.resource.group_resource(),
                old.name(),
                &why,
            ));
        }
        let given = scale.resource_version();
        if !given.is_empty() && given != old.resource_version() {
            return Err(ApiError::modified(&context.resource.group_resource(), old.name()));
        }
        let replicas = at(&scale, "spec.replicas")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        check_replicas(context, old, replicas)?;
        let mut object = old.clone();
        set_at(&mut object, &spec_path, Value::from(replicas));
        let owners = kept_owners(
            entries(old),
            entries(&scale),
            &spec_path,
            &context.resource.api_version(),
        );
        if !owners.is_empty() {
            object["metadata"]["managedFields"] = server_side::sorted(&Value::from(owners));
        }
        Ok(object)
    };
    let change = Update {
        make: &make,
        sent: &|_| None,
        ownership: Ownership::Applied,
        unconditional: true,
        judged: false,
    };
    let answer = update(context, &change).await?;
    let object = match &answer.object {
        Shown::Stored(stored) => conversion::from_storage(&context.resource, stored.value.clone()),
        Shown::Made(value) => value.clone(),
    };
    Ok(Answer {
        object: Shown::Made(of(context, &object)),
        ..answer
    })
}

fn check_replicas(context: &Context, old: &Value, replicas: i64) -> Result<(), ApiError> {
    // The replicas of a custom resource are looked at with the whole object.
    if replicas >= 0 || context.resource.is_custom() {
        return Ok(());
    }
    let detail = "must be greater than or equal to 0";
    let error = FieldError::invalid("spec.replicas", replicas, detail);
    Err(ApiError::invalid("autoscaling", "Scale", old.name(), &[error]))
}

/// The scale that the request makes of the present one, with its owners.
fn changed(context: &Context, present: &Value, body: &[u8]) -> Result<Value, ApiError> {
    let schema = types::builtin(("autoscaling", "v1", "Scale")).ok_or_else(ApiError::method_not_allowed)?;
    let now = context.state().now();
    let nothing = FieldSet::default();
    let operation = Operation {
        manager: &context.manager,
        api_version: SCALE_VERSION,
        subresource: "scale",
        now: &now,
        reset_fields: &nothing,
        versions: None,
    };
    let mut scale = if context.request.verb == Verb::Update {
        let mut scale = decode::decode(&context.content_type, body)?;
        check_scale(&scale)?;
        let unknown = schema.prune(&mut scale);
        incoming::tell_unknown(context, &unknown).map_err(|complaint| {
            ApiError::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: {complaint}"
            ))
        })?;
        scale
    } else {
        let kind = PatchKind::of(&context.content_type, context.resource.is_custom())?;
        let patch = decode::yaml(body)?;
        let patched = match kind {
            PatchKind::Apply if context.resource.is_custom() && entries(present).is_empty() => {
                let why = "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, \
                           Kind=Scale) to proper version: request to convert CR to an invalid group/version: \
                           autoscaling/v1";
                return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
            }
            PatchKind::Apply => {
                check_scale(&patch)?;
                let force = context.params.force.unwrap_or(false);
                return server_side::apply(&schema, Some(present), &patch, force, &operation)
                    .map_err(|error| apply_failed(&error));
            }
            PatchKind::Json => json_patch::apply(present, &patch),
            PatchKind::Merge | PatchKind::Strategic => merge::apply(present, &patch),
        };
        let mut patched = patched.map_err(|error| refused(&error))?;
        let problem = match kind {
            // It is read into a scale, whatever it says that it is.
            PatchKind::Strategic => scale_schema(&patched),
            _ => registered(&patched).and_then(|()| scale_schema(&patched)),
        };
        let touched = merge::touched(kind == PatchKind::Json, &patch);
        if let Err(problem) = problem {
            let error = FieldError::invalid("patch", go_json(&patched, &touched, Some(&schema)), problem);
            return Err(ApiError::invalid("", "", "", &[error]));
        }
        let shown = patched.clone();
        let unknown = schema.prune(&mut patched);
        incoming::tell_unknown(context, &unknown).map_err(|complaint| {
            let error = FieldError::invalid("patch", go_json(&shown, &touched, Some(&schema)), complaint);
            ApiError::invalid("", "", "", &[error])
        })?;
        patched
    };
    if let Some(metadata) = scale.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    server_side::track_update(&schema, Some(present), &mut scale, &operation);
    Ok(scale)
}

fn entries(object: &Value) -> &[Value] {
    let entries = object.metadata().and_then(|meta| meta.get("managedFields"));
    entries.and_then(Value::as_array).map_or(&[], Array::as_slice)
}

/// `/f:spec/f:replicas`
fn field_pointer(path: &str) -> String {
    path.split('.').map(|part| format!("/f:{part}")).collect()
}

fn owns(entry: &Value, path: &str) -> bool {
    let fields = entry.get("fieldsV1");
    fields.is_some_and(|fields| fields.pointer(&field_pointer(path)).is_some())
}

/// The owners of an object's replicas as owners of its scale's.
fn shown_owners(parents: &[Value], path: &str) -> Vec<Value> {
    let owners = parents.iter().filter(|entry| owns(entry, path));
    owners
        .map(|entry| with_fields(entry, SCALE_VERSION, "spec.replicas"))
        .collect()
}

fn with_fields(entry: &Value, version: &str, path: &str) -> Value {
    let mut entry = entry.clone();
    let mut fields = json!({});
    for part in path.split('.').rev() {
        let mut outer = Map::new();
        outer.insert(format!("f:{part}"), fields);
        fields = Value::Object(outer);
    }
    entry["fieldsV1"] = fields;
    entry["apiVersion"] = Value::from(version);
    entry
}

/// The owners of an object after those of its scale have changed. Who came to own the replicas through the scale has no
/// time, as in the real server.
fn kept_owners(parents: &[Value], scales: &[Value], path: &str, version: &str) -> Vec<Value> {
    let same = |a: &Value, b: &Value| {
        ["manager", "operation", "subresource"]
            .iter()
            .all(|field| a.get(field) == b.get(field))
    };
    let mut out = Vec::new();
    for parent in parents {
        if !owns(parent, path) || scales.iter().any(|scale| same(scale, parent)) {
            out.push(parent.clone());
            continue;
        }
        let mut left = parent.clone();
        let parts: Vec<String> = path.split('.').map(|part| format!("f:{part}")).collect();
        take_out(&mut left["fieldsV1"], &parts);
        if left["fieldsV1"]
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
        {
            out.push(left);
        }
    }
    for scale in scales {
        if !parents
            .iter()
            .any(|parent| owns(parent, path) && same(scale, parent))
        {
            let mut entry = with_fields(scale, version, path);
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("time");
            }
            out.push(entry);
        }
    }
    out
}

/// Removes a path of fields, and what is empty without it.
fn take_out(fields: &mut Value, path: &[String]) {
    let (Some(map), Some((first, rest))) = (fields.as_object_mut(), path.split_first()) else {
        return;
    };
    if let Some(inner) = map.get_mut(first).filter(|_| !rest.is_empty()) {
        take_out(inner, rest);
        if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    map.remove(first);
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, version: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version, "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    #[test]
    fn replicas_change_hands() {
        let both = json!({"f:spec": {"f:replicas": {}, "f:template": {}}});
        let parents = [
            entry("a", "Apply", "apps/v1", both),
            entry("b", "Update", "apps/v1", json!({"f:spec": {"f:replicas": {}}})),
            entry("c", "Update", "apps/v1", json!({"f:spec": {"f:paused": {}}})),
        ];
        let shown = shown_owners(&parents, "spec.replicas");
        let names: Vec<&str> = shown
            .iter()
            .map(|entry| entry["manager"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(shown[0]["apiVersion"], SCALE_VERSION);

        // Nobody new: all is as it was.
        assert_eq!(kept_owners(&parents, &shown, "spec.replicas", "apps/v1"), parents);

        // Someone takes them: one owner keeps the rest, one is gone.
        let taker = entry("d", "Apply", SCALE_VERSION, json!({"f:spec": {"f:replicas": {}}}));
        let kept = kept_owners(&parents, &[taker], "spec.replicas", "apps/v1");
        let names: Vec<&str> = kept
            .iter()
            .map(|entry| entry["manager"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(names, ["a", "c", "d"]);
        assert_eq!(kept[0]["fieldsV1"], json!({"f:spec": {"f:template": {}}}));
        assert_eq!(
            (kept[2]["apiVersion"].as_str(), kept[2].get("time")),
            (Some("apps/v1"), None)
        );
    }
}
