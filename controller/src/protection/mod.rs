//! Protection from deletion, of objects that are no kind of OpenKruise.
//!
//! `webhooks` lists the webhooks, `namespace` and `definition` have the rules of Namespaces and CustomResourceDefinitions. The rule of
//! workloads is in `kit`, since the webhooks of OpenKruise's own kinds follow it, too.

mod definition;
mod namespace;
mod webhooks;
#[cfg(test)]
mod webhooks_tests;

use crate::kit::protection::{GATE, WORKLOADS};
use crate::metrics::Family;
use crate::workloads::{READ, Right};

pub(crate) use webhooks::WEBHOOKS;

/// The gate of the protection of CustomResourceDefinitions that have objects.
const CASCADING_GATE: &str = "DeletionProtectionForCRDCascadingGate";

/// The metrics of refusals.
pub(crate) const METRICS: &[Family] = &[WORKLOADS, namespace::REFUSALS, definition::REFUSALS];

/// The rights of the webhooks.
pub(crate) const RIGHTS: &[Right] = &[
    Right::new("", "persistentvolumeclaims", READ).with(GATE),
    Right::new("*", "*", &["list"]).with(CASCADING_GATE),
];
