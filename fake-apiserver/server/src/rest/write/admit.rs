//! The stages of admission.

use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use shared_json::Value;

use super::preconditions::{check_namespace, check_version};
use super::{Base, New, Present, Write};
use crate::admission::{self, Attributes, Operation};
use crate::context::Context;
use crate::rest::scale;

/// A write as admission sees it, without its objects.
pub(in crate::rest) fn attributes(context: &Context, operation: Operation, name: &str) -> Attributes {
    let options = match operation {
        Operation::Create => admission::options(&context.params, "CreateOptions"),
        // A patch is an update by then.
        Operation::Update => admission::options(&context.params, "UpdateOptions"),
        Operation::Delete | Operation::Connect => Value::Null,
    };
    Attributes {
        user: context.user.clone(),
        operation,
        resource: context.resource.clone(),
        // What follows the name of a subresource is a path within it.
        subresource: context
            .request
            .subresource
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        namespace: context.request.namespace.clone(),
        name: name.to_owned(),
        object: None,
        old: None,
        dry_run: context.params.dry_run,
        options,
        warnings: context.warnings.clone(),
    }
}

/// The fields that the server alone writes stay as they were, unless the client changes them and is refused for it.
pub(in crate::rest) fn keep_system_metadata(object: &mut Value, old: &Value, dry_run: bool) {
    for field in ["uid", "selfLink", "deletionGracePeriodSeconds"] {
        let absent = object
            .metadata()
            .and_then(|meta| meta.get(field))
            .is_none_or(Value::is_null);
        if absent {
            object.copy_meta(old, field);
        }
    }
    // What the store does not keep is no change, and a dry run does not ask it.
    if !dry_run {
        object.metadata_mut().remove("selfLink");
    }
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        object.copy_meta(old, field);
    }
}

/// The deletion time of an object stays. A writer that sent another one owns the field all the same.
pub(super) fn keep_end(object: &mut Value, old: &Value) {
    if old.is_terminating() {
        object.copy_meta(old, "deletionTimestamp");
    }
}

impl Write<'_> {
    /// Lets mutating admission change the object. Its changes have no owner.
    pub(super) async fn mutate(&mut self) -> Result<(), ApiError> {
        match self.base {
            Base::New(new) => self.mutate_new(new).await,
            Base::Present(present) if present.change.judged => Ok(()),
            Base::Present(present) => self.mutate_present(present).await,
        }
    }

    async fn mutate_new(&mut self, new: New<'_>) -> Result<(), ApiError> {
        let before = self.object.clone();
        self.ask_mutating().await?;
        let is_changed = self.object != before;
        // The server alone says these of an object, whatever a webhook made of it.
        for field in ["uid", "creationTimestamp"] {
            self.object.copy_meta(&before, field);
        }
        if let Some(name) = new.generated.filter(|_| self.object.name().is_empty()) {
            self.object.set_meta("name", name);
        }
        if is_changed {
            self.default();
        }
        check_namespace(self.context, &mut self.object)
    }

    async fn mutate_present(&mut self, present: Present<'_>) -> Result<(), ApiError> {
        let (context, old) = (self.context, present.old);
        // Most writes concern no webhook: for them nothing is copied.
        let before = admission::is_concerned(&context.server, &self.attributes).then(|| self.object.clone());
        if self.is_scale() {
            self.mutate_scale(old).await?;
        } else {
            self.attributes.old = before.as_ref().map(|_| old.clone());
            self.ask_mutating().await?;
        }
        if before.is_some_and(|before| before != self.object) {
            check_namespace(context, &mut self.object)?;
            check_version(context, present.change, &self.object, old)?;
            keep_system_metadata(&mut self.object, old, context.params.dry_run);
            keep_end(&mut self.object, old);
            self.default();
        }
        Ok(())
    }

    /// Whoever judges the change of a scale sees scales.
    async fn mutate_scale(&mut self, old: &Value) -> Result<(), ApiError> {
        let context = self.context;
        self.attributes.old = Some(scale::of(context, old));
        self.attributes.object = Some(scale::of(context, &self.object));
        admission::mutate(&context.server, &mut self.attributes).await?;
        let scaled = self.attributes.object.as_ref().unwrap_or(old);
        scale::validate(context, scaled)?;
        scale::take(context, &mut self.object, scaled);
        Ok(())
    }

    async fn ask_mutating(&mut self) -> Result<(), ApiError> {
        self.attributes.object = Some(std::mem::take(&mut self.object));
        let asked = admission::mutate(&self.context.server, &mut self.attributes).await;
        self.object = self.attributes.object.take().unwrap_or_default();
        asked
    }

    /// Lets validating admission refuse the object.
    pub(super) async fn judge(&mut self) -> Result<(), ApiError> {
        match self.base {
            Base::Present(present) if present.change.judged => return Ok(()),
            Base::Present(_) if self.is_scale() => {
                return admission::validate(&self.context.server, &mut self.attributes).await;
            }
            Base::Present(_) => {}
            Base::New(_) => self.object.name().clone_into(&mut self.attributes.name),
        }
        self.attributes.object = Some(std::mem::take(&mut self.object));
        let judged = admission::validate(&self.context.server, &mut self.attributes).await;
        self.object = self.attributes.object.take().unwrap_or_default();
        judged
    }

    fn is_scale(&self) -> bool {
        self.context.request.subresource == "scale"
    }
}
