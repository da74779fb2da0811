//! The subjects of certificates.

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, SET, element, elements, expect, numbered, whole};

/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// The subject of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name: the user.
    pub common_name: String,
    /// The organizations: the groups.
    pub organizations: Vec<String>,
}

/// The subject of a certificate whose signature has been checked; `None` for an invalid one.
pub fn subject(certificate: &[u8]) -> Option<Subject> {
    read(subject_name(certificate)?)
}

/// The subject of a certificate as it is written.
pub(super) fn subject_name(certificate: &[u8]) -> Option<&[u8]> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    let (tag, _, after) = element(rest)?;
    if tag == numbered(0) {
        rest = after;
    }
    // Serial number, signature algorithm, issuer and validity come before the subject.
    for _ in 0..4 {
        (_, _, rest) = element(rest)?;
    }
    Some(whole(rest)?.0)
}

/// A name: sets of kinds and texts.
pub(super) fn read(name: &[u8]) -> Option<Subject> {
    let (sets, _) = expect(SEQUENCE, name)?;
    let mut out = Subject::default();
    for (tag, set) in elements(sets)? {
        if tag != SET {
            return None;
        }
        for (_, pair) in elements(set)? {
            let (kind, value) = expect(OBJECT_IDENTIFIER, pair)?;
            let (_, text, _) = element(value)?;
            let text = String::from_utf8_lossy(text).into_owned();
            if kind == COMMON_NAME {
                out.common_name = text;
            } else if kind == ORGANIZATION {
                out.organizations.push(text);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn reads_the_subject_of_a_certificate() {
        let identity = Identity::generate(&[]).expect("certificates");
        let expected = Subject {
            common_name: "kubernetes-admin".to_owned(),
            organizations: vec!["system:masters".to_owned()],
        };
        assert_eq!(subject(&identity.client_der()), Some(expected));
    }

    #[test]
    fn what_is_no_certificate_has_no_subject() {
        let identity = Identity::generate(&[]).expect("certificates");
        let whole = identity.client_der();
        for end in 0..whole.len().min(120) {
            assert_eq!(subject(&whole[..end]), None);
        }
        assert_eq!(subject(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
