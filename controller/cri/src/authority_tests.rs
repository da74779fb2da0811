//! Fields of the examples in RFC 7541, and requests as Go's client sends them.

use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::messages::{VersionRequest, VersionResponse};
use crate::{Service, serve};

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<_> = hexadecimal
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

#[rstest]
#[case::plain(
    "82 86 84 41 0f 7777 772e 6578 616d 706c 652e 636f 6d",
    Some("82 86 84 41 0f 7878 7878 7878 7878 7878 7878 7878 78")
)]
#[case::compressed(
    "82 86 84 41 8c f1e3 c2e5 f23a 6ba0 ab90 f4ff",
    Some("82 86 84 41 0f 7878 7878 7878 7878 7878 7878 7878 78")
)]
#[case::from_the_table("82 86 84 be 58 86 a8eb 1064 9cbf", None)]
#[case::after_a_field_with_a_name(
    "40 0a 6375 7374 6f6d 2d6b 6579 00 01 01 2f 82",
    Some("40 0a 6375 7374 6f6d 2d6b 6579 00 01 01 78 82")
)]
#[case::after_a_name_that_is_plain("00 02 6162 01 63 01 01 2f 82", Some("00 02 6162 01 63 01 01 78 82"))]
#[case::after_a_size_of_the_table("3f e1 1f 01 01 2f", Some("3f e1 1f 01 01 78"))]
#[case::broken_off("82 41 0f 7777", None)]
#[case::an_integer_without_end("ff ff ff ff ff ff", None)]
#[case::nothing("", None)]
fn fields_of_requests(#[case] fields: &str, #[case] expect: Option<&str>) {
    assert_eq!(fields_with_host(&bytes(fields)), expect.map(bytes));
}

/// Lengths around those that need one more byte.
#[rstest]
fn lengths(#[values(1, 126, 127, 128, 254, 255, 256, 16_000)] length: usize) {
    let mut fields = vec![1];
    put_length(&mut fields, length);
    fields.resize(fields.len() + length, b'/');
    let changed = fields_with_host(&fields).unwrap();
    assert_eq!(changed.len(), fields.len());
    assert_eq!(characters(&mut &changed[1..]), Some(length));
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![
        0,
        0,
        payload.len() as u8,
        kind,
        flags,
        0,
        0,
        0,
        u8::from(kind < 2),
    ];
    frame.extend_from_slice(payload);
    frame
}

/// What a client sends that asks for the version with this authority, its fields in a frame with these flags.
fn asks(authority: &str, flags: u8) -> Vec<u8> {
    let mut fields = match flags & PADDED {
        0 => vec![],
        _ => vec![3],
    };
    if flags & PRIORITY != 0 {
        fields.extend([0, 0, 0, 0, 15]);
    }
    fields.extend([0x83, 0x86]);
    for (name, value) in [(4, "/runtime.v1.RuntimeService/Version"), (0x41, authority)] {
        fields.extend([name, value.len() as u8]);
        fields.extend(value.bytes());
    }
    if flags & PADDED != 0 {
        fields.extend([0; 3]);
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    [
        preface,
        frame(4, 0, &[]),
        frame(HEADERS, flags | 4, &fields),
        frame(0, 1, &[0; 5]),
    ]
    .concat()
}

/// Each is answered, whatever comes at once.
#[rstest]
#[case::host("localhost", 0)]
#[case::path("/run/containerd/containerd.sock", 0)]
#[case::escaped("%2Frun%2Fcontainerd.sock", 0)]
#[case::padded("/run/cri.sock", PADDED)]
#[case::with_a_priority("/run/cri.sock", PRIORITY)]
#[case::with_both("/run/cri.sock", PADDED | PRIORITY)]
#[tokio::test]
async fn authorities(#[case] authority: &str, #[case] flags: u8, #[values(1, 7, 4096)] at_once: usize) {
    let name = format!(
        "cri-{}-{}-{flags}-{at_once}.sock",
        std::process::id(),
        authority.len()
    );
    let path = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    let service = Service::default().on(async |_: VersionRequest| Ok(VersionResponse::default()));
    let served = tokio::spawn(serve(listener, service));
    let mut client = UnixStream::connect(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    for part in asks(authority, flags).chunks(at_once) {
        client.write_all(part).await.unwrap();
    }
    // Settings and windows come first, then the fields of the answer, or that the stream is reset (3).
    let kind = loop {
        let mut head = [0; FRAME_HEAD_BYTES];
        client.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[2])];
        client.read_exact(&mut payload).await.unwrap();
        if matches!(head[3], HEADERS | 3 | 7) {
            break head[3];
        }
    };
    assert_eq!(kind, HEADERS);
    served.abort();
}
