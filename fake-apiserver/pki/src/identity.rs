//! The certificates of a served cluster: an authority of its own, the server's, and an administrator's.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::time_provider::TimeProvider;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::Authority;

/// The names that the server is known by within a cluster.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
/// How much text is encrypted at a time: of records of half the largest size, the next one is often written to where the processor's
/// cache still has one of those before.
const RECORD_BYTES: usize = 8_000;
/// The `kubernetes` service's address.
const SERVICE_IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 96, 0, 1));

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// They could not be signed.
    #[error("make certificates: {0}")]
    Make(#[from] rcgen::Error),
    /// They could not be used.
    #[error("use certificates: {0}")]
    Use(#[from] rustls::Error),
    /// Client certificates could not be checked with them.
    #[error("check client certificates: {0}")]
    Verify(#[from] rustls::server::VerifierBuilderError),
}

/// The time of a cluster, for TLS.
struct ClusterTime(SharedClock);

impl std::fmt::Debug for ClusterTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterTime").finish_non_exhaustive()
    }
}

impl TimeProvider for ClusterTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// A server's certificates, and those that an administrator shows to it. Made anew each time, with fresh keys.
pub struct Identity {
    server: Arc<ServerConfig>,
    authority: Option<Arc<Authority>>,
    authority_pem: String,
    client_pem: String,
    client_key_pem: String,
}

impl Identity {
    /// Makes the certificates of a server that is reached at these addresses (and on loopback).
    ///
    /// # Errors
    /// If the certificates cannot be made or used.
    pub fn generate(addresses: &[IpAddr]) -> Result<Self, CertificateError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name = name("kubernetes", None);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let authority_certificate = authority.self_signed(&authority_key)?;
        let own_key = KeyPair::from_pem(&authority_key.serialize_pem())?;
        let signer = Authority::of_certificate(&authority_certificate, own_key);
        let issuer = Issuer::new(authority, authority_key);

        let server_key = KeyPair::generate()?;
        let mut server = CertificateParams::new(NAMES.map(str::to_owned))?;
        server.distinguished_name = name("kube-apiserver", None);
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let loopback = [
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            SERVICE_IP,
        ];
        let known = loopback.into_iter().chain(addresses.iter().copied());
        server.subject_alt_names.extend(known.map(SanType::IpAddress));
        let server_certificate = server.signed_by(&server_key, &issuer)?;

        let client_key = KeyPair::generate()?;
        let mut client = CertificateParams::default();
        client.distinguished_name = name("kubernetes-admin", Some("system:masters"));
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_certificate = client.signed_by(&client_key, &issuer)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority_certificate.der().clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![server_certificate.der().clone()], key)?;
        config.max_fragment_size = Some(RECORD_BYTES);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            server: Arc::new(config),
            authority: signer.map(Arc::new),
            authority_pem: authority_certificate.pem(),
            client_pem: client_certificate.pem(),
            client_key_pem: client_key.serialize_pem(),
        })
    }

    /// How the server speaks TLS, with the certificates of clients checked at the time of `clock`: a certificate that a cluster signs
    /// is good by that cluster's time.
    pub fn server_config_at(&self, clock: SharedClock) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.server);
        config.time_provider = Arc::new(ClusterTime(clock));
        Arc::new(config)
    }

    /// The authority, for signers of certificates that the server is to trust.
    #[must_use]
    pub fn authority(&self) -> Option<Arc<Authority>> {
        self.authority.clone()
    }

    /// The authority's certificate, for clients of the server.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// An administrator's certificate and key.
    #[must_use]
    pub fn client_pem(&self) -> (&str, &str) {
        (&self.client_pem, &self.client_key_pem)
    }

    #[cfg(test)]
    pub(crate) fn client_der(&self) -> Vec<u8> {
        use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
        let certificate = CertificateDer::from_pem_slice(self.client_pem.as_bytes());
        certificate.map(|der| der.to_vec()).unwrap_or_default()
    }
}

pub(crate) fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}
