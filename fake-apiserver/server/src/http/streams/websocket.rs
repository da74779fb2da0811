//! Messages of channels over WebSockets: the first byte of a message says its channel.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::BoxStream;
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

/// The most bytes of a log in one message.
const LOG_BYTES: usize = 2 << 10;

/// Sends a log, as texts in base64 or as bytes, until it ends or the client goes. The first message is empty: it says that the log
/// is there.
pub(super) async fn send_log(socket: Socket, mut log: BoxStream<'static, Bytes>, as_text: bool) {
    let message = |bytes: &[u8]| match as_text {
        true => Message::Text(STANDARD.encode(bytes).into()),
        false => Message::Binary(Bytes::copy_from_slice(bytes)),
    };
    let (mut sink, mut stream) = socket.split();
    if sink.send(message(&[])).await.is_err() {
        return;
    }
    loop {
        let piece = tokio::select! {
            biased;
            piece = log.next() => piece,
            heard = stream.next() => match heard {
                // A client has nothing to say.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
        };
        let Some(piece) = piece else { break };
        for part in piece.chunks(LOG_BYTES) {
            if sink.send(message(part)).await.is_err() {
                return;
            }
        }
    }
    // The client may be gone first.
    let _ = sink.send(goodbye()).await;
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
