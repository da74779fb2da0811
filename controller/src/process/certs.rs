//! The webhooks' certificates: an authority of our own and a certificate by it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio_rustls::rustls;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::ProcessError;

/// For how many years a certificate is made (OpenKruise: ten).
const YEARS: i16 = 10;
/// A certificate that ends sooner is replaced (OpenKruise: six months).
const RENEW_BEFORE: Duration = Duration::from_secs(183 * 24 * 3600);

/// Certificates and keys, as PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Certificates {
    /// The authority's key.
    pub ca_key: String,
    /// The authority's certificate, which the API server has to trust.
    pub ca_cert: String,
    /// The server's key.
    pub key: String,
    /// The server's certificate.
    pub cert: String,
}

fn failed(error: &dyn std::fmt::Display) -> ProcessError {
    ProcessError::Certificates(error.to_string())
}

fn valid_for(parameters: &mut CertificateParams, now: Timestamp) {
    let date = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    // Every month has these days, whatever the year.
    let day = u8::try_from(date.day()).unwrap_or(1).clamp(1, 28);
    let month = u8::try_from(date.month()).unwrap_or(1);
    let year = i32::from(date.year());
    // A day back, for clocks that are behind.
    parameters.not_before =
        rcgen::date_time_ymd(if day > 1 { year } else { year - 1 }, month, day.max(2) - 1);
    parameters.not_after = rcgen::date_time_ymd(year + i32::from(YEARS), month, day);
}

impl Certificates {
    /// New ones for a server that is reached as `hosts`.
    ///
    /// # Errors
    /// If a host is no name and no address.
    pub fn make(hosts: &[String], now: Timestamp) -> Result<Self, ProcessError> {
        let ca_key = KeyPair::generate().map_err(|error| failed(&error))?;
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        ca.distinguished_name.push(DnType::CommonName, "webhook-cert-ca");
        valid_for(&mut ca, now);
        let ca_cert = ca.self_signed(&ca_key).map_err(|error| failed(&error))?;

        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let mut server = CertificateParams::new(hosts.to_vec()).map_err(|error| failed(&error))?;
        let name = hosts.first().map(String::as_str).unwrap_or_default();
        server.distinguished_name.push(DnType::CommonName, name);
        server.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        server.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        valid_for(&mut server, now);
        let issuer = Issuer::from_params(&ca, &ca_key);
        let cert = server.signed_by(&key, &issuer).map_err(|error| failed(&error))?;
        Ok(Self {
            ca_key: ca_key.serialize_pem(),
            ca_cert: ca_cert.pem(),
            key: key.serialize_pem(),
            cert: cert.pem(),
        })
    }

    /// Whether key, certificate and authority belong together, name every one of `hosts` and hold for long enough. Takes
    /// those that OpenKruise's own manager has made, too.
    #[must_use]
    pub fn hold(&self, hosts: &[String], now: Timestamp) -> bool {
        let later = now.checked_add(RENEW_BEFORE).unwrap_or(now);
        let seconds = u64::try_from(later.as_second()).unwrap_or_default();
        let later = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let check = || -> Result<bool, rustls::Error> {
            let unreadable = |_| rustls::Error::General("no certificate".to_owned());
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(self.ca_cert.as_bytes()).map_err(unreadable)?)?;
            let cert = CertificateDer::from_pem_slice(self.cert.as_bytes()).map_err(unreadable)?;
            let verifier =
                rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|error| rustls::Error::General(error.to_string()))?;
            for host in hosts {
                let host = ServerName::try_from(host.clone())
                    .map_err(|error| rustls::Error::General(error.to_string()))?;
                verifier.verify_server_cert(&cert, &[], &host, &[], later)?;
            }
            Ok(self.server_config().is_ok())
        };
        check().unwrap_or(false)
    }

    /// The configuration of a TLS server.
    ///
    /// # Errors
    /// If key or certificate cannot be read, or do not belong together.
    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>, ProcessError> {
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(self.cert.as_bytes()).collect();
        let chain = chain.map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| failed(&error))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| failed(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The cryptography: ring.
pub(super) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_hold_for_their_hosts_and_their_time() {
        let now: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
        let hosts = ["a.b.svc".to_owned(), "127.0.0.1".to_owned()];
        let made = Certificates::make(&hosts, now).unwrap();
        assert!(made.hold(&hosts, now));
        assert!(!made.hold(&["c.b.svc".to_owned()], now), "another host");
        let late: Timestamp = "2035-12-01T12:00:00Z".parse().unwrap();
        assert!(!made.hold(&hosts, late), "about to end");
        let early: Timestamp = "2020-01-01T12:00:00Z".parse().unwrap();
        assert!(!made.hold(&hosts, early), "not yet");
        let other = Certificates::make(&hosts, now).unwrap();
        let mixed = |change: fn(&mut Certificates, &Certificates)| {
            let mut mixed = made.clone();
            change(&mut mixed, &other);
            mixed.hold(&hosts, now)
        };
        assert!(!mixed(|it, other| it.key.clone_from(&other.key)), "another key");
        assert!(
            !mixed(|it, other| it.ca_cert.clone_from(&other.ca_cert)),
            "another authority"
        );
        assert!(!mixed(|it, _| it.cert.clear()), "nothing");
        assert!(!Certificates::default().hold(&hosts, now));
    }
}
