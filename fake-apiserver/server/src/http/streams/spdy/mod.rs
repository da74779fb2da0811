//! SPDY/3.1, the little of it that Kubernetes' clients speak: a client opens streams, both sides write to them.
//!
//! [`frame`] is the wire format, [`headers`] the packing of a stream's headers. Windows are not kept: those clients
//! do not keep them either.

mod frame;
mod headers;

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf};
use tokio::sync::mpsc;

use frame::{Frame, HEAD_BYTES, Head};
use headers::{Packer, Unpacker};

/// How many streams a connection may have at a time.
const STREAMS_MAX: usize = 1000;
/// How much may wait: frames to be written, pieces to be read.
const WAITING_MAX: usize = 64;
/// The most in one frame of data.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// A stream that the client has opened.
pub(super) struct Stream {
    headers: Vec<(String, String)>,
    incoming: mpsc::Receiver<Bytes>,
    sender: Sender,
}

/// Writes to a stream.
#[derive(Clone)]
pub(super) struct Sender {
    id: u32,
    frames: mpsc::Sender<Frame>,
}

impl Stream {
    /// A header by its name in lower case; empty without it.
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The next bytes; none once the client has written all.
    pub(super) async fn read(&mut self) -> Option<Bytes> {
        self.incoming.recv().await
    }

    pub(super) fn sender(&self) -> Sender {
        self.sender.clone()
    }

    pub(super) async fn write(&self, bytes: Bytes) {
        self.sender.write(bytes).await;
    }

    pub(super) async fn finish(&self) {
        self.sender.finish().await;
    }
}

impl Sender {
    /// Writes bytes. If the client is gone they are lost; the end of the stream of streams shows that.
    pub(super) async fn write(&self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES_MAX));
            let frame = Frame::data(self.id, piece, false);
            if self.frames.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// Nothing more will be written.
    pub(super) async fn finish(&self) {
        let _gone = self.frames.send(Frame::data(self.id, Bytes::new(), true)).await;
    }
}

/// Serves a connection; gives the streams that the client opens. It ends when the client goes, or the receiver is dropped.
pub(super) fn serve<S>(connection: S) -> mpsc::Receiver<Stream>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (reader, mut writer) = tokio::io::split(connection);
    let (frames, mut to_write) = mpsc::channel::<Frame>(WAITING_MAX);
    let (opened, streams) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        while let Some(frame) = to_write.recv().await {
            if writer.write_all(&frame.encode()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
        // Nobody may be there any more.
        let _ = writer.shutdown().await;
    });
    tokio::spawn(async move {
        let connection = Connection {
            reader,
            frames,
            opened,
            streams: BTreeMap::new(),
            unpacker: Unpacker::default(),
            packer: Packer::default(),
        };
        if let Err(error) = connection.run().await {
            tracing::debug!(%error, "read a SPDY connection");
        }
    });
    streams
}

struct Connection<S> {
    reader: ReadHalf<S>,
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Stream>,
    /// Those that the client may still write to.
    streams: BTreeMap<u32, mpsc::Sender<Bytes>>,
    unpacker: Unpacker,
    packer: Packer,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl<S: AsyncRead + Send> Connection<S> {
    async fn run(mut self) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        loop {
            let opened = self.opened.clone();
            tokio::select! {
                biased;
                () = opened.closed() => return Ok(()),
                read = self.reader.read_exact(&mut head) => match read {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    other => other?,
                },
            };
            let head = Head::read(head).ok_or_else(|| malformed("not SPDY/3.1"))?;
            let mut payload = vec![0; head.length()];
            self.reader.read_exact(&mut payload).await?;
            self.take(head, payload).await?;
        }
    }

    async fn take(&mut self, head: Head, payload: Vec<u8>) -> io::Result<()> {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?) & 0x7fff_ffff)
        };
        match head {
            Head::Data { id, finish, .. } => {
                if let Some(stream) = self.streams.get(&id)
                    && !payload.is_empty()
                    && stream.send(Bytes::from(payload)).await.is_err()
                {
                    // Nobody reads it any more.
                    self.streams.remove(&id);
                }
                if finish {
                    self.streams.remove(&id);
                }
            }
            Head::Control {
                kind: frame::SYN_STREAM,
                finish,
                ..
            } => {
                let id = number(0).ok_or_else(|| malformed("a short SYN_STREAM"))?;
                let packed = payload.get(10..).ok_or_else(|| malformed("a short SYN_STREAM"))?;
                let headers = self.unpacker.unpack(packed).ok_or_else(|| malformed("headers"))?;
                if self.streams.len() >= STREAMS_MAX {
                    return Err(malformed("too many streams"));
                }
                self.open(id, headers, finish).await;
            }
            Head::Control {
                kind: frame::HEADERS, ..
            } => {
                // Not used, but what is packed belongs to one stream of packed bytes.
                let packed = payload.get(4..).unwrap_or_default();
                self.unpacker.unpack(packed).ok_or_else(|| malformed("headers"))?;
            }
            Head::Control {
                kind: frame::RST_STREAM,
                ..
            } => {
                if let Some(id) = number(0) {
                    self.streams.remove(&id);
                }
            }
            Head::Control {
                kind: frame::PING, ..
            } => {
                let _gone = self.frames.send(Frame::control(frame::PING, payload)).await;
            }
            // Settings and windows do not matter here; a client that says goodbye closes the connection.
            Head::Control { .. } => {}
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, headers: Vec<(String, String)>, finish: bool) {
        let (bytes, incoming) = mpsc::channel(WAITING_MAX);
        if !finish {
            self.streams.insert(id, bytes);
        }
        let mut reply = id.to_be_bytes().to_vec();
        reply.extend(self.packer.pack(&[]));
        let sender = Sender {
            id,
            frames: self.frames.clone(),
        };
        let _gone = self.frames.send(Frame::control(frame::SYN_REPLY, reply)).await;
        let stream = Stream {
            headers,
            incoming,
            sender,
        };
        let _gone = self.opened.send(stream).await;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_opens_a_stream_and_is_answered() {
        let (mut near, far) = tokio::io::duplex(4096);
        let mut streams = serve(far);
        let mut opening = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        opening.extend(Packer::default().pack(&[("streamtype", "data"), ("port", "80")]));
        let frames = [
            Frame::control(frame::SYN_STREAM, opening),
            Frame::data(1, Bytes::from_static(b"hello"), true),
            Frame::control(frame::PING, vec![0, 0, 0, 1]),
        ];
        for frame in frames {
            near.write_all(&frame.encode()).await.expect("to write");
        }
        let mut stream = streams.recv().await.expect("a stream");
        assert_eq!(
            (stream.header("streamtype"), stream.header("port")),
            ("data", "80")
        );
        assert_eq!(stream.read().await.as_deref(), Some(b"hello".as_slice()));
        assert_eq!(stream.read().await, None);
        stream.write(Bytes::from_static(b"bye")).await;
        stream.finish().await;
        drop((stream, streams));
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.expect("to read");
        // The reply, the ping, the data, its end.
        assert_eq!(answer.get(..4), Some([0x80, 3, 0, 2].as_slice()));
        let rest = [0, 0, 0, 1, 0, 0, 0, 3, b'b', b'y', b'e', 0, 0, 0, 1, 1, 0, 0, 0];
        assert!(answer.ends_with(&rest), "{answer:?}");
        assert!(
            answer
                .windows(12)
                .any(|bytes| bytes == [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])
        );
    }

    /// Possible input: frames of all kinds with headers packed well and badly, and bytes that are no frames.
    fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..60);
        let opening = (any::<u32>(), "[a-z]{0,9}", "[ -~]{0,9}").prop_map(|(id, name, value)| {
            let mut payload = id.to_be_bytes().to_vec();
            payload.extend([0; 6]);
            payload.extend(Packer::default().pack(&[(&name, &value)]));
            Frame::control(frame::SYN_STREAM, payload).encode()
        });
        let control = (0..12_u16, bytes()).prop_map(|(kind, payload)| Frame::control(kind, payload).encode());
        let data = (0..4_u32, bytes(), any::<bool>())
            .prop_map(|(id, payload, finish)| Frame::data(id, Bytes::from(payload), finish).encode());
        proptest::collection::vec(prop_oneof![opening, control, data, bytes()], 0..12)
    }

    proptest! {
        #[test]
        fn whatever_comes_the_connection_ends_when_the_client_goes(pieces in pieces()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
            runtime.block_on(async move {
                let (mut near, far) = tokio::io::duplex(64 << 10);
                let mut streams = serve(far);
                let client = tokio::spawn(async move {
                    for piece in pieces {
                        // The server may have had enough.
                        let _ = near.write_all(&piece).await;
                    }
                    let _ = near.shutdown().await;
                    let mut answer = Vec::new();
                    let _ = near.read_to_end(&mut answer).await;
                    answer
                });
                let mut opened = 0;
                while let Some(stream) = streams.recv().await {
                    opened += 1;
                    drop(stream);
                }
                let answer = client.await.unwrap_or_default();
                // Each stream is answered, by a frame of eight bytes at least.
                prop_assert!(answer.len() >= opened * HEAD_BYTES);
                Ok(())
            })?;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_spdy_ends_the_connection() {
        let (mut near, far) = tokio::io::duplex(4096);
        let mut streams = serve(far);
        near.write_all(b"\xffGET / HTTP/1.1\r\n\r\n")
            .await
            .expect("to write");
        assert!(streams.recv().await.is_none());
    }
}
