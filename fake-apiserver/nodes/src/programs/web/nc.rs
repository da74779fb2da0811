//! `nc`: a plain connection, or a listener; `-u` for datagrams.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::super::pipe::Output;
use super::super::shell::{Shell, Streams};
use super::wget::reason;
use super::{Arguments, complain};
use crate::nic::{DialError, Socket};

const BUFFER_BYTES: usize = 16 << 10;

impl Shell {
    pub(super) async fn nc(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let read = Arguments::read(arguments, "wpeqsi", &[]);
        if read.has(&["u"]) {
            return self.nc_datagrams(&read, streams).await;
        }
        if read.has(&["l"]) {
            return self.nc_listen(&read, streams).await;
        }
        let [host, port] = read.operands.as_slice() else {
            return complain(streams, "nc: missing hostname and port", 1);
        };
        let Ok(number) = port.parse::<u16>() else {
            return complain(streams, &format!("nc: port number invalid: {port}"), 1);
        };
        let patience = read.seconds(&["w"]);
        let nic = self.nic();
        let connected = within(patience, nic.connect(host, number)).await;
        let verbose = read.has(&["v"]);
        let failed = |why: &str| {
            if verbose {
                complain(
                    streams,
                    &format!("nc: connect to {host} port {port} (tcp) failed: {why}"),
                    1,
                )
            } else {
                1
            }
        };
        let stream = match connected {
            None => return failed("Operation timed out"),
            Some(Ok(stream)) => stream,
            Some(Err(DialError::Outside(_))) => return 0,
            Some(Err(DialError::Connect(error))) => return failed(reason(&error)),
            Some(Err(DialError::Name(_))) => return unknown(streams, host, port),
        };
        if verbose {
            let line = format!("Connection to {host} {port} port [tcp/*] succeeded!\n");
            streams.err.write(line.as_bytes());
        }
        if read.has(&["z"]) {
            return 0;
        }
        carry(stream, (&streams.input, &streams.out), patience).await;
        0
    }

    /// `nc -u`: datagrams from the input to a peer and back.
    async fn nc_datagrams(&mut self, read: &Arguments<'_>, streams: &Streams) -> i32 {
        let nic = self.nic();
        let patience = read.seconds(&["w"]);
        let own = read.value(&["p"]);
        let is_listener = read.has(&["l"]);
        let (host, port) = match (is_listener, read.operands.as_slice()) {
            (true, operands) => match operands.last().copied().or(own) {
                Some(port) => ("", port),
                None => return complain(streams, "nc: missing port", 1),
            },
            (false, [host, port]) => (*host, *port),
            (false, _) => return complain(streams, "nc: missing hostname and port", 1),
        };
        let Ok(number) = port.parse::<u16>() else {
            return complain(streams, &format!("nc: port number invalid: {port}"), 1);
        };
        let bound = if is_listener {
            Some(number)
        } else {
            own.and_then(|own| own.parse().ok())
        };
        let Some(socket) = nic.socket(bound) else {
            return complain(streams, "nc: bind: Address in use", 1);
        };
        if is_listener {
            return converse(socket, None, streams, patience).await;
        }
        let to = match nic.target(host) {
            Ok(target) => SocketAddr::new(target, number),
            Err(DialError::Name(_)) => return unknown(streams, host, port),
            // A host outside of the cluster is there, and has nothing to say.
            Err(_) => return 0,
        };
        let (scans, tells) = (read.has(&["z"]), read.has(&["v"]));
        // A refusal is the only thing that datagrams can say of a port.
        if (scans || tells) && socket.send(to, Bytes::from_static(b"X")).await.is_err() {
            return 1;
        }
        if tells {
            let line = format!("Connection to {host} {port} port [udp/*] succeeded!\n");
            streams.err.write(line.as_bytes());
        }
        if scans {
            return 0;
        }
        converse(socket, Some(to), streams, patience).await
    }

    async fn nc_listen(&mut self, read: &Arguments<'_>, streams: &Streams) -> i32 {
        let given = read.value(&["p"]).or_else(|| read.operands.last().copied());
        let Some(number) = given.and_then(|text| text.parse::<u16>().ok()) else {
            return complain(streams, "nc: missing port", 1);
        };
        let Some(mut bound) = self.nic().listen(number) else {
            return complain(streams, "nc: bind: Address in use", 1);
        };
        let program = read.value(&["e"]).map(str::to_owned);
        let again = read.has(&["k"]);
        loop {
            let Some(connection) = bound.next().await else {
                return 1;
            };
            match &program {
                None => carry(connection.stream, (&streams.input, &streams.out), None).await,
                Some(program) => self.nc_serve(connection.stream, program, streams).await,
            }
            if !again {
                return 0;
            }
        }
    }

    /// Gives a connection to a command: what comes is its input, what it prints is sent.
    async fn nc_serve(&mut self, stream: DuplexStream, program: &str, streams: &Streams) {
        let (input, out) = (Output::pipe(), Output::pipe());
        let inner = Streams {
            out: out.clone(),
            err: streams.err.clone(),
            input: input.clone(),
            prompts: false,
        };
        let words: Vec<String> = program.split_whitespace().map(str::to_owned).collect();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let receive = async {
            let mut buffer = vec![0; BUFFER_BYTES];
            while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                input.write(buffer.get(..count).unwrap_or_default());
            }
            input.close();
        };
        let run = async {
            self.run_argv(&words, &inner).await;
            out.close();
        };
        let send = async {
            while let Some(piece) = out.next().await {
                if writer.write_all(&piece).await.is_err() {
                    return;
                }
            }
        };
        // The program's end is the connection's; the other side may still be open.
        tokio::select! {
            ((), ()) = async { tokio::join!(run, send) } => {}
            () = async { receive.await; std::future::pending().await } => {}
        }
    }
}

fn unknown(streams: &Streams, host: &str, port: &str) -> i32 {
    let text = format!("nc: getaddrinfo for host \"{host}\" port {port}: Name does not resolve");
    complain(streams, &text, 1)
}

/// Connects input and output with datagrams to a peer; without one, with those of whoever sends the first.
async fn converse(
    mut socket: Socket,
    mut peer: Option<SocketAddr>,
    streams: &Streams,
    patience: Option<Duration>,
) -> i32 {
    let mut has_input = true;
    loop {
        tokio::select! {
            biased;
            received = within(patience, socket.receive()) => match received {
                Some(Some(datagram)) if peer.is_none_or(|peer| peer == datagram.from) => {
                    peer = Some(datagram.from);
                    streams.out.write(&datagram.payload);
                }
                Some(Some(_)) => {}
                Some(None) => return 1,
                None if has_input => {}
                None => return 0,
            },
            piece = streams.input.next(), if has_input && peer.is_some() => match (piece, peer) {
                (Some(piece), Some(peer)) => {
                    if socket.send(peer, Bytes::from(piece)).await.is_err() {
                        return 1;
                    }
                }
                _ => has_input = false,
            },
        }
    }
}

/// Waits for at most so long.
async fn within<T>(patience: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, work).await.ok(),
        None => Some(work.await),
    }
}

/// Carries an input to a connection and what comes to an output, until the other side is done or has been silent for too long.
async fn carry(stream: DuplexStream, (input, out): (&Output, &Output), patience: Option<Duration>) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let send = async {
        while let Some(piece) = input.next().await {
            if writer.write_all(&piece).await.is_err() {
                break;
            }
        }
        // The other side hears that nothing more comes, and may still answer.
        let _ = writer.shutdown().await;
        std::future::pending::<()>().await;
    };
    let receive = async {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(Ok(count @ 1..)) = within(patience, reader.read(&mut buffer)).await {
            out.write(buffer.get(..count).unwrap_or_default());
        }
    };
    tokio::select! {
        biased;
        () = receive => {}
        () = send => {}
    }
}
