//! Verification of a webhook's certificate against the bundle in its configuration.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// Whether a certificate is refused because it is an authority's, or because its issuer is unknown.
fn is_about_the_issuer(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(error) => error.0.to_string().contains("CaUsedAsEndEntity"),
        _ => false,
    }
}

/// The client's side of TLS for a bundle of authorities in PEM.
///
/// # Errors
/// If there is no certificate in the bundle that can be used.
pub(super) fn client_config(bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(bundle)
        .filter_map(Result::ok)
        .collect();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    if roots.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| error.to_string())?;
    let verifier = Bundle {
        authorities,
        inner,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Checks as usual, but for one thing: Go trusts a certificate that is itself in the bundle, whether it is an authority's own
/// or a leaf whose issuer is not there. webpki trusts neither. Self-signed certificates of webhooks are of the first kind, those
/// that controller-runtime's envtest installs of the second.
#[derive(Debug)]
struct Bundle {
    authorities: Vec<CertificateDer<'static>>,
    inner: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let result = self.inner.verify_server_cert(shown, between, name, ocsp, now);
        let itself = self
            .authorities
            .iter()
            .any(|authority| authority.as_ref() == shown.as_ref());
        match result {
            // webpki has looked at the times and the purpose before it says so, but not at the name.
            Err(rustls::Error::InvalidCertificate(error)) if itself && is_about_the_issuer(&error) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
