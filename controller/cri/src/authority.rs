//! Clients whose `:authority` is no host.
//!
//! OpenKruise's daemon reaches its runtime by gRPC for Go, which sends the path of the socket as a request's `:authority`. Go's servers
//! take that. The HTTP/2 library beneath [`serve`](crate::serve) takes hosts alone, and resets the stream. No method looks at the
//! authority, so that [`Hosts`] puts a host in its place before the library reads it.
//!
//! The host is as long as what it replaces: client and server drop entries of their tables by the sum of the entries' lengths
//! (RFC 7541, section 4.1), and both must drop the same ones.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

/// What a client sends before its first frame has this many bytes (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

const FRAME_HEAD_BYTES: usize = 9;

/// The largest payload of a frame, unless a server allows more.
const PAYLOAD_BYTES_MAX: usize = 16_384;

const HEADERS: u8 = 1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The index of `:authority` in the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;

/// How many symbols have a Huffman code of so many bits (RFC 7541, appendix B). The codes are canonical, so that no more needs to be
/// known to tell where each ends.
const CODES: [u32; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];

/// What a client of HTTP/2 sends, with a host as each request's `:authority`.
pub(crate) struct Hosts<R> {
    inner: R,
    /// What came and is not looked at yet.
    input: BytesMut,
    /// What may be read.
    output: BytesMut,
    /// How many bytes of the input pass as they are.
    passing: usize,
}

impl<R> Hosts<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            input: BytesMut::new(),
            output: BytesMut::new(),
            passing: PREFACE_BYTES,
        }
    }

    /// Moves what is whole from the input to the output.
    fn advance(&mut self) {
        loop {
            let passing = self.passing.min(self.input.len());
            self.output.unsplit(self.input.split_to(passing));
            self.passing -= passing;
            let Some(&[a, b, c, kind, flags]) = self.input.first_chunk() else {
                return;
            };
            if self.passing > 0 {
                return;
            }
            let bytes = u32::from_be_bytes([0, a, b, c]) as usize;
            let whole = FRAME_HEAD_BYTES + bytes;
            if kind != HEADERS || bytes > PAYLOAD_BYTES_MAX {
                self.passing = whole;
                continue;
            }
            if self.input.len() < whole {
                return;
            }
            let frame = self.input.split_to(whole);
            match with_host(&frame, flags) {
                Some(changed) => self.output.unsplit(changed),
                None => self.output.unsplit(frame),
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Hosts<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.output.is_empty() {
            let mut chunk = [0; 8 * 1024];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                // The client is gone, and may have left a part of a frame.
                this.output = this.input.split();
                break;
            }
            this.input.extend_from_slice(chunk.filled());
            this.advance();
        }
        let bytes = this.output.len().min(buffer.remaining());
        buffer.put_slice(&this.output.split_to(bytes));
        Poll::Ready(Ok(()))
    }
}

/// A HEADERS frame with these flags and a host as its `:authority`. Nothing if the frame has none, or not the whole of it.
fn with_host(frame: &[u8], flags: u8) -> Option<BytesMut> {
    let (head, payload) = frame.split_at_checked(FRAME_HEAD_BYTES)?;
    let has = |flag: u8| flags & flag != 0;
    let padding = if has(PADDED) {
        usize::from(*payload.first()?)
    } else {
        0
    };
    // The length of the padding is a byte, a priority five.
    let bytes_before = usize::from(has(PADDED)) + 5 * usize::from(has(PRIORITY));
    let (before, rest) = payload.split_at_checked(bytes_before)?;
    let (fields, after) = rest.split_at_checked(rest.len().checked_sub(padding)?)?;
    let fields = fields_with_host(fields)?;

    let bytes = before.len() + fields.len() + after.len();
    let mut changed = BytesMut::with_capacity(FRAME_HEAD_BYTES + bytes);
    changed.put_uint(u64::try_from(bytes).ok()?, 3);
    changed.extend_from_slice(head.get(3..)?);
    changed.extend_from_slice(before);
    changed.extend_from_slice(&fields);
    changed.extend_from_slice(after);
    (bytes <= PAYLOAD_BYTES_MAX).then_some(changed)
}

/// The compressed fields of a request with a host as `:authority`, or nothing if no field names it with a value of its own.
fn fields_with_host(fields: &[u8]) -> Option<Vec<u8>> {
    let mut rest = fields;
    loop {
        let (bits, has_value) = match *rest.first()? {
            0x80.. => (7, false),
            0x40.. => (6, true),
            // A size of the table.
            0x20.. => (5, false),
            _ => (4, true),
        };
        let name = integer(&mut rest, bits)?;
        if !has_value {
            continue;
        }
        if name == 0 {
            characters(&mut rest)?;
        }
        let before = fields.len() - rest.len();
        let length = characters(&mut rest)?;
        if name == AUTHORITY {
            let mut changed = fields.get(..before)?.to_vec();
            put_length(&mut changed, length);
            changed.resize(changed.len() + length, b'x');
            changed.extend_from_slice(rest);
            return Some(changed);
        }
    }
}

/// Reads an integer whose first byte has so many bits of it (RFC 7541, section 5.1).
fn integer(rest: &mut &[u8], bits: u8) -> Option<usize> {
    let most = (1 << bits) - 1;
    let mut value = usize::from(*rest.first()?) & most;
    rest.advance(1);
    if value < most {
        return Some(value);
    }
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(*rest.first()?);
        rest.advance(1);
        value += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Writes the length of a string that is not compressed.
fn put_length(fields: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(0x7f) else {
        fields.push(length as u8);
        return;
    };
    fields.push(0x7f);
    while rest >= 0x80 {
        fields.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    fields.push(rest as u8);
}

/// Reads a string: how many characters it has.
fn characters(rest: &mut &[u8]) -> Option<usize> {
    let compressed = *rest.first()? >= 0x80;
    let bytes = integer(rest, 7)?;
    let (string, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    if !compressed {
        return Some(bytes);
    }
    let bits = string
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    let (mut characters, mut length, mut code, mut first) = (0, 0, 0, 0);
    for bit in bits {
        first = (first + CODES.get(length)?) << 1;
        length += 1;
        code = code << 1 | bit;
        if code - first < *CODES.get(length)? {
            characters += 1;
            (length, code, first) = (0, 0, 0);
        }
    }
    Some(characters)
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
