//! Update: put, and the change of an object that patches and subresources share with it.

use std::sync::Arc;

use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use shared_json::Value;
use store::Stored;

use super::create::create_shaped;
use super::original_body;
use super::ownership::Ownership;
use super::write::{
    Update, Write, another_uid, check_name, check_namespace, check_preconditions, keep_system_metadata,
};
use crate::context::{Answer, Context};
use crate::message::payload::Payload;
use crate::{conversion, incoming};

/// How often a write that does not depend on a version is tried again when another one came between.
const CONFLICT_RETRIES_MAX: usize = 5;

/// Put: replaces the object that the path names with the one that was sent.
pub(crate) async fn put(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (mut object, warnings) = incoming::read(context, body)?;
    context.warnings.tell(warnings);
    check_namespace(context, &mut object)?;
    check_name(context, &object)?;
    let missing = context
        .state()
        .store
        .get(context.table(), &context.key())
        .is_none();
    if missing
        && context.resource.strategy.allows_create_on_update()
        && (context.request.subresource.is_empty() || is_service_status(context))
    {
        crate::authz::check_create(context)?;
        if !object.uid().is_empty() {
            return Err(another_uid(context, object.uid(), ""));
        }
        // Whichever version it should be based on: there is none.
        object.metadata_mut().remove("resourceVersion");
        return create_shaped(context, object, Ownership::Tracked, &|_| {
            original_body::in_body(context)
        })
        .await;
    }
    let make = |_: &Value| Ok(object.clone());
    update(
        context,
        &Update {
            make: &make,
            sent: &|_| original_body::in_body(context),
            ownership: Ownership::Tracked,
            unconditional: false,
            judged: false,
        },
    )
    .await
}

/// Whether a service's status is written: where there is no service that makes one, without an address.
pub(super) fn is_service_status(context: &Context) -> bool {
    let resource = &context.resource;
    resource.group.is_empty() && resource.plural == "services" && context.request.subresource == "status"
}

/// Applies a change to the object that the path names.
pub(crate) async fn update(context: &Context, change: &Update<'_>) -> Result<Answer, ApiError> {
    for _ in 0..CONFLICT_RETRIES_MAX {
        let existing = context.existing()?;
        if let Some(answer) = attempt(context, change, &existing).await? {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(
        &context.resource.group_resource(),
        &context.request.name,
    ))
}

/// One try; `None` if another write came between and the change has no resource version.
async fn attempt(
    context: &Context,
    change: &Update<'_>,
    existing: &Arc<Stored>,
) -> Result<Option<Answer>, ApiError> {
    let resource = &context.resource;
    conversion::ready(context.state(), resource, std::slice::from_ref(existing)).await?;
    let old: &Value = &conversion::seen_from_storage(resource, &existing.value);
    let mut object = loop {
        let made = (change.make)(old);
        // The owners' view in other versions may have to be asked for.
        if !conversion::asks(resource) || !conversion::ask(context.state(), resource, &context.asked).await {
            break made?;
        }
    };
    let is_based = check_preconditions(context, change, &object, old)?;
    keep_system_metadata(&mut object, old, context.params.dry_run);
    Write::change(context, object, (existing, old), (change, is_based))
        .run()
        .await
}
