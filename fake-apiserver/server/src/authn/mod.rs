//! Authentication and impersonation.
//!
//! Requests from this process are an administrator's and pay nothing, unless they say otherwise. A server behind a socket describes a
//! connection ([`Peer`]); [`authenticate`] and [`impersonated`] say whose request it is.

mod request;
mod service_account;

pub(crate) use machinery::user::{MASTERS, User};
pub use request::Peer;
pub(crate) use request::{authenticate, impersonated, says_who};
pub(crate) use service_account::authenticate as authenticate_token;
