//! Headers of streams: counted names and values, compressed as one stream over the whole connection, with a dictionary.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// The words that both sides know from the start, as SPDY/3 defines them.
const DICTIONARY: &[u8] = include_bytes!("../../../resources/data/spdy-dictionary.bin");
/// How far back compressed bytes may point; a power of two.
const WINDOW_BYTES: usize = 32 << 10;
/// How large a stream's headers may be.
const HEADERS_BYTES_MAX: usize = 64 << 10;
/// In zlib's head: a dictionary's checksum follows.
const HAS_DICTIONARY: u8 = 0x20;

/// Decompresses the headers from the other side.
pub(super) struct Unpacker {
    state: Box<DecompressorOxide>,
    window: Vec<u8>,
    at: usize,
    begun: bool,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self {
            state: Box::default(),
            window: vec![0; WINDOW_BYTES],
            at: 0,
            begun: false,
        }
    }
}

impl Unpacker {
    /// The headers of one frame; none if they cannot be read.
    pub(super) fn unpack(&mut self, packed: &[u8]) -> Option<Vec<(String, String)>> {
        let mut packed = packed;
        if !self.begun {
            self.begun = true;
            let flags = *packed.get(1)?;
            packed = packed.get(2..)?;
            if flags & HAS_DICTIONARY != 0 {
                packed = packed.get(4..)?;
                self.window
                    .get_mut(..DICTIONARY.len())?
                    .copy_from_slice(DICTIONARY);
                self.at = DICTIONARY.len();
            }
        }
        let mut out = Vec::new();
        loop {
            let (status, used, written) = decompress(
                &mut self.state,
                packed,
                &mut self.window,
                self.at,
                TINFL_FLAG_HAS_MORE_INPUT,
            );
            out.extend_from_slice(self.window.get(self.at..self.at + written)?);
            self.at = (self.at + written) % WINDOW_BYTES;
            packed = packed.get(used..)?;
            match status {
                TINFLStatus::HasMoreOutput if out.len() <= HEADERS_BYTES_MAX => {}
                TINFLStatus::NeedsMoreInput if out.len() <= HEADERS_BYTES_MAX => return parse(&out),
                _ => return None,
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    fn number(rest: &mut &[u8]) -> Option<usize> {
        let (bytes, after) = rest.split_first_chunk::<4>()?;
        *rest = after;
        usize::try_from(u32::from_be_bytes(*bytes)).ok()
    }
    fn text(rest: &mut &[u8]) -> Option<String> {
        let length = number(rest)?;
        let (bytes, after) = rest.split_at_checked(length)?;
        *rest = after;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
    let mut rest = bytes;
    let count = number(&mut rest)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(&mut rest)?, text(&mut rest)?));
    }
    Some(headers)
}

/// Writes headers without compressing them: as stored blocks.
#[derive(Default)]
pub(super) struct Packer {
    begun: bool,
}

impl Packer {
    pub(super) fn pack(&mut self, headers: &[(&str, &str)]) -> Vec<u8> {
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
        let mut plain = length(headers.len()).to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(length(text.len()));
            plain.extend_from_slice(text.as_bytes());
        }
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(&[0x78, 0x01]);
        }
        for piece in plain.chunks(usize::from(u16::MAX)) {
            let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
            out.push(0);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(!length).to_le_bytes());
            out.extend_from_slice(piece);
        }
        // An empty block: readers hand over what they have once they see one, and Go's reader does so no sooner.
        out.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_packed_and_unpacked_one_after_the_other() {
        let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
        for headers in [
            vec![("streamtype", "error"), ("port", "80")],
            vec![],
            vec![("a", "b")],
        ] {
            let packed = packer.pack(&headers);
            let expected = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            assert_eq!(unpacker.unpack(&packed), Some(expected.collect()));
        }
    }

    /// A header that zlib compressed with the dictionary, with a flush at the end.
    #[test]
    fn the_dictionary_is_known() {
        let packed = [
            0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0xa6, 0x23, 0x46, 0x2c, 0x85, 0x09, 0x27, 0xdc, 0x4f,
            0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
        ];
        let headers = Unpacker::default().unpack(&packed);
        assert_eq!(
            headers,
            Some(vec![("content-type".to_owned(), "text/html".to_owned())])
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [
            &b""[..],
            b"\x78\x01\xff\xff\xff",
            b"\x78\x01\x00\x01\x00\xfe\xff\x09",
        ] {
            assert_eq!(Unpacker::default().unpack(bytes), None, "{bytes:?}");
        }
    }
}
