//! The messages of events about CloneSets.

use crate::pods::actor::{Words, updated_in_place};
use crate::pods::template::to_go_json;

/// The messages of events.
pub(crate) const WORDS: Words = Words {
    created: |_, pod| format!("succeed to create pod {pod}"),
    not_created: |_, _, pod, error| Some(format!("failed to create pod: {error}, pod: {}", to_go_json(pod))),
    claim_created: |_, _, _| None,
    claim_not_created: |_, _, claim, error| {
        format!("failed to create pvc: {error}, pvc: {}", to_go_json(claim))
    },
    updated_in_place,
    deleted: |_, pod| format!("succeed to delete pod {pod}"),
    not_deleted: |_, pod, error| vec![format!("failed to delete pod {pod}: {error}")],
};
