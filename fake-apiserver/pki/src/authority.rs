//! An authority that signs certificates.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client_kit::Seed;
use jiff::Timestamp;
use rcgen::SigningKey as _;
use ring::signature::Ed25519KeyPair;

use super::der::{
    BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET, UTC_TIME,
    numbered, sequence, wrap,
};
use super::request::{ALTERNATIVE_NAMES, Request};
use super::subject::subject_name;

/// 2.5.29.15, 2.5.29.37 and 2.5.29.19.
const KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];
/// 1.3.6.1.5.5.7.3, to which one number is added.
const PURPOSES: [u8; 7] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03];
/// 1.3.101.112 and 1.2.840.10045.4.3.2.
const WITH_ED25519: [u8; 3] = [0x2b, 0x65, 0x70];
const WITH_ECDSA_SHA256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const UTF8_STRING: u8 = 0x0c;

/// The usages of keys, by their bits.
const USAGES: [(&str, u32); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
/// The purposes of certificates, by their numbers.
const EXTENDED_USAGES: [(&str, u8); 10] = [
    ("server auth", 1),
    ("client auth", 2),
    ("code signing", 3),
    ("email protection", 4),
    ("s/mime", 4),
    ("ipsec end system", 5),
    ("ipsec tunnel", 6),
    ("ipsec user", 7),
    ("timestamping", 8),
    ("ocsp signing", 9),
];

enum Key {
    Seeded(Ed25519KeyPair),
    Made(Box<rcgen::KeyPair>),
}

/// An authority that signs certificates.
pub struct Authority {
    /// Its name as it is written.
    name: Vec<u8>,
    key: Key,
    /// Its own certificate, where it is to be trusted.
    pem: Option<String>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// The contents of a certificate besides those of its request.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// As `spec.usages` names them.
    pub usages: &'a [&'a str],
    /// From when on it is good.
    pub not_before: Timestamp,
    /// Until when it is good.
    pub not_after: Timestamp,
    /// The serial number, big-endian.
    pub serial: [u8; 16],
}

impl Authority {
    /// One whose key follows from a seed.
    pub fn of_seed(seed: Seed) -> Option<Self> {
        let mut secret = [0; 32];
        seed.fork("authority").random().fill(&mut secret);
        let pair = sequence(&[
            wrap(OBJECT_IDENTIFIER, &COMMON_NAME),
            wrap(UTF8_STRING, b"kubernetes"),
        ]);
        Some(Self {
            name: wrap(SEQUENCE, &wrap(SET, &pair)),
            key: Key::Seeded(Ed25519KeyPair::from_seed_unchecked(&secret).ok()?),
            pem: None,
        })
    }

    /// The one that a certificate is of, with its key: on the curve P-256, as they are made here.
    pub(crate) fn of_certificate(certificate: &rcgen::Certificate, key: rcgen::KeyPair) -> Option<Self> {
        Some(Self {
            name: subject_name(certificate.der())?.to_vec(),
            key: Key::Made(Box::new(key)),
            pem: Some(certificate.pem()),
        })
    }

    /// Its certificate; none of an untrusted one.
    pub fn pem(&self) -> Option<&str> {
        self.pem.as_deref()
    }

    fn algorithm(&self) -> Vec<u8> {
        sequence(&[wrap(
            OBJECT_IDENTIFIER,
            match self.key {
                Key::Seeded(_) => &WITH_ED25519,
                Key::Made(_) => &WITH_ECDSA_SHA256,
            },
        )])
    }

    /// The certificate that a request asks for, in PEM.
    pub fn issue(&self, request: &Request, terms: &Terms<'_>) -> Option<String> {
        let mut serial = terms.serial;
        // A positive number without leading zeros.
        serial[0] = serial[0] & 0x7f | 0x40;
        let mut extensions = vec![];
        let bits = key_usage(terms.usages);
        extensions.extend(bits.map(|bits| extension(&KEY_USAGE, true, &bits)));
        let purposes = purposes(terms.usages);
        extensions.extend(purposes.map(|purposes| extension(&EXTENDED_KEY_USAGE, false, &purposes)));
        extensions.push(extension(&BASIC_CONSTRAINTS, true, &sequence(&[])));
        let names = request.alternative_names.as_ref();
        extensions.extend(names.map(|names| extension(&ALTERNATIVE_NAMES, false, names)));
        let signed = sequence(&[
            wrap(numbered(0), &wrap(INTEGER, &[2])),
            wrap(INTEGER, &serial),
            self.algorithm(),
            self.name.clone(),
            sequence(&[time(terms.not_before), time(terms.not_after)]),
            request.subject_name.clone(),
            request.key.clone(),
            wrap(numbered(3), &sequence(&extensions)),
        ]);
        let mut signature = vec![0];
        match &self.key {
            Key::Seeded(key) => signature.extend_from_slice(key.sign(&signed).as_ref()),
            Key::Made(key) => signature.extend(key.sign(&signed).ok()?),
        }
        let der = sequence(&[signed, self.algorithm(), wrap(BIT_STRING, &signature)]);
        let body = STANDARD.encode(der);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        Some(format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        ))
    }
}

fn extension(kind: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![wrap(OBJECT_IDENTIFIER, kind)];
    if critical {
        parts.push(wrap(BOOLEAN, &[0xff]));
    }
    parts.push(wrap(OCTET_STRING, value));
    sequence(&parts)
}

/// The usages of the key, as a string of bits; none without usages.
fn key_usage(usages: &[&str]) -> Option<Vec<u8>> {
    let named = |usage: &&str| USAGES.iter().find(|(name, _)| name == usage);
    let bits = usages
        .iter()
        .filter_map(named)
        .fold(0_u16, |bits, (_, bit)| bits | 0x8000 >> bit);
    if bits == 0 {
        return None;
    }
    let bytes = bits.to_be_bytes();
    let used = if bytes[1] == 0 { &bytes[..1] } else { &bytes[..] };
    let unused = u8::try_from(used.last()?.trailing_zeros()).ok()?;
    Some(wrap(BIT_STRING, &[&[unused], used].concat()))
}

fn purposes(usages: &[&str]) -> Option<Vec<u8>> {
    let named = |usage: &&str| EXTENDED_USAGES.iter().find(|(name, _)| name == usage);
    let parts: Vec<Vec<u8>> = usages
        .iter()
        .filter_map(named)
        .map(|(_, number)| wrap(OBJECT_IDENTIFIER, &[&PURPOSES[..], &[*number]].concat()))
        .collect();
    (!parts.is_empty()).then(|| sequence(&parts))
}

/// A time to the second: with two digits of the year up to 2049, with four after that.
fn time(at: Timestamp) -> Vec<u8> {
    let text = at.strftime("%Y%m%d%H%M%SZ").to_string();
    if at.strftime("%Y").to_string().as_str() < "2050" {
        wrap(UTC_TIME, text.get(2..).unwrap_or_default().as_bytes())
    } else {
        wrap(GENERALIZED_TIME, text.as_bytes())
    }
}
