//! Requests that change the protocol of their connection, and that another server answers: once it agrees, bytes pass
//! both ways until one side ends.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::message::body::ResponseBody;
use crate::websocket_token;

/// Whether a request asks for another protocol: `Connection` has to name `Upgrade`, too.
pub(crate) fn asks(headers: &HeaderMap) -> bool {
    let named = headers.get_all(CONNECTION).iter();
    headers.contains_key(UPGRADE)
        && named
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// Writes the headers that ask for the client's protocol, and takes a token out that was for this server.
pub(crate) fn ask(client: &HeaderMap, headers: &mut HeaderMap) {
    if let Some(protocol) = client.get(UPGRADE) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol.clone());
        websocket_token::remove(headers);
    }
}

/// The answer for the client if the other server has agreed, and then the two connections are joined; none if it has not.
///
/// A client whose connection cannot change is answered with 400.
pub(crate) fn joined<B>(
    client: Option<OnUpgrade>,
    answer: &mut Response<B>,
) -> Option<Response<ResponseBody>> {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return None;
    }
    let mut response = Response::new(ResponseBody::whole(bytes::Bytes::new()));
    let Some(client) = client else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Some(response);
    };
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = answer.headers().clone();
    let server = hyper::upgrade::on(answer);
    tokio::spawn(async move {
        // A side that has gone meanwhile leaves nothing to join.
        if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
            pass(client, server).await;
        }
    });
    Some(response)
}

async fn pass(client: Upgraded, server: Upgraded) {
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    if let Err(error) = copy_bidirectional(&mut client, &mut server).await {
        tracing::debug!(%error, "a passed-on connection has ended");
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], false)]
    #[case(&[("upgrade", "websocket")], false)]
    #[case(&[("connection", "upgrade")], false)]
    #[case(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")], true)]
    #[case(&[("connection", "keep-alive"), ("connection", "UPGRADE"), ("upgrade", "h2c")], true)]
    fn requests(#[case] pairs: &[(&'static str, &'static str)], #[case] expected: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(asks(&headers), expected);
    }
}
