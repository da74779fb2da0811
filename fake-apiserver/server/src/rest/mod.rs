//! The verbs.
//!
//! Reads: [`read`] (get, list), [`watch`]. Writes: [`create`], [`update`] (of which put, [`patch`] and the subresources
//! are cases), [`delete`]. [`incoming`] brings a client's object into shape; [`conversion`] translates between
//! the versions of one resource; [`field_selector`] reads field selectors.

pub(crate) mod context;
pub(crate) mod conversion;
pub(crate) mod create;
mod definitions;
pub(crate) mod delete;
mod device_taints;
mod eviction;
pub(crate) mod expiry;
mod field_selector;
pub(crate) mod incoming;
pub(crate) mod kind_check;
pub(crate) mod options;
pub(crate) mod original_body;
pub(crate) mod ownership;
pub(crate) mod patch;
pub(crate) mod read;
mod scale;
mod schema_rules;
mod services;
pub(crate) mod subresource;
pub(crate) mod subresource_body;
pub(crate) mod update;
pub(crate) mod watch;
