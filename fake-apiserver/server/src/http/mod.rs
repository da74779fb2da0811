//! From HTTP request to HTTP response.
//!
//! [`service`] is the whole way of a request, [`dispatch`] that of one for a resource; [`streams`] are connections that stay open.
//! The parts of requests and answers are in [`crate::message`].

mod dispatch;
mod fairness;
mod metrics;
pub(crate) mod service;
mod streams;
