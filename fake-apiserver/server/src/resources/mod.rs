//! The served resources and their properties.
//!
//! The built-in ones come from a running server's own description (`data/`: discovery, table columns, field
//! selectors of Kubernetes 1.36.2); custom ones from CustomResourceDefinitions. Both are the same [`Resource`].

mod builtin;
pub(crate) mod columns;
mod conversion_hook;
mod custom;
mod registry;
mod resource;
mod version_rank;

pub(crate) use conversion_hook::ConversionHook;
pub(crate) use registry::Registry;
pub(crate) use resource::{Column, ColumnSource, Resource, Subresource};
pub(crate) use version_rank::version_rank;
