//! Owners of fields: `metadata.managedFields`.

use std::fmt;
use std::sync::{Arc, LazyLock};

use machinery::patch::apply::{FieldSet, Operation, Unconvertible, Versions, track_update};
use machinery::types::{self, Schema};
use rules::strategy::StatusKeeps;
use shared_json::Value;

use crate::context::Context;
use crate::conversion;

/// How a new version comes by its managed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// They follow from the fields that the write changes.
    Tracked,
    /// The object brings them: a server-side apply.
    Applied,
}

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["status"]]));
static SPEC_AND_STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["spec"], &["status"]]));
static SPEC_AND_CERTIFICATE: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(&[&["spec"], &["status", "certificate"]]));
static SPEC_AND_CONDITIONS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(&[&["spec"], &["status", "conditions"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["spec"]]));
static SPEC_AND_LABELS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(&[&["spec"], &["metadata", "labels"]]));
static SPEC_AND_METADATA: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["spec"], &["metadata"]]));
static SPEC_AND_OWNERS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["spec"],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
    ])
});

/// The fields that a write through this resource or subresource cannot change.
fn reset_fields(context: &Context) -> &'static FieldSet {
    let resource = &context.resource;
    let kind = if resource.is_custom() {
        ""
    } else {
        context.table().resource.as_str()
    };
    match (context.request.subresource.as_str(), kind) {
        ("", "certificatesigningrequests") => &SPEC_AND_STATUS,
        ("", _) if resource.has_status() => &STATUS,
        ("status", "certificatesigningrequests") => &SPEC_AND_CONDITIONS,
        ("status", "pods") => &SPEC_AND_OWNERS,
        ("status", _) => match resource.strategy.status_keeps() {
            StatusKeeps::Spec => &SPEC,
            StatusKeeps::Labels => &SPEC_AND_LABELS,
            StatusKeeps::Metadata | StatusKeeps::All => &SPEC_AND_METADATA,
        },
        ("finalize", _) => &STATUS,
        ("approval", _) => &SPEC_AND_CERTIFICATE,
        _ => &NOTHING,
    }
}

/// The other versions of a request's resource.
struct OtherVersions<'a>(&'a Context);

impl fmt::Debug for OtherVersions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherVersions")
    }
}

impl Versions for OtherVersions<'_> {
    fn convert(&self, object: &Value, version: &str) -> Result<(Value, Arc<Schema>), Unconvertible> {
        let resource = &self.0.resource;
        let is = object.get("apiVersion").and_then(Value::as_str);
        let Some(custom) = &resource.custom else {
            let short = version
                .strip_prefix("autoscaling/")
                .ok_or(Unconvertible::Unknown)?;
            let schema = types::builtin((&resource.group, short, &resource.kind));
            let schema = schema.ok_or(Unconvertible::Unknown)?;
            return Ok((conversion::between_autoscalers(object.clone(), version), schema));
        };
        let schema = custom.family.get(version).ok_or_else(|| {
            Unconvertible::Refused(format!(
                "request to convert CR to an invalid group/version: {version}"
            ))
        })?;
        let converted = match &custom.hook {
            Some(_) if is != Some(version) => self
                .0
                .asked
                .answer(object, version)
                .map_err(Unconvertible::Refused)?,
            _ => {
                let mut object = object.clone();
                object["apiVersion"] = Value::from(version);
                object
            }
        };
        Ok((converted, Arc::clone(schema)))
    }
}

/// Describes a write to the tracker of managed fields.
pub(crate) fn with_operation<T>(context: &Context, act: impl FnOnce(&Operation<'_>) -> T) -> T {
    let (api_version, now) = (context.resource.api_version(), context.state().now());
    let others = OtherVersions(context);
    let has_others = context.resource.is_custom() || context.resource.group == "autoscaling";
    act(&Operation {
        manager: &context.manager,
        api_version: &api_version,
        subresource: &context.request.subresource,
        now: &now,
        reset_fields: reset_fields(context),
        versions: has_others.then_some(&others as &dyn Versions),
    })
}

/// Sets the managed fields of a new object of a built-in kind.
pub(crate) fn own_new(context: &Context, object: &mut Value) {
    if let Some(schema) = context.resource.schema() {
        with_operation(context, |operation| {
            track_update(&schema, None, object, operation)
        });
    }
}

/// The same for the body of a subresource that takes a kind of its own.
pub(crate) fn own_posted(context: &Context, object: &mut Value, (group, kind): (&str, &str)) {
    let version = format!("{group}/v1");
    if let Some(schema) = types::builtin((group, "v1", kind)) {
        with_operation(context, |operation| {
            let operation = Operation {
                api_version: &version,
                reset_fields: &NOTHING,
                versions: None,
                ..*operation
            };
            track_update(&schema, None, object, &operation);
        });
    }
}

/// Sets the managed fields of `object`, compared with the stored one.
pub(crate) async fn own(context: &Context, old: Option<&Value>, object: &mut Value) {
    let Some(schema) = context.resource.schema() else {
        return;
    };
    conversion::imply_target(&context.resource, object);
    let track = |object: &mut Value| {
        with_operation(context, |operation| track_update(&schema, old, object, operation))
    };
    if !conversion::asks(&context.resource) {
        return track(object);
    }
    loop {
        let mut tracked = object.clone();
        track(&mut tracked);
        if !conversion::ask(context.state(), &context.resource, &context.asked).await {
            *object = tracked;
            return;
        }
    }
}
