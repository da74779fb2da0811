//! Certificates: those of a server and its administrator, subjects of certificates, requests for certificates (PKCS #10), and an
//! authority that signs them (X.509).
//!
//! A request's subject, key and names are carried over byte by byte; everything else is written here.

mod authority;
mod der;
mod front_proxy;
mod identity;
mod request;
mod subject;

pub use authority::{Authority, Terms};
pub use front_proxy::{FRONT_PROXY, FrontProxy};
pub use identity::{CertificateError, Identity};
pub use request::{Names, Request, of_pem};
pub use subject::{Subject, subject};

/// Whether bytes begin with a sequence that is there as a whole, as a certificate is one.
pub fn is_sequence(bytes: &[u8]) -> bool {
    der::expect(der::SEQUENCE, bytes).is_some()
}

#[cfg(test)]
mod tests;
