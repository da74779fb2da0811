//! The messages of events about DaemonSets.

use crate::kit::Kind;
use crate::pods::actor::Words;

/// The messages of events.
pub(in crate::workloads::daemonset) const WORDS: Words = Words {
    created: |_, pod| format!("Created pod: {pod}"),
    not_created: |_, _, _, error| {
        (error.kind != Kind::NamespaceEnds).then(|| format!("Error creating: {error}"))
    },
    claim_created: |_, _, _| None,
    claim_not_created: |_, _, _, error| format!("Error creating: {error}"),
    updated_in_place: |pod, _| format!("successfully update pod {pod} in-place"),
    deleted: |_, pod| format!("Deleted pod: {pod}"),
    not_deleted: |_, _, error| vec![format!("Error deleting: {error}")],
};
