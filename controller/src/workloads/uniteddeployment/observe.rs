//! The input of a plan: one moment of a UnitedDeployment and of the workloads of its subsets.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;

use super::children::Child;
use super::kinds::ChildKind;
use crate::api::v1alpha1::UnitedDeployment;

/// One moment of a UnitedDeployment.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// It.
    pub(super) set: Arc<UnitedDeployment>,
    /// The kind of its template.
    pub(super) kind: ChildKind,
    /// Its workloads of that kind, with their pods.
    pub(super) children: Vec<Child>,
    /// Its workloads of the other kinds.
    pub(super) others: Vec<Child>,
    /// Its revisions, those without an owner included.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
    /// When.
    pub(super) now: Timestamp,
}
