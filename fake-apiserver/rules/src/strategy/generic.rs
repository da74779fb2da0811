//! Resources that need little code of their own: a table of traits holds their differences.

use machinery::meta::ObjectMeta;
use shared_json::{Map, Value};

use super::{Strategy, copy_field};

/// The changes that `metadata.generation` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// It is whatever the client says at the beginning.
    Nothing,
    /// It starts at 1 and stays.
    Stays,
    /// It starts at 1 and counts changes outside metadata and status.
    Changes,
    /// The same, and changes of labels.
    ChangesAndLabels,
    /// The same, and changes of annotations.
    ChangesAndAnnotations,
    /// It starts as the client says and counts changes outside metadata and status.
    OnlyChanges,
}

/// The parts that an update of the status leaves as they were, besides the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKeeps {
    /// The spec alone: metadata may change.
    Spec,
    /// The labels too.
    Labels,
    /// The part of the metadata that clients may write.
    Metadata,
    /// All of the metadata but `managedFields`.
    All,
}

#[derive(Clone, Copy)]
pub(super) struct Generic {
    create_on_update: bool,
    needs_version: bool,
    returns_object: bool,
    orphans: bool,
    counts: Counts,
    counts_empty: bool,
    status_keeps: StatusKeeps,
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
/// An update must say which version it is based on.
pub(super) static NEEDS_VERSION: Generic = Generic {
    needs_version: true,
    ..Generic::new()
};
/// The generation counts changes.
pub(super) static COUNTED: Generic = Generic {
    counts: Counts::Changes,
    ..Generic::new()
};
pub(super) static COUNTED_RETURNED: Generic = Generic {
    returns_object: true,
    ..COUNTED
};
pub(super) static COUNTED_NEEDS_VERSION: Generic = Generic {
    needs_version: true,
    ..COUNTED
};
/// The resource that the real server compares strictly; so it does webhook configurations.
pub(super) static NETWORK_POLICY: Generic = Generic {
    counts_empty: true,
    ..COUNTED
};
pub(super) static WEBHOOK_CONFIGURATION: Generic = Generic {
    counts_empty: true,
    ..COUNTED_NEEDS_VERSION
};
pub(super) static DEPLOYMENT: Generic = Generic {
    counts: Counts::ChangesAndAnnotations,
    status_keeps: StatusKeeps::Labels,
    ..Generic::new()
};
pub(super) static REPLICATION_CONTROLLER: Generic = Generic {
    orphans: true,
    ..COUNTED
};
pub(super) static ENDPOINT_SLICE: Generic = Generic {
    counts: Counts::ChangesAndLabels,
    ..Generic::new()
};
pub(super) static PRIORITY_CLASS: Generic = Generic {
    counts: Counts::Stays,
    ..Generic::new()
};
/// Leases and runtime classes.
pub(super) static CREATE_OR_NEEDS_VERSION: Generic = Generic {
    create_on_update: true,
    needs_version: true,
    ..Generic::new()
};
pub(super) static VALIDATING_POLICY: Generic = Generic {
    status_keeps: StatusKeeps::Metadata,
    ..COUNTED_NEEDS_VERSION
};
pub(super) static FLOW_CONTROL: Generic = Generic {
    status_keeps: StatusKeeps::All,
    ..COUNTED
};
pub(super) static SERVICE_CIDR: Generic = Generic {
    status_keeps: StatusKeeps::Metadata,
    ..Generic::new()
};
pub(super) static RESOURCE_CLAIM: Generic = Generic {
    status_keeps: StatusKeeps::Metadata,
    ..RETURNS_OBJECT
};
pub(super) static VOLUME_ATTACHMENT: Generic = Generic {
    needs_version: true,
    ..RESOURCE_CLAIM
};
pub(super) static CSI_NODE: Generic = Generic {
    needs_version: true,
    ..RETURNS_OBJECT
};
pub(super) static CSI_DRIVER: Generic = Generic {
    counts: Counts::OnlyChanges,
    ..CSI_NODE
};

impl Generic {
    const fn new() -> Self {
        Self {
            create_on_update: false,
            needs_version: false,
            returns_object: false,
            orphans: false,
            counts: Counts::Nothing,
            counts_empty: false,
            status_keeps: StatusKeeps::Spec,
        }
    }
}

impl Strategy for Generic {
    fn allows_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allows_unconditional_update(&self) -> bool {
        !self.needs_version
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_object
    }

    fn orphans_by_default(&self) -> bool {
        self.orphans
    }

    fn has_generation(&self) -> bool {
        !matches!(self.counts, Counts::Nothing | Counts::OnlyChanges)
    }

    fn status_keeps(&self) -> StatusKeeps {
        self.status_keeps
    }

    fn counts_empty(&self) -> bool {
        self.counts_empty
    }

    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        let changed = |field: &str| meta_map(object, field) != meta_map(old, field);
        match self.counts {
            Counts::Nothing | Counts::Stays => false,
            Counts::Changes | Counts::OnlyChanges => super::asks_for_something_else(object, old),
            Counts::ChangesAndLabels => super::asks_for_something_else(object, old) || changed("labels"),
            Counts::ChangesAndAnnotations => {
                super::asks_for_something_else(object, old) || changed("annotations")
            }
        }
    }
}

/// A map of the metadata; an empty one is none.
fn meta_map<'a>(object: &'a Value, field: &str) -> Option<&'a Map> {
    let map = object.metadata()?.get(field)?.as_object()?;
    Some(map).filter(|map| !map.is_empty())
}

/// Puts back the parts that an update of the status may not change.
pub(super) fn keep_all_but_status(keeps: StatusKeeps, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    match keeps {
        StatusKeeps::Spec => {}
        StatusKeeps::Labels => object.copy_meta(old, "labels"),
        StatusKeeps::Metadata => reset_metadata(object, old),
        StatusKeeps::All => {
            let sent = object.clone();
            object["metadata"] = old.get("metadata").cloned().unwrap_or_default();
            object.copy_meta(&sent, "managedFields");
        }
    }
}

/// Puts back the metadata that a write of a subresource cannot change.
pub(super) fn reset_metadata(object: &mut Value, old: &Value) {
    for field in [
        "deletionTimestamp",
        "generation",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        object.copy_meta(old, field);
    }
}

/// Service accounts: of the secrets that they name, the name alone is kept.
pub(super) struct AccountStrategy;

impl AccountStrategy {
    fn names_only(object: &mut Value) {
        let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
            secret.retain(|field, _| field == "name");
        }
    }
}

impl Strategy for AccountStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        Self::names_only(object);
    }

    fn prepare_update(&self, object: &mut Value, _old: &Value) {
        Self::names_only(object);
    }
}
