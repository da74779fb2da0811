//! Requests that openssl has made, and their contents and certificates.

use client_kit::Seed;
use rcgen::KeyPair;
use rstest::rstest;

use super::{Authority, Request, Terms, subject};

const NODE: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIHrMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lz
dGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATwCnBW9fep1xWY
i1JQPQ8cczz33nFkPTTc3RW8mD1gD1dhy1A9UnHdnGHkR11oReyOfUj0auFkA01h
5RZIKMKDoAAwCgYIKoZIzj0EAwIDSAAwRQIhAMRYD8mfI/6jQ0u1YZa+YVhZI+0S
fRJWTx5adpOHHsqxAiBEGVuKR9CsGsO+TGFHeyHHiEA++9wUHo/fFNaTCjIG2g==
-----END CERTIFICATE REQUEST-----
";
const USER: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIHaMIGAAgEAMB4xDTALBgNVBAoMBGRldnMxDTALBgNVBAMMBGphbmUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAATwCnBW9fep1xWYi1JQPQ8cczz33nFkPTTc3RW8
mD1gD1dhy1A9UnHdnGHkR11oReyOfUj0auFkA01h5RZIKMKDoAAwCgYIKoZIzj0E
AwIDSQAwRgIhAJYJMRcee9Pe9UoZbQ2YmulKCSPOqqdZs9a/thN1zMkhAiEAqqLC
4neHmFGd1SlwqGIyBmmLfVdEe6ZNPxxXIXpZmLE=
-----END CERTIFICATE REQUEST-----
";
const SERVING: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBETCBuAIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5
c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8ApwVvX3qdcV
mItSUD0PHHM8995xZD003N0VvJg9YA9XYctQPVJx3Zxh5EddaEXsjn1I9GrhZANN
YeUWSCjCg6AmMCQGCSqGSIb3DQEJDjEXMBUwEwYDVR0RBAwwCoICbjGHBAoAAAEw
CgYIKoZIzj0EAwIDSAAwRQIgC2SNEEZuUeaF/EAcUY7vfui3Se97BvEbim00eec/
d64CIQDIdTA3vJbTJouRLikSP5SYRDK5aeQTBe9tJcUzdfJIuA==
-----END CERTIFICATE REQUEST-----
";

#[rstest]
#[case(NODE, "system:node:n1", &["system:nodes"], (0, 0, 0, 0))]
#[case(USER, "jane", &["devs"], (0, 0, 0, 0))]
#[case(SERVING, "system:node:n1", &["system:nodes"], (1, 0, 1, 0))]
fn requests_are_read(
    #[case] pem: &str,
    #[case] name: &str,
    #[case] organizations: &[&str],
    #[case] names: (usize, usize, usize, usize),
) {
    let request = Request::from_pem(pem).expect("a request");
    assert_eq!(request.subject.common_name, name);
    assert_eq!(request.subject.organizations, organizations);
    let found = request.names;
    assert_eq!((found.dns, found.emails, found.addresses, found.uris), names);
    assert!(request.is_signed());
}

#[test]
fn what_is_no_request_is_none() {
    for text in [
        "",
        "-----BEGIN CERTIFICATE REQUEST-----",
        "-----BEGIN CERTIFICATE REQUEST-----\nQUJD\n-----END CERTIFICATE REQUEST-----\n",
        "-----BEGIN CERTIFICATE REQUEST-----\n???\n-----END CERTIFICATE REQUEST-----\n",
        "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n",
    ] {
        assert!(Request::from_pem(text).is_none(), "{text}");
    }
    // One that was altered is not signed.
    for at in [5, 20, 40] {
        let mut lines: Vec<String> = NODE.lines().map(str::to_owned).collect();
        let other = if lines[2].as_bytes()[at] == b'A' { "B" } else { "A" };
        lines[2].replace_range(at..=at, other);
        let request = Request::from_pem(&lines.join("\n"));
        assert!(request.is_none_or(|request| !request.is_signed()), "{at}");
    }
}

fn der(pem: &str) -> Vec<u8> {
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
    CertificateDer::from_pem_slice(pem.as_bytes())
        .expect("a certificate")
        .to_vec()
}

#[test]
fn certificates_are_for_whom_the_requests_are() {
    let made = rcgen::CertificateParams::default()
        .self_signed(&KeyPair::generate().expect("a key"))
        .expect("a certificate");
    let made = Authority::of_certificate(&made, KeyPair::generate().expect("a key"));
    for authority in [Authority::of_seed(Seed(1)), made] {
        let authority = authority.expect("an authority");
        for pem in [NODE, USER, SERVING] {
            let request = Request::from_pem(pem).expect("a request");
            let issue = |usages: &[&str], not_after: &str| {
                let terms = Terms {
                    usages,
                    not_before: "2026-01-01T00:00:00Z".parse().expect("a time"),
                    not_after: not_after.parse().expect("a time"),
                    serial: [0; 16],
                };
                authority.issue(&request, &terms).expect("a certificate")
            };
            let certificate = issue(&["client auth", "digital signature"], "2027-01-01T00:00:00Z");
            assert_eq!(subject(&der(&certificate)), Some(request.subject.clone()));
            assert_ne!(certificate, issue(&["server auth"], "2027-01-01T00:00:00Z"));
            assert_ne!(
                certificate,
                issue(&["client auth", "digital signature"], "2051-01-01T00:00:00Z")
            );
        }
    }
}

/// The server trusts certificates of its own authority, while they are valid, and no others.
#[rstest]
#[case(&["client auth"], "2026-06-01T00:00:00Z", true)]
#[case(&["client auth", "digital signature", "key encipherment"], "2026-06-01T00:00:00Z", true)]
#[case(&["server auth"], "2026-06-01T00:00:00Z", false)]
#[case(&["client auth"], "2025-06-01T00:00:00Z", false)]
#[case(&["client auth"], "2027-06-01T00:00:00Z", false)]
fn clients_are_believed(#[case] usages: &[&str], #[case] at: &str, #[case] expected: bool) {
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject as _};
    use tokio_rustls::rustls::server::WebPkiClientVerifier;

    let identity = crate::Identity::generate(&[]).expect("certificates");
    let own = identity.authority().expect("an authority");
    let other = Authority::of_seed(Seed(1)).expect("an authority");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(identity.authority_pem().as_bytes()).expect("a certificate");
    roots.add(root).expect("a root");
    let verifier = WebPkiClientVerifier::builder_with_provider(
        std::sync::Arc::new(roots),
        std::sync::Arc::new(default_provider()),
    )
    .build()
    .expect("a verifier");
    let at: jiff::Timestamp = at.parse().expect("a time");
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at.as_second().unsigned_abs()));
    for (authority, is_own) in [(own.as_ref(), true), (&other, false)] {
        let terms = Terms {
            usages,
            not_before: "2026-01-01T00:00:00Z".parse().expect("a time"),
            not_after: "2027-01-01T00:00:00Z".parse().expect("a time"),
            serial: [7; 16],
        };
        let request = Request::from_pem(USER).expect("a request");
        let pem = authority.issue(&request, &terms).expect("a certificate");
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let verified = verifier.verify_client_cert(&certificate, &[], now);
        assert_eq!(verified.is_ok(), expected && is_own, "{verified:?}");
    }
}
