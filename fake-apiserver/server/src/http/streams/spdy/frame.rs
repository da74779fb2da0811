//! Frames: a head of eight bytes, and its payload.

use bytes::Bytes;

pub(super) const HEAD_BYTES: usize = 8;
const VERSION: u16 = 3;
const FINISH: u8 = 1;

/// The kinds of control frames that matter here.
pub(super) const SYN_STREAM: u16 = 1;
pub(super) const SYN_REPLY: u16 = 2;
pub(super) const RST_STREAM: u16 = 3;
pub(super) const PING: u16 = 6;
pub(super) const HEADERS: u16 = 8;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Data { id: u32, finish: bool, length: usize },
    Control { kind: u16, finish: bool, length: usize },
}

impl Head {
    /// Reads a head; none for another version of the protocol.
    pub(super) fn read(bytes: [u8; HEAD_BYTES]) -> Option<Self> {
        let [a, b, c, d, flags, e, f, g] = bytes;
        let length = usize::try_from(u32::from_be_bytes([0, e, f, g])).ok()?;
        let finish = flags & FINISH != 0;
        if a & 0x80 == 0 {
            let id = u32::from_be_bytes([a, b, c, d]);
            return Some(Self::Data { id, finish, length });
        }
        let kind = u16::from_be_bytes([c, d]);
        (u16::from_be_bytes([a & 0x7f, b]) == VERSION).then_some(Self::Control { kind, finish, length })
    }

    /// How many bytes follow: 16 MiB at most.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Data { length, .. } | Self::Control { length, .. } => length,
        }
    }
}

/// A frame to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    first: u32,
    flags: u8,
    payload: Bytes,
}

impl Frame {
    pub(super) fn data(id: u32, payload: Bytes, finish: bool) -> Self {
        Self {
            first: id & 0x7fff_ffff,
            flags: if finish { FINISH } else { 0 },
            payload,
        }
    }

    pub(super) fn control(kind: u16, payload: Vec<u8>) -> Self {
        Self {
            first: 0x8000_0000 | u32::from(VERSION) << 16 | u32::from(kind),
            flags: 0,
            payload: Bytes::from(payload),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        let mut out = Vec::with_capacity(HEAD_BYTES + self.payload.len());
        out.extend_from_slice(&self.first.to_be_bytes());
        out.push(self.flags);
        out.extend_from_slice(&length[1..]);
        out.extend_from_slice(&self.payload);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read() {
        let head = |frame: Frame| {
            let bytes = frame.encode();
            Head::read(bytes[..HEAD_BYTES].try_into().expect("a head"))
        };
        let data = Frame::data(7, Bytes::from_static(b"abc"), true);
        assert_eq!(
            head(data),
            Some(Head::Data {
                id: 7,
                finish: true,
                length: 3
            })
        );
        let ping = Frame::control(PING, vec![0; 4]);
        assert_eq!(
            head(ping),
            Some(Head::Control {
                kind: PING,
                finish: false,
                length: 4
            })
        );
        assert_eq!(Head::read([0x80, 2, 0, 1, 0, 0, 0, 0]), None);
    }
}
