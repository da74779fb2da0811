//! Connections by TLS to servers of pods. As with the kubelet any certificate will do: a probe asks whether a server answers, and its
//! certificate is made for its clients.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, InvalidMessage, SignatureScheme};

use super::runtime::Connection;

/// Takes any certificate, if the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A connection by TLS over a connection to `host`.
///
/// # Errors
/// The reason, in Go's words where the server does not speak TLS.
pub(super) async fn connect(stream: Box<dyn Connection>, host: &str) -> Result<Box<dyn Connection>, String> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = connected.map_err(|error| text(&error))?;
    Ok(Box::new(stream))
}

fn text(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        _ if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
