//! Owners in other API versions than that of the write: their fields are compared in their own version.

use super::check;
use super::compare::{Comparison, compare};
use super::field_set::FieldSet;
use super::managed::{Managed, Manager};
use super::operation::{MANAGED_FIELDS, Operation, joined};
use super::types::Type;
use crate::types::Schema;
use shared_json::{Text, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Shows objects in other versions of their kind.
pub trait Versions: fmt::Debug {
    /// The object as `version` has it, and the type there.
    ///
    /// # Errors
    /// It cannot be shown so.
    fn convert(&self, object: &Value, version: &str) -> Result<(Value, Arc<Schema>), Unconvertible>;
}

/// Why an object cannot be shown in another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unconvertible {
    /// The version is unknown: its owners are dropped.
    Unknown,
    /// The conversion's error.
    Refused(String),
}

/// An object in one of its versions.
pub(super) struct Seen<'a> {
    pub(super) object: Cow<'a, Value>,
    schema: Of<'a>,
}

enum Of<'a> {
    Own(&'a Schema),
    Other(Arc<Schema>),
}

impl Seen<'_> {
    pub(super) fn of(&self) -> Type<'_> {
        match &self.schema {
            Of::Own(schema) => Type::Known(schema, false),
            Of::Other(schema) => Type::Known(schema, false),
        }
    }
}

/// The versions of an object: the one that is written in, and the others.
#[derive(Clone, Copy)]
pub(super) struct Views<'a> {
    pub(super) schema: &'a Schema,
    pub(super) version: &'a str,
    others: Option<&'a dyn Versions>,
}

impl<'a> Views<'a> {
    pub(super) fn new(schema: &'a Schema, operation: &Operation<'a>) -> Self {
        Self {
            schema,
            version: operation.api_version,
            others: operation.versions,
        }
    }

    /// Whether owners of that version need a conversion.
    pub(super) fn is_other(&self, version: &str) -> bool {
        self.others.is_some() && version != self.version
    }

    /// An object, in whatever version it is, in another one.
    pub(super) fn see<'v>(&'v self, object: &'v Value, version: &str) -> Result<Seen<'v>, Unconvertible> {
        let is = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(others) = self
            .others
            .filter(|_| self.is_other(version) || self.is_other(is) && !is.is_empty())
        else {
            return Ok(Seen {
                object: Cow::Borrowed(object),
                schema: Of::Own(self.schema),
            });
        };
        let (converted, schema) = others.convert(object, version)?;
        let seen = Seen {
            object: Cow::Owned(converted),
            schema: if version == self.version {
                Of::Own(self.schema)
            } else {
                Of::Other(schema)
            },
        };
        let mut problems = check::check(seen.of(), &seen.object);
        problems.retain(|problem| !problem.contains("duplicate entries for key"));
        match joined(problems) {
            Some(problems) => Err(Unconvertible::Refused(problems)),
            None => Ok(seen),
        }
    }
}

/// The changes of a write, in the versions of all owners.
pub(super) struct Changes {
    pub(super) own: Comparison,
    others: BTreeMap<Text, Comparison>,
}

impl Changes {
    /// Compares in the versions of all owners but `actor`. Owners in unknown versions are dropped.
    ///
    /// # Errors
    /// An object cannot be shown in one of the versions.
    pub(super) fn new(
        views: &Views<'_>,
        (old, new): (&Value, &Value),
        own: Comparison,
        managed: &mut Managed,
        (actor, reset_fields): (Option<&Manager>, &FieldSet),
    ) -> Result<Self, String> {
        let mut others = BTreeMap::new();
        let foreign: Vec<(Manager, Text)> = managed
            .0
            .iter()
            .filter(|(manager, owned)| Some(*manager) != actor && views.is_other(&owned.version))
            .map(|(manager, owned)| (manager.clone(), owned.version.clone()))
            .collect();
        for (manager, version) in foreign {
            if others.contains_key(&version) {
                continue;
            }
            let see = |what: &str, object| match views.see(object, &version) {
                Ok(seen) => Ok(Some(seen)),
                Err(Unconvertible::Unknown) => Ok(None),
                Err(Unconvertible::Refused(why)) => Err(format!("failed to convert {what} object: {why}")),
            };
            let (Some(old), Some(new)) = (see("old", old)?, see("new", new)?) else {
                managed.0.remove(&manager);
                continue;
            };
            let mut found = compare(new.of(), &old.object, &new.object).without(&MANAGED_FIELDS);
            // What a custom resource's other versions do not take through this path is not known.
            if views.schema.name.is_some() {
                found = found.without(reset_fields);
            }
            others.insert(version, found);
        }
        Ok(Self { own, others })
    }

    /// The changes that an owner in that version sees.
    pub(super) fn seen_in(&self, version: &str) -> &Comparison {
        self.others.get(version).unwrap_or(&self.own)
    }
}
