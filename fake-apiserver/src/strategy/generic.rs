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
    /// A change of the labels is a change.
    labels_count: bool,
    /// An update without a version is refused.
    conditional: bool,
}

/// Nothing special.
pub(super) static PLAIN: Generic = Generic::new();
/// An update must name the version that it is based on, or creates the object.
pub(super) static CONDITIONAL_OR_CREATED: Generic = Generic {
    create_on_update: true,
    conditional: true,
    ..Generic::new()
};
/// An update must name the version that it is based on, and changes are counted.
pub(super) static CONDITIONAL_COUNTED: Generic = Generic {
    conditional: true,
    generation: true,
    ..Generic::new()
};
/// An update must name the version that it is based on; deleting answers with the object.
pub(super) static CONDITIONAL_RETURNED: Generic = Generic {
    conditional: true,
    returns_object: true,
    ..Generic::new()
};
/// An update must name the version that it is based on.
pub(super) static CONDITIONAL: Generic = Generic {
    conditional: true,
    ..Generic::new()
};
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
/// Endpoint slices: their labels say whose they are, and count.
pub(super) static WITH_LABELS: Generic = Generic {
    generation: true,
    labels_count: true,
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
            labels_count: false,
            conditional: false,
        }
    }
}

impl Strategy for Generic {
    fn allows_unconditional_update(&self) -> bool {
        !self.conditional
    }

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
        let labels = |object: &Value| object.pointer("/metadata/labels").cloned();
        let labels_differ = self.labels_count && labels(object) != labels(old);
        !self.generation_stays && (labels_differ || super::asks_for_something_else(object, old))
    }
}
