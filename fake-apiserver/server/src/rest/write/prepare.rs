//! The stage that brings an object into the form of its kind's strategy, and fills in its defaults.

use machinery::meta::ObjectMeta as _;
use rules::strategy::{app_armor, disabled, keep_all_but, resource_claim, signing, storage};
use shared_json::{Map, Value};

use super::{Base, New, Present, Write};
use crate::context::Context;
use crate::rest::original_body;

impl Write<'_> {
    /// Applies the strategy of the resource: the parts that this write may not change stay, the generation counts.
    pub(super) fn prepare(&mut self) {
        match self.base {
            Base::New(new) => self.prepare_new(new),
            Base::Present(present) => self.prepare_present(present),
        }
    }

    fn prepare_new(&mut self, new: New<'_>) {
        let (context, object) = (self.context, &mut self.object);
        let resource = &context.resource;
        if is_builtin(context, "pods") {
            context.warnings.tell(app_armor::warnings(object, ""));
        }
        // A status that the client sent does not become the object's.
        if resource.has_status() && !resource.is_custom() && object.get("status").is_none() {
            object["status"] = Value::Object(Map::new());
        }
        if resource.has_status() || !resource.is_custom() {
            resource.strategy.prepare_create(object);
        }
        if !resource.is_custom() {
            disabled::drop(context.table(), object, None);
        }
        if is_builtin(context, "certificatesigningrequests") {
            signing::set_requester(object, &context.user);
        }
        if resource.strategy.has_generation() {
            object.set_meta("generation", 1);
        }
        // These alone get a name if they have none.
        if is_builtin(context, "limitranges") && object.name().is_empty() {
            object.set_meta("name", context.state().new_uid());
        }
        // What the strategy wrote takes the form in which Go's encoder would write it.
        if let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) {
            schema.canonicalize_changed(object, Some(new.read));
        }
    }

    fn prepare_present(&mut self, present: Present<'_>) {
        let (context, sent, old) = (self.context, self.sent, present.old);
        let object = &mut self.object;
        let strategy = context.resource.strategy;
        match context.request.subresource.as_str() {
            "" if context.resource.has_status() || !context.resource.is_custom() => {
                strategy.prepare_update(object, old);
            }
            "status" => strategy.prepare_status_update(object, old),
            "approval" => signing::keep_conditions(object, old),
            part @ ("ephemeralcontainers" | "resize") => keep_all_but(part, object, old),
            _ => {}
        }
        if context.table().resource == "certificatesigningrequests" && !context.request.subresource.is_empty()
        {
            signing::stamp(object, old, &context.state().now());
        }
        if context.table().resource == "resourceclaims" && context.request.subresource == "status" {
            resource_claim::drop_freed(object, old);
        }
        if context.table().resource == "persistentvolumes" && context.request.subresource == "status" {
            storage::stamp_phase(object, &context.state().now());
        }
        if context.request.subresource == "status" && !context.resource.is_custom() {
            disabled::drop_of_status(context.table(), object, Some(old));
        }
        // Endpoint slices are compared before what they may no longer say is taken out.
        let before_drop =
            context.table().resource == "endpointslices" && strategy.changes_generation(object, old);
        if context.request.subresource.is_empty() && !context.resource.is_custom() {
            disabled::drop(context.table(), object, Some(old));
        }
        // Without a subresource of its own the status of a custom resource is a field as any other.
        let is_plain_status = context.resource.is_custom() && !context.resource.has_status();
        let changes = || {
            before_drop
                || is_plain_status && object.get("status") != old.get("status")
                || strategy.changes_generation(object, old)
                || strategy.counts_empty()
                    && original_body::says_empty(&context.resource, sent(Some(old)).as_ref())
        };
        if context.request.subresource != "status" && changes() {
            object.set_meta("generation", old.generation() + 1);
        }
    }

    /// Fills in the defaults of the resource's schema.
    pub(super) fn default(&mut self) {
        if let Some(schema) = self.context.resource.schema() {
            schema.default(&mut self.object);
        }
    }

    /// The real store gives back an object that is defaulted once more: a job without labels gets those that its template got
    /// meanwhile.
    pub(super) fn default_again(&mut self) {
        let is_again = match self.base {
            Base::New(_) => is_builtin(self.context, "jobs"),
            Base::Present(_) => {
                let metadata = self.object.metadata();
                is_labelled_as_template(self.context)
                    && metadata.is_some_and(|metadata| !metadata.contains_key("labels"))
            }
        };
        if is_again {
            self.default();
        }
    }
}

/// Whether the write is of a built-in resource of this name.
fn is_builtin(context: &Context, plural: &str) -> bool {
    context.table().resource == plural && !context.resource.is_custom()
}

/// Whether an object without labels has those of its template.
fn is_labelled_as_template(context: &Context) -> bool {
    let resource = &context.resource;
    let names = (resource.group.as_str(), resource.plural.as_str());
    !resource.is_custom() && matches!(names, ("", "replicationcontrollers") | ("batch", "jobs"))
}
