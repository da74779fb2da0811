//! Resources that need nothing of their own.

use super::Strategy;

pub(super) struct Generic {
    create_on_update: bool,
    returns_object: bool,
}

/// Nothing special.
pub(super) static PLAIN: Generic = Generic {
    create_on_update: false,
    returns_object: false,
};
/// An update creates the object if it is missing.
pub(super) static CREATE_ON_UPDATE: Generic = Generic {
    create_on_update: true,
    returns_object: false,
};
/// Deleting answers with the object.
pub(super) static RETURNS_OBJECT: Generic = Generic {
    create_on_update: false,
    returns_object: true,
};

impl Strategy for Generic {
    fn allows_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_object
    }
}
