//! The verbs.
//!
//! Reads: [`read`] (get, list), [`watch`]. Writes: [`create`], [`update`] (of which put, [`patch`] and the subresources
//! are cases), [`delete`]; [`write`] has the stages that they share. [`field_selector`] reads field selectors. What is answered and not
//! stored: [`components`], [`reviews`], [`token_request`].

pub(crate) mod components;
pub(crate) mod create;
mod definitions;
pub(crate) mod delete;
mod device_taints;
mod eviction;
mod field_selector;
pub(crate) mod options;
pub(crate) mod original_body;
pub(crate) mod ownership;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod reviews;
mod scale;
mod schema_rules;
mod services;
pub(crate) mod subresource;
pub(crate) mod subresource_body;
pub(crate) mod token_request;
mod token_review;
pub(crate) mod update;
pub(crate) mod watch;
mod write;
