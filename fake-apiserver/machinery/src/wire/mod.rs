//! The part of protobuf's wire format that is needed, written by hand.

/// Builds a message.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

impl Writer {
    /// The message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, kind: u64) {
        self.raw(u64::from(field) << 3 | kind);
    }

    /// Writes a whole number or a boolean.
    pub fn varint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.raw(value);
    }

    /// Writes a number with a fraction.
    pub fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, BYTES);
        self.raw(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Writes text.
    pub fn string(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message within the message.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The value of a field as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// A whole number of any length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

impl<'a> Token<'a> {
    /// Bytes.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn bytes(&self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed),
        }
    }

    /// Text; invalid UTF-8 is replaced, as by Go's encoder.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn text(&self) -> Result<String, Malformed> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn number(&self) -> Result<u64, Malformed> {
        match self {
            Self::Varint(value) => Ok(*value),
            _ => Err(Malformed),
        }
    }

    /// A number with a fraction.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn double(&self) -> Result<f64, Malformed> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(*bits)),
            Self::Fixed32(bits) => Ok(f64::from(f32::from_bits(*bits))),
            _ => Err(Malformed),
        }
    }
}

/// Reads a message field by field.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A whole number without its tag.
    ///
    /// # Errors
    /// If it does not end.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next field's number and value; `None` at the end.
    ///
    /// # Errors
    /// If it is no field.
    pub fn next_field(&mut self) -> Result<Option<(u32, Token<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed)?;
        let token = match tag & 7 {
            VARINT => Token::Varint(self.varint()?),
            FIXED64 => Token::Fixed64(u64::from_le_bytes(
                self.take(8)?.try_into().map_err(|_| Malformed)?,
            )),
            BYTES => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Token::Bytes(self.take(length)?)
            }
            FIXED32 => Token::Fixed32(u32::from_le_bytes(
                self.take(4)?.try_into().map_err(|_| Malformed)?,
            )),
            _ => return Err(Malformed),
        };
        Ok(Some((number, token)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_protobuf_documents() {
        let mut out = Writer::default();
        out.varint(1, 150);
        out.string(2, "testing");
        out.message(3, |out| out.varint(1, 150));
        let expected = [
            0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67, 0x1a, 0x03, 0x08, 0x96,
            0x01,
        ];
        assert_eq!(out.into_bytes(), expected);
    }
}
