//! A session in a container, over WebSockets or SPDY.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use node_access::{Session, Wants};
use shared_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use super::spdy::{self, Stream};
use super::websocket::{Socket, content, goodbye, message};

/// The channels.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Says of another channel that it is over, from the fifth version on.
const CLOSE: u8 = 255;
/// How long a client may take to open its streams, and to let go at the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end of a session in the first version of the protocol: nothing, or the error's text.
fn last_words(protocol: &str, status: &Value) -> Vec<u8> {
    let structured = protocol.starts_with("v4") || protocol.starts_with("v5");
    if structured {
        return status.to_string().into_bytes();
    }
    let failed = status.get("status").and_then(Value::as_str) != Some("Success");
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    if failed {
        message.as_bytes().to_vec()
    } else {
        Vec::new()
    }
}

/// Carries a session, or the failure to begin one.
pub(super) async fn over_websocket(
    socket: Socket,
    protocol: &str,
    wants: Wants,
    session: Result<Box<dyn Session>, Value>,
) {
    let (mut sink, mut stream) = socket.split();
    let status = match session {
        Err(failure) => Some(failure),
        Ok(mut session) => {
            let mut end = session.take_end();
            let [out, err] = session.outputs();
            let (mut open_out, mut open_err) = (true, true);
            let mut status = None;
            while status.is_none() || open_out || open_err {
                let to_send = tokio::select! {
                    biased;
                    received = stream.next() => match received {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(message)) => {
                            match content(&message) {
                                Some((STDIN, bytes)) => session.feed(bytes),
                                Some((CLOSE, [STDIN])) => session.end_input(),
                                _ => {}
                            }
                            None
                        }
                    },
                    piece = out.next(), if open_out => {
                        open_out = piece.is_some();
                        piece.filter(|_| wants.stdout).map(|bytes| message(STDOUT, &bytes))
                    }
                    piece = err.next(), if open_err => {
                        open_err = piece.is_some();
                        piece.filter(|_| wants.stderr).map(|bytes| message(STDERR, &bytes))
                    }
                    ended = &mut end, if status.is_none() => {
                        status = Some(ended);
                        session.close();
                        None
                    }
                };
                if let Some(message) = to_send
                    && sink.send(message).await.is_err()
                {
                    return;
                }
            }
            status
        }
    };
    let words = last_words(protocol, &status.unwrap_or_default());
    // Whoever does not listen any more does not need to know.
    let _ = sink.send(message(ERROR, &words)).await;
    let _ = sink.send(goodbye()).await;
    let _ = tokio::time::timeout(PATIENCE, async { while let Some(Ok(_)) = stream.next().await {} }).await;
}

/// Carries a session over the streams that the client opens.
pub(super) async fn over_spdy<S>(connection: S, protocol: &str, wants: Wants, mut session: Box<dyn Session>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut streams = spdy::serve(connection);
    let (mut error, mut stdin, mut stdout, mut stderr) = (None, None, None, None);
    let complete =
        |error: &Option<Stream>, stdin: &Option<Stream>, stdout: &Option<Stream>, stderr: &Option<Stream>| {
            error.is_some()
                && (stdin.is_some() || !wants.stdin)
                && (stdout.is_some() || !wants.stdout)
                && (stderr.is_some() || !wants.stderr)
        };
    while !complete(&error, &stdin, &stdout, &stderr) {
        let Ok(Some(stream)) = tokio::time::timeout(PATIENCE, streams.recv()).await else {
            return;
        };
        match stream.header("streamtype") {
            "error" => error = Some(stream),
            "stdin" => stdin = Some(stream),
            "stdout" => stdout = Some(stream),
            "stderr" => stderr = Some(stream),
            _ => {}
        }
    }
    let mut end = session.take_end();
    let [out, err] = session.outputs();
    let (mut open_out, mut open_err) = (true, true);
    let mut status = None;
    while status.is_none() || open_out || open_err {
        tokio::select! {
            biased;
            received = read(&mut stdin), if stdin.is_some() => match received {
                Some(bytes) => session.feed(&bytes),
                None => {
                    stdin = None;
                    session.end_input();
                }
            },
            piece = out.next(), if open_out => {
                open_out = piece.is_some();
                write(&stdout, piece).await;
            }
            piece = err.next(), if open_err => {
                open_err = piece.is_some();
                write(&stderr, piece).await;
            }
            ended = &mut end, if status.is_none() => {
                status = Some(ended);
                session.close();
            }
            // What is opened later (the size of a terminal) changes nothing; a client that goes ends the session.
            late = streams.recv() => if late.is_none() {
                return;
            },
        }
    }
    if let Some(stream) = &error {
        stream
            .write(Bytes::from(last_words(protocol, &status.unwrap_or_default())))
            .await;
    }
    for stream in [&stdout, &stderr, &error].into_iter().flatten() {
        stream.finish().await;
    }
    // The client closes the connection once it has read all.
    let _ = tokio::time::timeout(PATIENCE, async { while streams.recv().await.is_some() {} }).await;
}

async fn read(stream: &mut Option<Stream>) -> Option<Bytes> {
    match stream {
        Some(stream) => stream.read().await,
        None => None,
    }
}

async fn write(stream: &Option<Stream>, piece: Option<Vec<u8>>) {
    if let (Some(stream), Some(piece)) = (stream, piece) {
        stream.write(Bytes::from(piece)).await;
    }
}
