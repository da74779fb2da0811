//! Encryption over the network: the server's side with a certificate, and a client's side that looks at none, or trusts some authorities.

use std::io;
use std::sync::Arc;

use client_kit::AnyCertificate;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A connection, encrypted or not.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A certificate or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("use a certificate: {0}")]
pub struct BadCertificate(String);

/// The server's side of encrypted connections.
#[derive(Clone)]
pub struct Encryption(TlsAcceptor);

impl Encryption {
    /// With a certificate (and those of its issuers) and its key, in PEM.
    ///
    /// # Errors
    /// If they cannot be read, or do not fit each other.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, BadCertificate> {
        let bad = |error: &dyn std::fmt::Display| BadCertificate(error.to_string());
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| bad(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| bad(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let config = config.map_err(|error| bad(&error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Begins to encrypt a connection that was taken.
    ///
    /// # Errors
    /// If the caller does not encrypt.
    #[must_use]
    pub fn accept(&self, stream: Box<dyn Wire>) -> BoxFuture<'static, io::Result<Box<dyn Wire>>> {
        let accepting = self.0.accept(stream);
        async move {
            let stream: Box<dyn Wire> = Box::new(accepting.await?);
            Ok(stream)
        }
        .boxed()
    }
}

/// Begins to encrypt a connection that was made, whatever certificate the other side shows.
///
/// # Errors
/// If the other side does not encrypt.
#[must_use]
pub fn encrypt_unverified(
    stream: Box<dyn Wire>,
    host: &str,
) -> BoxFuture<'static, io::Result<Box<dyn Wire>>> {
    let config = AnyCertificate::config().map_err(io::Error::other);
    encrypt(stream, host.to_owned(), config).boxed()
}

/// Begins to encrypt a connection that was made, if the other side's certificate is for `host`, and of one of the authorities whose
/// certificates are given in PEM.
///
/// # Errors
/// If the other side does not encrypt, or its certificate is not trusted.
#[must_use]
pub fn encrypt_trusting(
    stream: Box<dyn Wire>,
    host: &str,
    authorities: &[u8],
) -> BoxFuture<'static, io::Result<Box<dyn Wire>>> {
    encrypt(stream, host.to_owned(), trusting(authorities)).boxed()
}

fn trusting(authorities: &[u8]) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn encrypt(
    stream: Box<dyn Wire>,
    host: String,
    config: io::Result<ClientConfig>,
) -> io::Result<Box<dyn Wire>> {
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config?))
        .connect(name, stream)
        .await?;
    let stream: Box<dyn Wire> = Box::new(stream);
    Ok(stream)
}
