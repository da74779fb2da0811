//! Resources that need little of their own.

use serde_json::Value;

use super::{Strategy, immutable};
use crate::field_error::FieldError;

#[derive(Clone, Copy)]
pub(super) struct Generic {
    create_on_update: bool,
    returns_object: bool,
    generation: bool,
    /// Fields that no update may change, and what an update that does is told.
    immutable: &'static [(&'static str, immutable::Words)],
}

/// Nothing special.
pub(super) static PLAIN: Generic = Generic::new();
/// An update creates the object if it is missing.
pub(super) static CREATE_ON_UPDATE: Generic = Generic {
    create_on_update: true,
    ..Generic::new()
};
/// Deleting answers with the object.
pub(super) static RETURNS_OBJECT: Generic = Generic {
    returns_object: true,
    ..Generic::new()
};
/// Endpoint slices.
pub(super) static COUNTED: Generic = Generic {
    generation: true,
    ..Generic::new()
};
/// Priority classes.
pub(super) static PRIORITY_CLASS: Generic = Generic {
    create_on_update: true,
    generation: true,
    immutable: &[(
        "value",
        immutable::Words::Forbidden("may not be changed in an update."),
    )],
    ..Generic::new()
};
/// Storage classes.
pub(super) static STORAGE_CLASS: Generic = Generic {
    returns_object: true,
    immutable: &[
        ("parameters", immutable::Words::Immutable),
        ("provisioner", immutable::Words::Immutable),
        ("reclaimPolicy", immutable::Words::Immutable),
        ("volumeBindingMode", immutable::Words::Immutable),
    ],
    ..Generic::new()
};
/// Bindings of roles.
pub(super) static ROLE_BINDING: Generic = Generic {
    create_on_update: true,
    immutable: &[("roleRef", immutable::Words::RoleRef)],
    ..Generic::new()
};

impl Generic {
    const fn new() -> Self {
        Self {
            create_on_update: false,
            returns_object: false,
            generation: false,
            immutable: &[],
        }
    }
}

impl Strategy for Generic {
    fn allows_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_object
    }

    fn has_generation(&self) -> bool {
        self.generation
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable::check(self.immutable, object, old)
    }
}
