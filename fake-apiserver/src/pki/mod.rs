//! Certificates: those of a server and its administrator, who certificates are for, what requests for them say (PKCS #10), and an authority that signs them (X.509).
//!
//! What a request says of its subject, key and names is carried over byte by byte; everything else is written here.

mod authority;
mod der;
mod identity;
mod request;
mod subject;

pub use authority::Authority;
pub(crate) use authority::Terms;
pub use identity::{CertificateError, Identity};
#[cfg(test)]
pub(crate) use request::Names;
pub(crate) use request::{Request, of_pem};
#[cfg(test)]
pub(crate) use subject::Subject;
pub(crate) use subject::subject;

/// Whether bytes begin with a sequence that is there as a whole, as a certificate is one.
pub(crate) fn is_sequence(bytes: &[u8]) -> bool {
    der::expect(der::SEQUENCE, bytes).is_some()
}

#[cfg(test)]
mod tests;
