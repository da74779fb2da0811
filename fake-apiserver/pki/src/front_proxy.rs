//! The certificate by which other API servers know that a request comes from this one.

use std::fmt;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::identity::{CertificateError, name};

/// The name in the certificate, which other servers allow.
pub const FRONT_PROXY: &str = "front-proxy-client";

/// A certificate that a server shows to those that it passes requests on to, and the authority that has signed it. Made anew each
/// time, with fresh keys.
pub struct FrontProxy {
    authority_pem: String,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for FrontProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontProxy").finish_non_exhaustive()
    }
}

impl FrontProxy {
    /// Makes a certificate, and an authority of its own for it.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn generate() -> Result<Self, CertificateError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name = name("front-proxy-ca", None);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let mut client = CertificateParams::default();
        client.distinguished_name = name(FRONT_PROXY, None);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = client.signed_by(&key, &issuer)?;
        Ok(Self {
            authority_pem,
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    /// The authority's certificate, for servers that are asked.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The certificate and its key.
    #[must_use]
    pub fn certificate(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        (self.certificate.clone(), self.key.clone_key())
    }
}
