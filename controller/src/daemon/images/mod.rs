//! The daemon's images: pulls what the NodeImage of its node asks for, and answers in its status.
//!
//! `puller` compares the list with what is under way, `worker` pulls one tag, `report` makes the status (pure), `credentials` reads
//! Secrets, `pace` holds back writes. [`ImageService`] is what all that needs of the node.

mod pace;
mod puller;
mod report;
mod service;
mod worker;

pub(super) use puller::add;
pub use service::{ImageService, PullRequest};
