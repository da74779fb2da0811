//! What each verb does.
//!
//! Reads: [`read`] (get, list), [`watch`]. Writes: [`create`], [`update`] (of which put, [`patch`] and the subresources
//! are cases), [`delete`]. What a client sends is brought into shape by [`incoming`]; [`conversion`] translates between
//! the versions of one resource; [`metadata`] validates and fills `metadata`.

pub(crate) mod context;
pub(crate) mod conversion;
pub(crate) mod create;
mod definitions;
pub(crate) mod delete;
mod device_taints;
pub(crate) mod embedded;
mod eviction;
pub(crate) mod expiry;
pub(crate) mod incoming;
pub(crate) mod kind_check;
pub(crate) mod metadata;
pub(crate) mod options;
pub(crate) mod ownership;
pub(crate) mod patch;
pub(crate) mod posted;
pub(crate) mod read;
mod scale;
mod schema_rules;
pub(crate) mod sent;
mod services;
pub(crate) mod subresource;
pub(crate) mod update;
pub(crate) mod watch;
