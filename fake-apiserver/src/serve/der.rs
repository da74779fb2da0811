//! The subject of an X.509 certificate: as much of DER as that takes.

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const EXPLICIT_VERSION: u8 = 0xa0;
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// Whom a certificate is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub common_name: String,
    pub organizations: Vec<String>,
}

/// The subject of a certificate whose signature has been checked; `None` for what is none.
pub(super) fn subject(certificate: &[u8]) -> Option<Subject> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    let (tag, _, after) = element(rest)?;
    if tag == EXPLICIT_VERSION {
        rest = after;
    }
    // Serial number, signature algorithm, issuer and validity come before the subject.
    for _ in 0..4 {
        (_, _, rest) = element(rest)?;
    }
    let (tag, mut names, _) = element(rest)?;
    if tag != SEQUENCE {
        return None;
    }
    let mut out = Subject::default();
    while !names.is_empty() {
        let (tag, mut set, after) = element(names)?;
        if tag != SET {
            return None;
        }
        names = after;
        while !set.is_empty() {
            let (_, pair, after) = element(set)?;
            set = after;
            let (tag, kind, value) = element(pair)?;
            let (_, text, _) = element(value)?;
            if tag != OBJECT_IDENTIFIER {
                return None;
            }
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

/// The first element of some bytes: its tag, its contents, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        // Nothing here is longer than four bytes can say.
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, after) = rest.split_at_checked(count)?;
        length = digits
            .iter()
            .fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = after;
    }
    let (contents, after) = rest.split_at_checked(length)?;
    Some((tag, contents, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Identity;

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
