//! A connection changes its protocol: to WebSockets or to SPDY, and to one of the protocols spoken over these.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use machinery::status::ApiError;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::message::body::ResponseBody;
use crate::passed_upgrade;
use crate::websocket_token;

/// The header by which SPDY clients and servers negotiate the protocol of the streams.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const SPDY: &str = "SPDY/3.1";
/// Before the name of a protocol whose SPDY connection is carried by a WebSocket.
pub(super) const TUNNEL: &str = "SPDY/3.1+";
/// The largest message that a client may send.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The protocols that a subresource speaks, over WebSockets and over SPDY.
pub(super) struct Spoken {
    websocket: &'static [&'static str],
    spdy: &'static [&'static str],
}

/// Of `exec` and `attach`. Only the fifth version can say that an input is over.
pub(super) const REMOTE_COMMAND: Spoken = Spoken {
    websocket: &["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"],
    spdy: &[
        "v4.channel.k8s.io",
        "v3.channel.k8s.io",
        "v2.channel.k8s.io",
        "channel.k8s.io",
    ],
};

/// Of `portforward`.
pub(super) const PORT_FORWARD: Spoken = Spoken {
    websocket: &[
        "SPDY/3.1+portforward.k8s.io",
        "v4.channel.k8s.io",
        "channel.k8s.io",
    ],
    spdy: &["portforward.k8s.io"],
};

/// Of logs. A client that names no protocol gets bytes.
pub(super) const LOG: Spoken = Spoken {
    websocket: &[TEXT, "binary.k8s.io", ""],
    spdy: &[],
};
/// The protocol of streams whose messages are texts in base64.
pub(super) const TEXT: &str = "base64.binary.k8s.io";

/// The upgrade that a client asks for, and its protocols.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    WebSocket { key: String, offered: Vec<String> },
    Spdy { offered: Vec<String> },
}

/// A connection whose protocol is about to change; none if the client goes before.
type Changing<T> = BoxFuture<'static, Option<T>>;

/// The connection after the upgrade, and its protocol.
pub(super) enum Wire {
    WebSocket(Changing<WebSocketStream<TokioIo<Upgraded>>>, String),
    Spdy(Changing<TokioIo<Upgraded>>, String),
}

fn words(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

impl Protocol {
    /// The upgrade that the headers ask for.
    ///
    /// # Errors
    /// 400 if they ask for none that is known.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let asks = passed_upgrade::asks(headers);
        let wanted = words(headers, &UPGRADE);
        let is = |name: &str| wanted.iter().any(|word| word.eq_ignore_ascii_case(name));
        if asks && is("websocket") {
            let key = headers
                .get(SEC_WEBSOCKET_KEY)
                .and_then(|key| key.to_str().ok())
                .unwrap_or_default();
            return Ok(Self::WebSocket {
                key: key.to_owned(),
                offered: websocket_token::protocols(headers).map(str::to_owned).collect(),
            });
        }
        if asks && is(SPDY) {
            return Ok(Self::Spdy {
                offered: words(headers, &STREAM_PROTOCOL),
            });
        }
        Err(ApiError::bad_request("Upgrade request required"))
    }

    /// Changes the protocol to the first that the client offers and the server speaks.
    ///
    /// # Errors
    /// 403 if they have none in common, 400 if the connection cannot change (that of HTTP/2 cannot).
    pub(super) fn accept(
        &self,
        upgrade: Option<OnUpgrade>,
        spoken: &Spoken,
    ) -> Result<(Response<ResponseBody>, Wire), ApiError> {
        let (offered, known, over) = match self {
            Self::WebSocket { offered, .. } => (offered, spoken.websocket, "websocket"),
            Self::Spdy { offered } => (offered, spoken.spdy, SPDY),
        };
        let chosen = match offered.as_slice() {
            // Old clients do not say what they speak: the first version.
            [] => known.last().map(|name| (*name).to_owned()),
            offered => offered
                .iter()
                .find(|name| known.contains(&name.as_str()))
                .cloned(),
        };
        let Some(chosen) = chosen else {
            let message = format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                offered.join(" "),
                known.join(" ")
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", message));
        };
        let upgrade = upgrade.ok_or_else(|| ApiError::bad_request("Upgrade request required"))?;
        let mut response = Response::new(ResponseBody::whole(bytes::Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(over));
        let protocol = HeaderValue::from_str(&chosen);
        let wire = match self {
            Self::WebSocket { key, .. } => {
                if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
                    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
                }
                if let (false, Ok(protocol)) = (offered.is_empty(), protocol) {
                    headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
                }
                let socket = async move {
                    let io = TokioIo::new(upgrade.await.ok()?);
                    let limits = WebSocketConfig::default()
                        .max_message_size(Some(MESSAGE_BYTES_MAX))
                        .max_frame_size(Some(MESSAGE_BYTES_MAX));
                    Some(WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await)
                };
                Wire::WebSocket(socket.boxed(), chosen)
            }
            Self::Spdy { .. } => {
                if let Ok(protocol) = protocol {
                    headers.insert(STREAM_PROTOCOL, protocol);
                }
                let connection = async move { upgrade.await.ok().map(TokioIo::new) };
                Wire::Spdy(connection.boxed(), chosen)
            }
        };
        Ok((response, wire))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], None)]
    #[case(&[("upgrade", "websocket")], None)]
    #[case(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), ("sec-websocket-protocol", "a, b")], Some("websocket a b"))]
    #[case(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "a"), ("x-stream-protocol-version", "b")], Some("spdy a b"))]
    #[case(&[("connection", "Upgrade"), ("upgrade", "h2c")], None)]
    fn what_is_asked_for(#[case] pairs: &[(&'static str, &'static str)], #[case] expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let found = Protocol::of(&headers).ok().map(|protocol| match protocol {
            Protocol::WebSocket { offered, .. } => format!("websocket {}", offered.join(" ")),
            Protocol::Spdy { offered } => format!("spdy {}", offered.join(" ")),
        });
        assert_eq!(found.as_deref(), expected);
    }
}
