//! Which resources are served, and what is known of each.
//!
//! The built-in ones come from what a running server says of itself (`data/`: discovery, table columns, field
//! selectors of Kubernetes 1.36.2); custom ones from CustomResourceDefinitions. Both are the same [`Resource`].

mod builtin;
pub(crate) mod columns;
mod custom;
mod registry;
mod resource;

pub(crate) use registry::Registry;
pub(crate) use resource::{Column, ColumnSource, Resource, Subresource};
