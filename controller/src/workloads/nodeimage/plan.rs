//! The rules of a node's list, as a pure function.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Resource as _;

use super::clean::{Cleaned, clean};
use super::observe::Observed;
use super::repair::{Failed, Repaired, repair};
use crate::api::v1beta1::{NodeImageSpec, NodeImageStatus};

/// Label of a list that needs no node.
const FAKE: &str = "apps.kruise.io/fake-nodeimage";
/// A pass that is due sooner than this comes later.
const NEXT_MIN: Duration = Duration::from_secs(3);

/// The work of one pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// There is nothing to do, at least for so long.
    Nothing(Option<Duration>),
    /// The node gets a list.
    Create,
    /// The node is gone: its list goes.
    Delete,
    /// The list gets these labels and this spec.
    Write {
        /// All labels.
        labels: BTreeMap<String, String>,
        /// The spec.
        spec: NodeImageSpec,
    },
    /// Tags have failed.
    Fail {
        /// The status with them.
        status: NodeImageStatus,
        /// The tags.
        failed: Vec<Failed>,
        /// When the next pass is due.
        next: Option<Duration>,
    },
}

/// The work of one pass over a node's list.
pub(super) fn plan(observed: &Observed) -> Plan {
    let node = observed.node.as_ref();
    let node = node.filter(|node| node.meta().deletion_timestamp.is_none());
    let (node, image) = match (node, &observed.image) {
        (None, None) => return Plan::Nothing(None),
        (Some(_), None) => return Plan::Create,
        (None, Some(image)) => {
            let labels = image.metadata.labels.as_ref();
            let is_fake = labels.is_some_and(|labels| labels.contains_key(FAKE));
            return if is_fake {
                Plan::Nothing(None)
            } else {
                Plan::Delete
            };
        }
        (Some(node), Some(image)) => (node, image),
    };
    if image.metadata.deletion_timestamp.is_some() {
        return Plan::Nothing(None);
    }
    let labels = node.meta().labels.clone().unwrap_or_default();
    let Cleaned { spec, due: expires } = clean(observed, image);
    if labels != image.metadata.labels.clone().unwrap_or_default() || spec != image.spec {
        return Plan::Write { labels, spec };
    }
    let Repaired {
        status,
        failed,
        due: fails,
    } = repair(image, observed.now);
    let due = expires.into_iter().chain(fails).min();
    let next = due.map(|due| {
        let left = Duration::try_from(due.duration_since(observed.now)).unwrap_or_default();
        if left < NEXT_MIN { observed.rest } else { left }
    });
    match status {
        Some(status) => Plan::Fail { status, failed, next },
        None => Plan::Nothing(next),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
