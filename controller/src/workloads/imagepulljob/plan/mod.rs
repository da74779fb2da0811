//! The plan of a pass over a job.

mod count;
mod pass;
mod tag;

#[cfg(test)]
mod pass_tests;
#[cfg(test)]
mod tag_tests;

pub(super) use pass::{Phase, phase, work};
pub(super) use tag::{Wish, put};

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::v1beta1::{ImagePullJob, NodeImage, ReferenceObject};
use crate::images::ImageReference;

/// One moment of a job that runs.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The job.
    pub(super) job: Arc<ImagePullJob>,
    /// Its image.
    pub(super) image: ImageReference,
    /// The lists of the nodes that it wants, by name.
    pub(super) nodes: Vec<Arc<NodeImage>>,
    /// The Secrets that the daemons shall use.
    pub(super) secrets: Vec<ReferenceObject>,
    /// When.
    pub(super) now: Timestamp,
}
