//! The client's side of TLS: which certificates of a webhook or another API server are trusted, and which one is shown to it.

use std::sync::Arc;

use client_kit::AnyCertificate;
use pki::FrontProxy;
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

/// The certificates of a server that are trusted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trust<'a> {
    /// Those that the authorities of this bundle in PEM have signed.
    Bundle(&'a [u8]),
    /// All.
    All,
}

/// The client's side of TLS: `shown` is the certificate that it shows, if any.
///
/// # Errors
/// If there is no certificate in the bundle that can be used.
pub(crate) fn client_config(
    trust: Trust<'_>,
    shown: Option<&FrontProxy>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Bundle(bundle) => Arc::new(Bundle::of(bundle, &provider)?),
        Trust::All => Arc::new(AnyCertificate::new(&provider)),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some(proxy) => {
            let (certificate, key) = proxy.certificate();
            config
                .with_client_auth_cert(vec![certificate], key)
                .map_err(|error| error.to_string())?
        }
    };
    Ok(Arc::new(config))
}

/// Checks as usual, but for one thing: Go trusts a certificate that is itself in the bundle, whether it is an authority's own
/// or a leaf whose issuer is not there. webpki trusts neither. Self-signed certificates of webhooks are of the first kind, those
/// that controller-runtime's envtest installs of the second.
#[derive(Debug)]
struct Bundle {
    authorities: Vec<CertificateDer<'static>>,
    inner: Arc<WebPkiServerVerifier>,
}

impl Bundle {
    fn of(bundle: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let authorities: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(bundle)
            .filter_map(Result::ok)
            .collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        if roots.is_empty() {
            return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { authorities, inner })
    }
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
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
