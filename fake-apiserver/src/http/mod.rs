//! From HTTP request to HTTP response.
//!
//! [`service`] is the whole way of a request; [`request`] says what it asks for, [`params`] with which options,
//! [`negotiate`] in which form the answer goes out, [`body`] is the answer's stream.

pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod json;
mod json_error;
pub(crate) mod negotiate;
pub(crate) mod params;
pub(crate) mod request;
pub(crate) mod service;
