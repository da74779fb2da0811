//! The daemon's images: pulls the images that the NodeImage of its node asks for, and answers in its status.
//!
//! `puller` compares the list with the pulls under way, `worker` pulls one tag, `report` makes the status (pure), `credentials` reads
//! Secrets, `pace` holds back writes. [`ImageService`] is the part of the node that they need.

mod pace;
mod puller;
mod report;
mod service;
mod worker;

pub(super) use puller::add;
pub use service::{ImageService, PullRequest};
