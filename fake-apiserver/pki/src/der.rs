//! As much of DER as certificates and requests for them take: elements, one in another.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The tag of a field with this number.
pub(super) const fn numbered(number: u8) -> u8 {
    0xa0 | number
}

/// The first element of some bytes: its tag, its contents, and the rest.
pub(super) fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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

/// The first element of some bytes as it is written, and the rest.
pub(super) fn whole(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, _, after) = element(bytes)?;
    bytes.split_at_checked(bytes.len() - after.len())
}

/// The first element of some bytes, which must have this tag: its contents, and the rest.
pub(super) fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, contents, after) = element(bytes)?;
    (found == tag).then_some((contents, after))
}

/// The elements that some bytes hold, by tag and contents; none if they hold anything else.
pub(super) fn elements(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (tag, contents, after) = element(bytes)?;
        out.push((tag, contents));
        bytes = after;
    }
    Some(out)
}

/// An element that holds these bytes.
pub(super) fn wrap(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(length) if length < 0x80 => out.push(length),
        _ => {
            let digits = contents.len().to_be_bytes();
            let start = digits.iter().position(|digit| *digit != 0).unwrap_or_default();
            out.push(0x80 | u8::try_from(digits.len() - start).unwrap_or_default());
            out.extend_from_slice(&digits[start..]);
        }
    }
    out.extend_from_slice(contents);
    out
}

/// A sequence of elements.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    wrap(SEQUENCE, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_they_are_written() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let contents = vec![7_u8; length];
            let mut written = wrap(OCTET_STRING, &contents);
            written.push(9);
            assert_eq!(
                element(&written),
                Some((OCTET_STRING, contents.as_slice(), &[9][..]))
            );
            assert_eq!(
                expect(OCTET_STRING, &written),
                Some((contents.as_slice(), &[9][..]))
            );
            assert_eq!(expect(SEQUENCE, &written), None);
            assert_eq!(
                whole(&written).map(|(one, after)| (one.len(), after)),
                Some((written.len() - 1, &[9][..]))
            );
            for end in 0..written.len().min(10) - 1 {
                if end < length {
                    assert_eq!(element(&written[..end]), None, "{length} {end}");
                }
            }
        }
        let two = sequence(&[wrap(INTEGER, &[1]), wrap(BOOLEAN, &[0xff])]);
        assert_eq!(two, [0x30, 6, 2, 1, 1, 1, 1, 0xff]);
        assert_eq!(
            elements(&two[2..]),
            Some(vec![(INTEGER, &[1][..]), (BOOLEAN, &[0xff][..])])
        );
        assert_eq!(elements(&[2, 5, 1]), None);
        assert_eq!(element(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
