//! The input of a plan: one moment of an AdvancedCronJob and of its jobs.

use std::sync::Arc;

use jiff::Timestamp;

use super::jobs::Child;
use crate::api::v1beta1::AdvancedCronJob;

/// One moment of an AdvancedCronJob.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// It.
    pub(super) cron: Arc<AdvancedCronJob>,
    /// Its jobs.
    pub(super) children: Vec<Child>,
    /// When.
    pub(super) now: Timestamp,
}
