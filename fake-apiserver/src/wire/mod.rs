//! Protobuf's wire format, written by hand: what little of it is needed.

/// Builds a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
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

    pub(crate) fn varint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.raw(value);
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, BYTES);
        self.raw(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn string(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message within the message.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
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
