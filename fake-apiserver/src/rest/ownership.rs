//! Who owns which fields: `metadata.managedFields`.

use std::sync::LazyLock;

use serde_json::Value;

use super::context::Context;
use crate::patch::apply::{FieldSet, Operation, track_update};
use crate::strategy::StatusKeeps;

/// How a new version comes by its managed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// They follow from what the write changes.
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
            StatusKeeps::Metadata => &SPEC_AND_METADATA,
        },
        ("finalize", _) => &STATUS,
        ("approval", _) => &SPEC_AND_CERTIFICATE,
        _ => &NOTHING,
    }
}

/// Describes a write to what keeps track of owners.
pub(crate) fn with_operation<T>(context: &Context, act: impl FnOnce(&Operation<'_>) -> T) -> T {
    let (api_version, now) = (context.resource.api_version(), context.state().now());
    act(&Operation {
        manager: &context.manager,
        api_version: &api_version,
        subresource: &context.request.subresource,
        now: &now,
        reset_fields: reset_fields(context),
    })
}

/// Records who owns which fields of `object`, compared with what it was before this write.
pub(crate) fn own(context: &Context, old: Option<&Value>, object: &mut Value) {
    if let Some(schema) = context.resource.schema() {
        with_operation(context, |operation| track_update(&schema, old, object, operation));
    }
}
