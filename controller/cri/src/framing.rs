//! A message in the body of a request or an answer: a flag, its length, its bytes.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

use crate::status::{Code, Status};

/// The bytes before a message: a flag for compression, and its length.
const PREFIX_BYTES: usize = 5;
/// The longest message that is sent or taken (the kubelet: the same).
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest body.
pub(crate) const BODY_BYTES_MAX: usize = PREFIX_BYTES + MESSAGE_BYTES_MAX;

/// The body that has one message.
pub(crate) fn pack(message: &impl Message) -> Result<Bytes, Status> {
    let length = message.encoded_len();
    let prefix = u32::try_from(length)
        .ok()
        .filter(|_| length <= MESSAGE_BYTES_MAX)
        .ok_or_else(|| too_long(length))?;
    let mut body = BytesMut::with_capacity(PREFIX_BYTES + length);
    body.put_u8(0);
    body.put_u32(prefix);
    message
        .encode(&mut body)
        .map_err(|error| Status::new(Code::INTERNAL, error.to_string()))?;
    Ok(body.freeze())
}

/// The one message of a body.
pub(crate) fn unpack<M: Message + Default>(mut body: Bytes) -> Result<M, Status> {
    let broken = |why: &str| Status::new(Code::INTERNAL, why);
    if body.len() < PREFIX_BYTES {
        return Err(broken("the body has no message"));
    }
    if body.get_u8() != 0 {
        return Err(broken("the message is compressed, which was not asked for"));
    }
    let length = usize::try_from(body.get_u32()).unwrap_or(usize::MAX);
    if length != body.len() {
        return Err(broken("the body is not one message"));
    }
    M::decode(body).map_err(|error| broken(&error.to_string()))
}

/// The failure for a message that is too long.
pub(crate) fn too_long(length: usize) -> Status {
    let why = format!("a message of {length} bytes exceeds {MESSAGE_BYTES_MAX}");
    Status::new(Code::RESOURCE_EXHAUSTED, why)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::messages::VersionRequest;

    #[test]
    fn a_message_survives_the_way() {
        let request = VersionRequest {
            version: "v1".to_owned(),
        };
        let body = pack(&request).unwrap();
        assert_eq!(&body[..], b"\0\0\0\0\x04\x0a\x02v1");
        assert_eq!(unpack::<VersionRequest>(body), Ok(request));
    }

    #[rstest]
    #[case::nothing(b"", "the body has no message")]
    #[case::no_length(b"\0\0\0", "the body has no message")]
    #[case::compressed(b"\x01\0\0\0\0", "the message is compressed, which was not asked for")]
    #[case::cut_off(b"\0\0\0\0\x04\x0a", "the body is not one message")]
    #[case::two(b"\0\0\0\0\0\0\0\0\0\0", "the body is not one message")]
    #[case::huge_length(b"\0\xff\xff\xff\xff", "the body is not one message")]
    fn broken_bodies(#[case] body: &'static [u8], #[case] why: &str) {
        let error = unpack::<VersionRequest>(Bytes::from_static(body)).unwrap_err();
        assert_eq!((error.code, &*error.message), (Code::INTERNAL, why));
    }

    #[test]
    fn a_broken_message_is_a_failure() {
        let body = Bytes::from_static(b"\0\0\0\0\x02\x0a\x09");
        assert_eq!(unpack::<VersionRequest>(body).unwrap_err().code, Code::INTERNAL);
    }
}
