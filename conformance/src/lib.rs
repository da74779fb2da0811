//! Scenarios, backends, recordings, snapshots and reports: the proof of Seatrial.
//!
//! The way of a scenario: a file becomes a [`scenario`] or a [`recording`], [`run`] plays it on a [`backend`], the backend's
//! [`history`] is [`render`]ed step by step, and the text is compared with that of a recording of the real system.

pub mod action;
pub mod apidiff;
pub mod assertion;
pub mod backend;
pub mod bench;
pub mod bench_api;
pub mod bench_cluster;
pub mod bench_manager;
pub mod bench_network;
pub mod error;
pub mod files;
mod glob;
pub mod histories;
pub mod history;
pub mod manifest;
pub mod record;
pub mod recording;
pub mod render;
pub mod report;
pub mod run;
pub mod scenario;
pub mod snapshot;
pub mod soak;
pub mod suite;

pub use error::Error;
