//! UDP: the server of `netexec` and `serve-hostname`, and the client of `netexec` and `connect`.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use network::Datagram;

use super::super::native::DatagramSocket;
use crate::nic::{DialError, Nic};

/// Why a question has no answer, with the texts of Go's errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unanswered {
    Late(String),
    Refused(String),
    Other(String),
}

impl Unanswered {
    pub(super) fn text(&self) -> &str {
        let (Self::Late(text) | Self::Refused(text) | Self::Other(text)) = self;
        text
    }
}

/// Sends a datagram from a port of its own, and gives what comes back.
pub(super) async fn ask(
    nic: &Nic,
    to: SocketAddr,
    payload: Bytes,
    patience: Option<Duration>,
) -> Result<Bytes, Unanswered> {
    let Some(mut socket) = nic.socket(None) else {
        return Err(Unanswered::Other(format!(
            "dial udp {to}: address already in use"
        )));
    };
    let from = socket.address().map_or_else(String::new, |own| own.to_string());
    let read = |why: &str| format!("read udp {from}->{to}: {why}");
    let refused = |error| Unanswered::Refused(read(&format!("read: {error}")));
    socket.send(to, payload).await.map_err(refused)?;
    // A socket that is connected receives from its peer alone.
    let answer = async {
        loop {
            match socket.receive().await {
                Some(datagram) if datagram.from == to => return Some(datagram.payload),
                Some(_) => {}
                None => return None,
            }
        }
    };
    let answer = match patience {
        None => answer.await,
        Some(patience) => match tokio::time::timeout(patience, answer).await {
            Ok(answer) => answer,
            Err(_) => return Err(Unanswered::Late(read("i/o timeout"))),
        },
    };
    answer.ok_or_else(|| Unanswered::Other(read("use of closed network connection")))
}

/// Asks a host; if there is no answer, says why as `connect` does.
pub(super) async fn connect(
    nic: &Nic,
    (host, port): (&str, u16),
    data: &str,
    patience: Option<Duration>,
) -> Result<(), String> {
    let target = match nic.target(host) {
        Ok(target) => SocketAddr::new(target, port),
        Err(DialError::Name(error)) => return Err(format!("DNS: {error}")),
        // A host outside of the cluster is there, and has nothing to say.
        Err(_) => return Ok(()),
    };
    match ask(nic, target, Bytes::from(format!("{data}\n")), patience).await {
        Ok(answer) if answer.is_empty() => {
            let why = "No data received from the server. Cannot guarantee the server received the request.";
            Err(format!("OTHER: {why}"))
        }
        Ok(_) => Ok(()),
        Err(Unanswered::Late(text)) => Err(format!("TIMEOUT: {text}")),
        Err(Unanswered::Refused(text)) => Err(format!("REFUSED: {text}")),
        Err(Unanswered::Other(text)) => Err(format!("UNKNOWN: {text}")),
    }
}

/// Sends a text to whoever sends a datagram.
pub(super) async fn tell(socket: Option<DatagramSocket>, text: Bytes) {
    if let Some(mut socket) = socket {
        socket.answer(|_| Some(text.clone())).await;
    }
}

/// The answer of `netexec` to a datagram, and the line of its log about it.
pub(super) fn reply(hostname: &str, datagram: &Datagram) -> (Option<Bytes>, Option<String>) {
    let received = String::from_utf8_lossy(&datagram.payload).trim().to_lowercase();
    if received == "hostname" {
        let note = "Sending udp hostName response".to_owned();
        return (Some(Bytes::from(hostname.to_owned())), Some(note));
    }
    if let Some(text) = received.strip_prefix("echo ") {
        return (
            Some(Bytes::from(text.to_owned())),
            Some(format!("Echoing {text}\n")),
        );
    }
    match received.as_str() {
        "clientip" => {
            let note = "Sending clientip back to UDP client".to_owned();
            (Some(Bytes::from(datagram.from.to_string())), Some(note))
        }
        "" => (None, None),
        _ => (None, Some(format!("Unknown udp command received: {received}\n"))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("hostName\n", Some("web-0"))]
    #[case("echo Twice", Some("twice"))]
    #[case("echo", None)]
    #[case("clientip", Some("10.244.1.2:4000"))]
    #[case("\n", None)]
    #[case("what", None)]
    fn replies(#[case] payload: &'static str, #[case] expected: Option<&'static str>) {
        let datagram = Datagram {
            from: "10.244.1.2:4000".parse().expect("an address"),
            to: "10.244.1.3:8081".parse().expect("an address"),
            payload: Bytes::from(payload),
        };
        assert_eq!(reply("web-0", &datagram).0, expected.map(Bytes::from));
    }
}
