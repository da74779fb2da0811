//! Connections to the ports of a pod, over SPDY (a pair of streams each) or WebSockets (a pair of channels each).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use node_access::NodeAccess;
use store::Stored;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::spdy::{self, Stream};
use super::websocket::{Socket, content, message};

const BUFFER_BYTES: usize = 32 << 10;

/// A pod, and the way to its node.
#[derive(Clone)]
pub(super) struct Target {
    pub access: Arc<dyn NodeAccess>,
    pub pod: Arc<Stored>,
}

/// Forwards connections for as long as the client holds its own.
pub(super) async fn over_spdy<S>(connection: S, target: Target)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut streams = spdy::serve(connection);
    // The streams for errors, by the number of the connection that they belong to.
    let mut errors: BTreeMap<String, Stream> = BTreeMap::new();
    let mut waiting: BTreeMap<String, Stream> = BTreeMap::new();
    let mut connections = JoinSet::new();
    while let Some(stream) = streams.recv().await {
        while connections.try_join_next().is_some() {}
        let id = stream.header("requestid").to_owned();
        let pair = match stream.header("streamtype") {
            "error" => match waiting.remove(&id) {
                Some(data) => Some((data, stream)),
                None => {
                    errors.insert(id, stream);
                    None
                }
            },
            "data" => match errors.remove(&id) {
                Some(error) => Some((stream, error)),
                None => {
                    waiting.insert(id, stream);
                    None
                }
            },
            _ => None,
        };
        if let Some((data, error)) = pair {
            connections.spawn(connection_over_spdy(target.clone(), data, error));
        }
    }
}

async fn connection_over_spdy(target: Target, mut data: Stream, error: Stream) {
    let port = data.header("port").parse().unwrap_or_default();
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut reader, mut writer) = tokio::io::split(near);
    let sender = data.sender();
    let receive = async {
        while let Some(bytes) = data.read().await {
            if writer.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // The far end may be gone.
        let _ = writer.shutdown().await;
        std::future::pending::<()>().await;
    };
    let send = async {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            sender.write(Bytes::copy_from_slice(&buffer[..count])).await;
        }
    };
    let serve = target.access.forward(&target.pod.value, port, far);
    let ((), failed) = tokio::select! {
        biased;
        () = receive => ((), Ok(())),
        done = async { tokio::join!(send, serve) } => done,
    };
    if let Err(text) = failed {
        error.write(Bytes::from(text)).await;
    }
    error.finish().await;
    sender.finish().await;
}

/// Forwards one connection to each port.
pub(super) async fn over_websocket(socket: Socket, ports: &[u16], target: Target) {
    let (mut sink, mut stream) = socket.split();
    let (sender, mut outgoing) = mpsc::channel::<Message>(64);
    let mut writers: Vec<WriteHalf<DuplexStream>> = Vec::new();
    let mut connections = JoinSet::new();
    for (index, port) in ports.iter().copied().enumerate() {
        let Ok(channel) = u8::try_from(2 * index) else {
            break;
        };
        let (near, far) = tokio::io::duplex(BUFFER_BYTES);
        let (reader, writer) = tokio::io::split(near);
        writers.push(writer);
        // Each channel begins with its port.
        for channel in [channel, channel + 1] {
            if sink.send(message(channel, &port.to_le_bytes())).await.is_err() {
                return;
            }
        }
        connections.spawn(connection_over_websocket(
            target.clone(),
            port,
            channel,
            reader,
            far,
            sender.clone(),
        ));
    }
    drop(sender);
    loop {
        tokio::select! {
            biased;
            received = stream.next() => {
                let Some(Ok(received)) = received else { return };
                if matches!(received, Message::Close(_)) {
                    return;
                }
                let Some((channel, bytes)) = content(&received) else { continue };
                let writer = writers.get_mut(usize::from(channel / 2));
                // What comes for a connection that is over is lost, as on a network.
                if let Some(writer) = writer.filter(|_| channel % 2 == 0) {
                    let _ = writer.write_all(bytes).await;
                }
            }
            message = outgoing.recv() => {
                let Some(message) = message else { break };
                if sink.send(message).await.is_err() {
                    return;
                }
            }
        }
    }
    let _ = sink.close().await;
}

async fn connection_over_websocket(
    target: Target,
    port: u16,
    channel: u8,
    mut reader: tokio::io::ReadHalf<DuplexStream>,
    far: DuplexStream,
    sender: mpsc::Sender<Message>,
) {
    let send = async {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            let piece = message(channel, buffer.get(..count).unwrap_or_default());
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    };
    let serve = target.access.forward(&target.pod.value, port, far);
    let ((), failed) = tokio::join!(send, serve);
    if let Err(text) = failed {
        // Whoever has gone does not need to know.
        let _ = sender.send(message(channel + 1, text.as_bytes())).await;
    }
}
