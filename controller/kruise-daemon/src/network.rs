//! The network of the node, in which the daemon connects to pods.

use std::io;

use controller::daemon::{Connection, PodNetwork};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpStream;

/// Connects from the network of this process, which is the node's for a pod with `hostNetwork`.
pub(crate) struct NodeNetwork;

impl PodNetwork for NodeNetwork {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            let connected = TcpStream::connect((host, port)).await;
            let stream = connected.map_err(|error| dial_error(host, port, &error))?;
            let stream: Box<dyn Connection> = Box::new(stream);
            Ok(stream)
        }
        .boxed()
    }
}

/// The text of a connection that failed, as Go's.
fn dial_error(host: &str, port: u16, error: &io::Error) -> String {
    let address = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        // A name that is not resolved has no error of the system.
        _ if error.raw_os_error().is_none() => return format!("dial tcp: lookup {host}: no such host"),
        _ => format!("connect: {error}"),
    };
    format!("dial tcp {address}: {why}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "10.0.0.1",
        io::ErrorKind::ConnectionRefused,
        "dial tcp 10.0.0.1:80: connect: connection refused"
    )]
    #[case(
        "fd00::1",
        io::ErrorKind::HostUnreachable,
        "dial tcp [fd00::1]:80: connect: no route to host"
    )]
    #[case(
        "10.0.0.1",
        io::ErrorKind::TimedOut,
        "dial tcp 10.0.0.1:80: connect: connection timed out"
    )]
    #[case("no.such", io::ErrorKind::Other, "dial tcp: lookup no.such: no such host")]
    fn texts(#[case] host: &str, #[case] kind: io::ErrorKind, #[case] text: &str) {
        assert_eq!(dial_error(host, 80, &io::Error::from(kind)), text);
    }

    #[tokio::test]
    async fn a_port_is_reached_while_somebody_listens() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(NodeNetwork.connect("127.0.0.1", port).await.is_ok());
        drop(listener);
        let error = NodeNetwork.connect("127.0.0.1", port).await.err().unwrap();
        assert_eq!(
            error,
            format!("dial tcp 127.0.0.1:{port}: connect: connection refused")
        );
    }
}
