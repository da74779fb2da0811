//! Messages of channels over WebSockets: the first byte of a message says its channel.

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

const BUFFER_BYTES: usize = 64 << 10;

/// A message for a channel.
pub(super) fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    whole.push(channel);
    whole.extend_from_slice(bytes);
    Message::Binary(whole.into())
}

/// A client's message: its channel and content. None for an empty one.
pub(super) fn content(message: &Message) -> Option<(u8, &[u8])> {
    let bytes: &[u8] = match message {
        Message::Binary(bytes) => bytes,
        Message::Text(text) => text.as_bytes(),
        _ => return None,
    };
    bytes.split_first().map(|(channel, rest)| (*channel, rest))
}

/// The end of a conversation that went well.
pub(super) fn goodbye() -> Message {
    Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }))
}

/// The bytes that a WebSocket carries, as one stream in each direction.
pub(super) fn tunnel(socket: Socket) -> DuplexStream {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut sink, mut stream) = socket.split();
    let (mut reader, mut writer) = tokio::io::split(far);
    tokio::spawn(async move {
        while let Some(Ok(message)) = stream.next().await {
            if let Message::Binary(bytes) = message
                && writer.write_all(&bytes).await.is_err()
            {
                break;
            }
        }
        // The other side may be gone first.
        let _ = writer.shutdown().await;
    });
    tokio::spawn(async move {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            let piece = Bytes::copy_from_slice(&buffer[..count]);
            if sink.send(Message::Binary(piece)).await.is_err() {
                return;
            }
        }
        let _ = sink.send(goodbye()).await;
    });
    near
}
