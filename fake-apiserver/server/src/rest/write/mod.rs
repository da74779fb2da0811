//! A write of one object, stage by stage: [`Write::run`] is the list.
//!
//! Create, put, patches and writes of subresources all go this way; they differ in the object that they bring. A deletion brings
//! none: it goes from admission ([`attributes`]) to the store ([`replace`]).

mod admit;
mod commit;
mod preconditions;
mod prepare;
mod validate;

use std::sync::Arc;

use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use rules::validation::metadata;
use shared_json::Value;
use store::Stored;

use super::original_body::{self, Sent};
use super::ownership::{Ownership, own};
use super::{device_taints, services};
use crate::admission::{Attributes, Operation};
use crate::authz;
use crate::context::{Answer, Context};
pub(super) use admit::{attributes, keep_system_metadata};
pub(super) use commit::replace;
pub(super) use preconditions::{another_uid, check_name, check_namespace, check_preconditions, registry_key};

/// A change of one object.
pub(crate) struct Update<'a> {
    /// Gives the new object, in the request's version, from the present one.
    pub make: &'a (dyn Fn(&Value) -> Result<Value, ApiError> + Sync),
    /// Gives the new object before it was brought into shape.
    pub sent: Sent<'a>,
    /// Whether the new object brings its own managed fields (server-side apply) or they are derived from the change.
    pub ownership: Ownership,
    /// Whether a missing resource version means "whatever is there" also where the resource forbids that (patches).
    pub unconditional: bool,
    /// Whether admission has judged the request, so that it need not judge the writes that follow from it.
    pub judged: bool,
}

/// A write on its way to the store.
pub(super) struct Write<'a> {
    context: &'a Context,
    /// The new object in the request's version, as the stages make it.
    object: Value,
    base: Base<'a>,
    sent: Sent<'a>,
    ownership: Ownership,
    /// The write as admission sees it, without its objects.
    attributes: Attributes,
}

/// The object that a write changes.
#[derive(Clone, Copy)]
enum Base<'a> {
    /// None: the write makes one.
    New(New<'a>),
    Present(Present<'a>),
}

/// A creation.
#[derive(Clone, Copy)]
struct New<'a> {
    /// The object as it was brought into shape.
    read: &'a Value,
    /// The name that it gets once admission has seen it without.
    generated: Option<&'a str>,
}

/// A change of an object.
#[derive(Clone, Copy)]
struct Present<'a> {
    existing: &'a Arc<Stored>,
    /// The same in the request's version.
    old: &'a Value,
    change: &'a Update<'a>,
    /// Whether the change names the version that it is based on.
    is_based: bool,
}

impl<'a> Write<'a> {
    /// A creation of `object`, which has its metadata. `read` is the object as it was brought into shape, `generated` the name that it
    /// gets if admission gives it none.
    pub(super) fn creation(
        context: &'a Context,
        object: Value,
        (read, generated): (&'a Value, Option<&'a str>),
        (ownership, sent): (Ownership, Sent<'a>),
    ) -> Self {
        // A path may name a custom resource that is created: admission is told that name, and the object keeps its own.
        let name = match (context.request.name.as_str(), object.name()) {
            ("", "") => object.meta_str("generateName"),
            ("", name) | (name, _) => name,
        };
        let attributes = Attributes {
            subresource: String::new(),
            ..attributes(context, Operation::Create, name)
        };
        Self {
            attributes,
            context,
            object,
            base: Base::New(New { read, generated }),
            sent,
            ownership,
        }
    }

    /// A change of `existing`, which is `old` in the request's version, into `object`. `is_based`: the change names the version that it is
    /// based on.
    pub(super) fn change(
        context: &'a Context,
        object: Value,
        (existing, old): (&'a Arc<Stored>, &'a Value),
        (change, is_based): (&'a Update<'a>, bool),
    ) -> Self {
        Self {
            attributes: attributes(context, Operation::Update, &context.request.name),
            context,
            object,
            base: Base::Present(Present {
                existing,
                old,
                change,
                is_based,
            }),
            sent: change.sent,
            ownership: change.ownership,
        }
    }

    /// Takes the object through all stages. `None` if another write came between, and this one names no version that it is based on.
    ///
    /// # Errors
    /// The refusal of the stage that refuses it.
    pub(super) async fn run(mut self) -> Result<Option<Answer>, ApiError> {
        self.normalize();
        self.own().await;
        self.mutate().await?;
        self.check_rights()?;
        self.allocate()?;
        self.prepare();
        self.validate()?;
        self.warn();
        self.settle();
        self.judge().await?;
        self.store().await
    }

    fn old(&self) -> Option<&'a Value> {
        match self.base {
            Base::New(_) => None,
            Base::Present(present) => Some(present.old),
        }
    }

    /// Brings the object into the form in which owners of fields and admission see it.
    fn normalize(&mut self) {
        let duplicates = metadata::dedup_owners(&mut self.object);
        self.context.warnings.tell(duplicates);
        self.context.resource.strategy.normalize(&mut self.object);
        device_taints::stamp(self.context, &mut self.object);
    }

    /// Sets the managed fields, unless the object brings its own.
    async fn own(&mut self) {
        if self.ownership == Ownership::Tracked {
            match self.base {
                Base::New(_) => self.own_new().await,
                Base::Present(present) => own(self.context, Some(present.old), &mut self.object).await,
            }
        }
        if let Base::Present(present) = self.base {
            admit::keep_end(&mut self.object, present.old);
        }
    }

    /// Sets the managed fields of a new object: empty lists that the client sent are owned, too.
    async fn own_new(&mut self) {
        let (context, sent) = (self.context, self.sent);
        let shown = original_body::with_lists_left_out(&context.resource, &self.object, || sent(None));
        let Some(mut shown) = shown else {
            return own(context, None, &mut self.object).await;
        };
        own(context, None, &mut shown).await;
        self.object.copy_meta(&shown, "managedFields");
    }

    /// Refuses roles and bindings that give more than their writer has.
    fn check_rights(&self) -> Result<(), ApiError> {
        authz::escalation::check(self.context, &self.object, self.old())
    }

    /// Gives a service its addresses and ports.
    fn allocate(&mut self) -> Result<(), ApiError> {
        let old = self.old();
        services::give(self.context, &mut self.object, old)
    }

    /// Takes out the fields that the store does not keep, and adds those that it gives back.
    fn settle(&mut self) {
        services::settle(self.context, &mut self.object);
        self.default_again();
    }
}
