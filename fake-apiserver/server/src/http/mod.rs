//! From HTTP request to HTTP response.
//!
//! [`service`] is the whole way of a request, [`dispatch`] that of one for a resource; [`request`] parses the target,
//! [`params`] the options, [`negotiate`] the form of the answer; [`respond`] makes the answer, [`body`] is
//! its stream.

pub(crate) mod body;
pub(crate) mod decode;
mod dispatch;
mod health;
mod metrics;
pub(crate) mod negotiate;
pub(crate) mod params;
pub(crate) mod payload;
pub(crate) mod request;
mod respond;
pub(crate) mod service;
mod streams;
mod yaml;
