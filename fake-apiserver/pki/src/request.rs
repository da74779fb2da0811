//! Requests for certificates, as PKCS #10 has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey,
    VerificationAlgorithm,
};

use super::der::{
    BIT_STRING, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET, element, elements, expect, numbered, whole,
};
use super::subject::{Subject, read};

/// 1.2.840.113549.1.9.14: the requested extensions of the certificate.
const EXTENSION_REQUEST: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
/// 2.5.29.17: the names beside the subject.
pub(super) const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];
/// 1.2.840.10045.3.1.7 and 1.3.132.0.34: the curves of a key.
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: [u8; 5] = [0x2b, 0x81, 0x04, 0x00, 0x22];

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name in the request.
    pub subject: Subject,
    /// How many names of each kind there are beside the subject.
    pub names: Names,
    /// The subject, the key and the names as they are written.
    pub(super) subject_name: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) alternative_names: Option<Vec<u8>>,
    signed: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
}

/// Names beside the subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of hosts.
    pub dns: usize,
    /// Addresses of mail.
    pub emails: usize,
    /// Addresses of hosts.
    pub addresses: usize,
    /// URIs.
    pub uris: usize,
}

/// The bytes of the first PEM block of a kind; none if there is none that can be read.
pub fn of_pem(kind: &str, text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {kind}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

impl Request {
    /// The request in a PEM block; none if there is none that can be read.
    pub fn from_pem(text: &str) -> Option<Self> {
        Self::from_der(&of_pem("CERTIFICATE REQUEST", text)?)
    }

    fn from_der(bytes: &[u8]) -> Option<Self> {
        let (parts, _) = expect(SEQUENCE, bytes)?;
        let (signed, rest) = whole(parts)?;
        let (algorithm, rest) = expect(SEQUENCE, rest)?;
        let (signature, _) = expect(BIT_STRING, rest)?;
        let (info, _) = expect(SEQUENCE, signed)?;
        // The version comes first.
        let (_, _, info) = element(info)?;
        let (subject_name, info) = whole(info)?;
        let (key, attributes) = whole(info)?;
        let alternative_names = names_of(attributes)?;
        let names = match &alternative_names {
            Some(names) => count(names)?,
            None => Names::default(),
        };
        Some(Self {
            subject: read(subject_name)?,
            names,
            subject_name: subject_name.to_vec(),
            key: key.to_vec(),
            alternative_names,
            signed: signed.to_vec(),
            algorithm: expect(OBJECT_IDENTIFIER, algorithm)?.0.to_vec(),
            signature: signature.get(1..)?.to_vec(),
        })
    }

    /// One with these contents alone, without a key: it cannot be signed.
    pub fn of(subject: Subject, names: Names) -> Self {
        Self {
            subject,
            names,
            subject_name: Vec::new(),
            key: Vec::new(),
            alternative_names: None,
            signed: Vec::new(),
            algorithm: Vec::new(),
            signature: Vec::new(),
        }
    }

    /// Whether the request is signed by the key that it is for.
    pub fn is_signed(&self) -> bool {
        self.verify().is_some()
    }

    fn verify(&self) -> Option<()> {
        let (key, _) = expect(SEQUENCE, &self.key)?;
        let (kind, key) = expect(SEQUENCE, key)?;
        let (bits, _) = expect(BIT_STRING, key)?;
        let (_, parameters) = expect(OBJECT_IDENTIFIER, kind)?;
        let curve = expect(OBJECT_IDENTIFIER, parameters).map(|(curve, _)| curve);
        let algorithm: &'static dyn VerificationAlgorithm = match (self.algorithm.as_slice(), curve) {
            ([0x2b, 0x65, 0x70], _) => &ED25519,
            ([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, kind], _) => match kind {
                0x0b => &RSA_PKCS1_2048_8192_SHA256,
                0x0c => &RSA_PKCS1_2048_8192_SHA384,
                0x0d => &RSA_PKCS1_2048_8192_SHA512,
                _ => return None,
            },
            ([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, hash], Some(curve)) => {
                match (curve == P256, curve == P384, hash) {
                    (true, _, 0x02) => &ECDSA_P256_SHA256_ASN1,
                    (true, _, 0x03) => &ECDSA_P256_SHA384_ASN1,
                    (_, true, 0x02) => &ECDSA_P384_SHA256_ASN1,
                    (_, true, 0x03) => &ECDSA_P384_SHA384_ASN1,
                    _ => return None,
                }
            }
            _ => return None,
        };
        let key = UnparsedPublicKey::new(algorithm, bits.get(1..)?);
        key.verify(&self.signed, &self.signature).ok()
    }
}

/// The names that the attributes of a request ask for; `None` within if they ask for none.
fn names_of(attributes: &[u8]) -> Option<Option<Vec<u8>>> {
    let Some((attributes, _)) = expect(numbered(0), attributes) else {
        return Some(None);
    };
    for (_, attribute) in elements(attributes)? {
        let (kind, values) = expect(OBJECT_IDENTIFIER, attribute)?;
        if kind != EXTENSION_REQUEST {
            continue;
        }
        let (values, _) = expect(SET, values)?;
        let (extensions, _) = expect(SEQUENCE, values)?;
        for (_, extension) in elements(extensions)? {
            let (kind, _) = expect(OBJECT_IDENTIFIER, extension)?;
            if kind == ALTERNATIVE_NAMES {
                let value = elements(extension)?
                    .into_iter()
                    .find(|(tag, _)| *tag == OCTET_STRING)?;
                return Some(Some(value.1.to_vec()));
            }
        }
    }
    Some(None)
}

fn count(names: &[u8]) -> Option<Names> {
    let mut out = Names::default();
    for (tag, _) in elements(expect(SEQUENCE, names)?.0)? {
        match tag {
            0x81 => out.emails += 1,
            0x82 => out.dns += 1,
            0x86 => out.uris += 1,
            0x87 => out.addresses += 1,
            _ => {}
        }
    }
    Some(out)
}
