//! The texts in which an actor reports its actions.

use serde_json::Value;

use kruise_kit::{ActError, Owner};

/// The messages of events, by their occasion. A text that is absent means that there is no such event.
pub struct Words {
    /// A pod was created.
    pub created: fn(&Owner, &str) -> String,
    /// A pod could not be created.
    pub not_created: fn(&Owner, &str, &Value, &ActError) -> Option<String>,
    /// A claim was created for a pod.
    pub claim_created: fn(&Owner, &str, &str) -> Option<String>,
    /// A claim could not be created for a pod.
    pub claim_not_created: fn(&Owner, &str, &Value, &ActError) -> String,
    /// A pod begins to be updated in place to a revision.
    pub updated_in_place: fn(&str, &str) -> String,
    /// A pod was deleted.
    pub deleted: fn(&Owner, &str) -> String,
    /// A pod could not be deleted; an event for each text.
    pub not_deleted: fn(&Owner, &str, &ActError) -> Vec<String>,
}

/// A pod begins to be updated in place, as most kinds tell it.
pub fn updated_in_place(pod: &str, revision: &str) -> String {
    format!("successfully update pod {pod} in-place(revision {revision})")
}

impl Words {
    /// Those of an actor that neither creates nor deletes pods.
    pub const NONE: Self = Self {
        created: |_, _| String::new(),
        not_created: |_, _, _, _| None,
        claim_created: |_, _, _| None,
        claim_not_created: |_, _, _, _| String::new(),
        updated_in_place,
        deleted: |_, _| String::new(),
        not_deleted: |_, _, _| Vec::new(),
    };
}
