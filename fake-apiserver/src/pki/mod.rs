//! Certificates: who they are for, what requests for them say (PKCS #10), and an authority that signs them (X.509).
//!
//! What a request says of its subject, key and names is carried over byte by byte; everything else is written here.

mod authority;
mod der;
mod request;
mod subject;

pub use authority::Authority;
pub(crate) use authority::Terms;
#[cfg(test)]
pub(crate) use request::Names;
pub(crate) use request::Request;
#[cfg(test)]
pub(crate) use subject::Subject;
pub(crate) use subject::subject;

#[cfg(test)]
mod tests;
