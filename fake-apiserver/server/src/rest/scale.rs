//! The scale of an object: its actual and desired replicas, as an object of its own.
//!
//! The owners of the replicas are in the managed fields of the scaled object, and translated to those of the scale
//! and back, so that an apply of a scale conflicts with other writers of the replicas.

use std::sync::Arc;

use http::StatusCode;
use machinery::go_json;
use machinery::meta::{ObjectMeta, at};
use machinery::patch::apply::{self as server_side, FieldSet, Operation};
use machinery::patch::{json as json_patch, merge, strategic};
use machinery::status::ApiError;
use machinery::types::{self, Schema};
use pod_rules::field_error::FieldError;
use rules::validation::metadata;
use shared_json::{Array, Map, Value, json};

use super::ownership::Ownership;
use super::patch::PatchKind;
use super::subresource_body::Taken;
use super::update::update;
use super::write::{Update, check_name, registry_key};
use super::{patch, subresource_body};
use crate::context::{Answer, Context, Shown};
use crate::encode::cells::label_selector_text;
use crate::incoming::kind_check::{self, SCHEME};
use crate::message::payload::Payload;
use crate::message::request::Verb;
use crate::{conversion, incoming};

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

/// The scale of an object in an answer: a custom resource must have the number of desired replicas.
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

/// Whether the scale's `kind` and `apiVersion` can be read and are registered.
fn registered(scale: &Value) -> Result<(), String> {
    kind_check::readable(scale)?;
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (SCALE_VERSION, "Scale") => Ok(()),
        (version, kind) => Err(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
        )),
    }
}

/// Scales have been of other groups, too, and are not of those that never were.
fn check_version(scale: &Value) -> Result<(), ApiError> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let is_none = version.matches('/').count() > 1;
    if !matches!(text("kind"), "" | "Scale") || is_none || matches!(version, "" | SCALE_VERSION) {
        return Ok(());
    }
    if matches!(version, "extensions/v1beta1" | "apps/v1beta1" | "apps/v1beta2") {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({SCALE_VERSION})"
        )));
    }
    let short = version.rsplit('/').next().unwrap_or_default();
    Err(ApiError::bad_request(format!(
        "Scale in version \"{short}\" cannot be handled as a Scale: no kind \"Scale\" is registered for version \
         \"{version}\" in scheme \"{SCHEME}\""
    )))
}

const SCALE: Taken = Taken {
    kind: "Scale",
    package: "autoscaling",
    group: "autoscaling",
};

/// The scale that a request asks for.
enum Asked {
    Put(Value),
    Patch(PatchKind),
}

/// Reads the body of a put, and finds the kind of a patch.
fn asked(context: &Context, body: &Payload) -> Result<Asked, ApiError> {
    if context.request.verb != Verb::Update {
        let kind = PatchKind::of(&context.content_type, context.resource.is_custom())?;
        return Ok(Asked::Patch(kind));
    }
    // What is sent is read before anybody looks for the object.
    let scale = body.options(&context.content_type)?;
    if let Err(complaint) = kind_check::readable(&scale) {
        return Err(incoming::unrecognized(SCALE.kind, &complaint, body));
    }
    check_version(&scale)?;
    let scale = subresource_body::take(context, scale, body, SCALE)?;
    check_name(context, &scale)?;
    Ok(Asked::Put(scale))
}

/// Replaces, patches or applies the scale.
pub(super) async fn put(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (spec_path, _, _) = paths(context);
    let asked = asked(context, body)?;
    let make = |old: &Value| {
        let mut present = of(context, old);
        let owners = shown_owners(entries(old), &spec_path);
        if !owners.is_empty() {
            present["metadata"]["managedFields"] = Value::from(owners);
        }
        let scale = changed(context, &present, &asked, body)?;
        let namespace = scale.namespace();
        if !namespace.is_empty() && namespace != context.request.namespace {
            return Err(ApiError::other_namespace());
        }
        check_name(context, &scale)?;
        validate(context, &scale)?;
        let is_other = !context.resource.is_custom() && !scale.uid().is_empty() && scale.uid() != old.uid();
        if is_other && context.request.verb == Verb::Patch {
            let mut table = context.resource.group_resource();
            table.resource = format!("{}/scale", table.resource).into();
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                scale.uid(),
                old.uid()
            );
            return Err(ApiError::conflict(&table, old.name(), &why));
        }
        if is_other {
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
        let replicas = at(&scale, "spec.replicas")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let mut object = old.clone();
        let given = scale.resource_version();
        if !given.is_empty() || !context.resource.is_custom() {
            object.set_meta("resourceVersion", given.to_owned());
        }
        set_at(&mut object, &spec_path, Value::from(replicas));
        let owners = kept_owners(
            entries(old),
            entries(&scale),
            &spec_path,
            &context.resource.api_version(),
        );
        if !owners.is_empty() {
            object["metadata"]["managedFields"] = in_order(owners);
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

/// The errors in a scale, which a webhook may have made.
pub(super) fn validate(context: &Context, scale: &Value) -> Result<(), ApiError> {
    // A custom resource is looked at as a whole.
    if context.resource.is_custom() {
        return Ok(());
    }
    let mut errors = metadata::validate_scale(scale);
    if let Some(replicas) = at(scale, "spec.replicas")
        .and_then(Value::as_i64)
        .filter(|replicas| *replicas < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", replicas, detail));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        "autoscaling",
        "Scale",
        &context.request.name,
        &errors,
    ))
}

/// The scale that the request makes of the present one, with its owners.
fn changed(context: &Context, present: &Value, asked: &Asked, body: &Payload) -> Result<Value, ApiError> {
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
    let mut scale = match asked {
        Asked::Put(scale) => scale.clone(),
        Asked::Patch(PatchKind::Apply) => return applied(context, &schema, present, body, &operation),
        Asked::Patch(kind) => patched(context, &schema, *kind, present, body)?,
    };
    scale["apiVersion"] = Value::from(SCALE_VERSION);
    scale["kind"] = Value::from("Scale");
    if let Some(metadata) = scale.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    // Where nobody owns the replicas, nobody comes to own them but by an apply.
    if entries(present).is_empty() {
        return Ok(scale);
    }
    server_side::track_update(&schema, Some(present), &mut scale, &operation);
    Ok(scale)
}

fn patched(
    context: &Context,
    schema: &Arc<Schema>,
    kind: PatchKind,
    present: &Value,
    body: &Payload,
) -> Result<Value, ApiError> {
    let (document, mut complaints) = patch::read(context, kind, body)?;
    let patched = match kind {
        PatchKind::Json => json_patch::apply(present, &document),
        PatchKind::Strategic => strategic::apply(schema, present, &document),
        PatchKind::Merge | PatchKind::Apply => merge::apply(present, &document),
    };
    let mut scale = patched.map_err(|error| patch::refused(&error))?;
    let shown = scale.clone();
    let touched = merge::touched(kind == PatchKind::Json, &document);
    let undecodable =
        |complaint: String| patch::undecodable_patch(kind, (&touched, Some(schema)), &shown, &complaint);
    // What is merged by its type is read into a scale, whatever it says that it is.
    if kind != PatchKind::Strategic {
        registered(&scale).map_err(undecodable)?;
    }
    let unknown = schema.prune(&mut scale);
    complaints.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    schema
        .check_types(&scale)
        .map_err(|error| undecodable(error.to_string()))?;
    schema.canonicalize_changed(&mut scale, None);
    let told = incoming::judged(context, complaints).map_err(|complaint| match kind {
        PatchKind::Strategic => patch::refused_strictly(present, &document, complaint),
        _ => undecodable(complaint),
    })?;
    context.warnings.tell(told);
    Ok(scale)
}

fn applied(
    context: &Context,
    schema: &Arc<Schema>,
    present: &Value,
    body: &Payload,
    operation: &Operation<'_>,
) -> Result<Value, ApiError> {
    let go_json::Document {
        value: applied,
        duplicates,
    } = patch::configuration(body)?;
    patch::check_type(&applied, (SCALE_VERSION, "Scale"))?;
    if context.resource.is_custom() && entries(present).is_empty() {
        let why = "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, \
                   Kind=Scale) to proper version: request to convert CR to an invalid group/version: \
                   autoscaling/v1";
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
    }
    let force = context.params.force.unwrap_or(false);
    let mut scale = server_side::apply(schema, Some(present), &applied, force, operation)
        .map_err(|error| patch::apply_failed(&error))?;
    strategic::restore::narrow(schema, &mut scale);
    strategic::restore::check(schema, &scale)
        .map_err(|complaint| patch::unconvertible(&applied, &complaint))?;
    patch::check_repeated(context, &duplicates)?;
    Ok(scale)
}

fn entries(object: &Value) -> &[Value] {
    let entries = object.metadata().and_then(|meta| meta.get("managedFields"));
    entries.map_or(&[], entries_of)
}

fn entries_of(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Array::as_slice)
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
    let owners = told_apart(parents).into_iter().filter(|entry| owns(entry, path));
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

/// Of owners that differ in nothing but their time, the last: the others are lost when they are read.
fn told_apart(owners: &[Value]) -> Vec<&Value> {
    let same = |a: &Value, b: &Value| {
        ["manager", "operation", "subresource", "apiVersion"]
            .iter()
            .all(|field| a.get(field) == b.get(field))
    };
    let mut rest = owners.iter();
    let mut out = Vec::new();
    while let Some(owner) = rest.next() {
        if !rest.as_slice().iter().any(|later| same(owner, later)) {
            out.push(owner);
        }
    }
    out
}

/// The owners of an object after those of its scale have changed. An owner that got the replicas through the scale has no
/// time, as in the real server, nor has one that keeps them: only appliers are the same owner in both versions.
fn kept_owners(parents: &[Value], scales: &[Value], path: &str, version: &str) -> Vec<Value> {
    let same = |a: &Value, b: &Value| {
        a.get("operation").and_then(Value::as_str) == Some("Apply")
            && ["manager", "operation", "subresource"]
                .iter()
                .all(|field| a.get(field) == b.get(field))
    };
    let mut out = Vec::new();
    for parent in told_apart(parents) {
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

/// Owners in their order. One without a time that is otherwise equal to another is the first of the updaters.
fn in_order(owners: Vec<Value>) -> Value {
    if told_apart(&owners).len() == owners.len() {
        return server_side::sorted(&Value::from(owners));
    }
    let (fresh, rest): (Vec<Value>, Vec<Value>) =
        owners.into_iter().partition(|owner| owner.get("time").is_none());
    let rest = server_side::sorted(&Value::from(rest));
    let (applied, written): (Vec<Value>, Vec<Value>) = entries_of(&rest)
        .iter()
        .cloned()
        .partition(|owner| owner.get("operation").and_then(Value::as_str) == Some("Apply"));
    Value::from([applied, fresh, written].concat())
}

/// Removes a path of fields, and the parents that become empty.
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

        // Nobody new: who applied them keeps them, and who wrote them has them from now on.
        let kept = kept_owners(&parents, &shown, "spec.replicas", "apps/v1");
        assert_eq!(kept[0], parents[0]);
        assert_eq!(kept[1], parents[2]);
        assert_eq!(
            (kept[2]["manager"].as_str(), kept[2].get("time")),
            (Some("b"), None)
        );

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
