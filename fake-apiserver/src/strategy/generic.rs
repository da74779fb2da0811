//! Resources that need little of their own.

use serde_json::Value;

use super::Strategy;

#[derive(Clone, Copy)]
pub(super) struct Generic {
    create_on_update: bool,
    returns_object: bool,
    generation: bool,
    /// The generation is that of the beginning.
    generation_stays: bool,
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
/// The generation counts changes.
pub(super) static COUNTED: Generic = Generic {
    generation: true,
    ..Generic::new()
};
/// Priority classes.
pub(super) static PRIORITY_CLASS: Generic = Generic {
    create_on_update: true,
    generation: true,
    generation_stays: true,
    ..Generic::new()
};
impl Generic {
    const fn new() -> Self {
        Self {
            create_on_update: false,
            returns_object: false,
            generation: false,
            generation_stays: false,
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

    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        !self.generation_stays && super::asks_for_something_else(object, old)
    }
}
