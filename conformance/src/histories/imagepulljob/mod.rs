//! Histories of ImagePullJobs and of an ImageListPullJob, which write into the NodeImages.

mod judge;
mod wish;

pub(super) use wish::PullJobsWish;
