//! The stages of validation and of warnings.

use std::borrow::Cow;

use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use rules::validation::{self, metadata};
use shared_json::Value;

use super::{Base, Present, Write};
use crate::authz;
use crate::context::Context;
use crate::conversion;
use crate::message::request::Verb;
use crate::rest::{original_body, schema_rules};

impl Write<'_> {
    /// Refuses an object that is not valid, or a change that may not be made.
    pub(super) fn validate(&self) -> Result<(), ApiError> {
        match self.base {
            // A binding of a pod to its node is written without another look at it.
            Base::Present(_) if self.context.request.subresource == "binding" => Ok(()),
            Base::Present(present) => self.refuse(self.errors_of_change(present)),
            Base::New(_) => self.refuse(self.errors_of_new()),
        }
    }

    fn refuse(&self, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
        if errors.is_empty() {
            return Ok(());
        }
        let resource = &self.context.resource;
        original_body::show_empty(&mut errors, resource.schema().as_deref(), || {
            (self.sent)(self.old())
        });
        Err(ApiError::invalid(
            resource.validated_group(),
            &resource.kind,
            self.object.name(),
            &errors,
        ))
    }

    fn errors_of_new(&self) -> Vec<FieldError> {
        let (context, object) = (self.context, &self.object);
        let resource = &context.resource;
        let mut errors = Vec::new();
        if !resource.is_custom() {
            errors = validation::before_metadata(context.table(), object);
        }
        errors.extend(authz::devices::claimed(context, object));
        // Events of old are refused for what they say before anybody looks at their metadata.
        if errors.is_empty() || !resource.group.is_empty() {
            errors.extend(metadata::validate(resource.of_metadata(), object));
        }
        let measured = self.measured();
        let (complaints, _) = schema_rules::check(resource, "", (&measured, None), &errors);
        errors.extend(complaints);
        if resource.is_custom() {
            errors.extend(resource.strategy.validate_create(object));
        } else {
            let check = |object: &Value| {
                let mut errors = resource.strategy.validate_create(object);
                let object = conversion::validated(resource, object);
                errors.extend(validation::create(context.table(), &object));
                errors
            };
            errors.extend(original_body::check_as_sent(
                resource,
                object,
                || (self.sent)(None),
                check,
            ));
        }
        errors
    }

    /// Tells the warnings about the change as well, whether or not it is refused.
    fn errors_of_change(&self, present: Present<'_>) -> Vec<FieldError> {
        let (context, object, old) = (self.context, &self.object, present.old);
        let resource = &context.resource;
        let mut errors = authz::devices::status(context, object, old);
        errors.extend(metadata::validate_update(
            resource.of_metadata(),
            &context.request.subresource,
            object,
            old,
        ));
        let subresource = context.request.subresource.as_str();
        let measured = self.measured();
        let (mut complaints, warnings) =
            schema_rules::check(resource, subresource, (&measured, Some(old)), &errors);
        if resource.is_custom() && subresource == "status" {
            complaints = schema_rules::of_status(complaints);
        }
        errors.extend(complaints);
        context.warnings.tell(warnings);
        if resource.is_custom() {
            if subresource.is_empty() {
                errors.extend(resource.strategy.validate_update(object, old));
            }
        } else {
            let before = conversion::validated(resource, old);
            let check = |object: &Value| {
                let mut errors = match subresource {
                    "" => resource.strategy.validate_update(object, old),
                    _ => Vec::new(),
                };
                let object = conversion::validated(resource, object);
                errors.extend(validation::update(context.table(), subresource, &object, &before));
                errors
            };
            errors.extend(original_body::check_as_sent(
                resource,
                object,
                || (self.sent)(Some(old)),
                check,
            ));
            errors.extend(metadata::validate_last(resource.of_metadata(), object, old));
        }
        if context.table().resource == "controllerrevisions"
            && errors.iter().all(|error| error.path != "data")
        {
            errors.extend(changed_bytes(context, object, old));
        }
        errors
    }

    /// The object as its schema measures it: numbers that were written as `1.0` are no whole ones until they are stored.
    fn measured(&self) -> Cow<'_, Value> {
        let custom = self.context.resource.custom.as_ref();
        let Some(custom) = custom.filter(|custom| custom.has_fractional_limits) else {
            return Cow::Borrowed(&self.object);
        };
        let Some(sent) = (self.sent)(self.old()) else {
            return Cow::Borrowed(&self.object);
        };
        let mut measured = self.object.clone();
        custom.schema.restore_fractions(&mut measured, &sent);
        Cow::Owned(measured)
    }

    /// Tells the warnings about an object that is valid.
    pub(super) fn warn(&self) {
        let (context, old) = (self.context, self.old());
        if !context.request.subresource.is_empty() && old.is_some() {
            return;
        }
        context.warnings.tell(if context.resource.is_custom() {
            metadata::finalizer_warnings(&self.object, old)
        } else {
            validation::warnings(context.table(), &self.object, old)
        });
    }
}

/// The data of a ControllerRevision is compared byte for byte. Only a put brings bytes of its own; the result of a patch is
/// written anew.
fn changed_bytes(context: &Context, object: &Value, old: &Value) -> Option<FieldError> {
    let data = object.get("data")?;
    let others = |object: &Value| {
        let mut object = object.clone();
        object.metadata_mut().remove("managedFields");
        object
    };
    // An apply that changes nothing leaves all as it is.
    if context.content_type.starts_with("application/apply-patch") && others(object) == others(old) {
        return None;
    }
    let is_put = context.request.verb == Verb::Update;
    let written = is_put.then(|| original_body::revision_data(context)).flatten();
    let differs = written != context.state().revisions.data(old.uid());
    differs.then(|| FieldError::invalid("data", data.clone(), "field is immutable"))
}
