//! A token among the protocols that a WebSocket client offers: a browser can send no other header.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// The name of such a protocol before the token, which is in base64.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The client offers a token that cannot be taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoToken;

/// The protocols that a client offers, tokens among them.
fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// The protocols that a client offers, without tokens.
pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    offered(headers).filter(|word| !word.starts_with(PREFIX))
}

/// Takes the token out of headers that are passed on.
pub(crate) fn remove(headers: &mut HeaderMap) {
    if !offered(headers).any(|word| word.starts_with(PREFIX)) {
        return;
    }
    let left = protocols(headers).collect::<Vec<_>>().join(", ");
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(left) = HeaderValue::from_str(&left) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, left);
    }
}

/// The token; none if the client offers none.
///
/// # Errors
/// For a second token, for one that is no text in base64, and without a protocol beside it.
pub(crate) fn token(headers: &HeaderMap) -> Result<Option<String>, NoToken> {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    if !wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case("websocket")) {
        return Ok(None);
    }
    let mut tokens = offered(headers).filter_map(|word| word.strip_prefix(PREFIX));
    let Some(encoded) = tokens.next() else {
        return Ok(None);
    };
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| NoToken)?;
    let token = String::from_utf8(bytes).map_err(|_| NoToken)?;
    if tokens.next().is_some() || protocols(headers).next().is_none() {
        return Err(NoToken);
    }
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // `c2VjcmV0` is `secret`.
    #[rstest]
    #[case("websocket", &[], Ok(None), "")]
    #[case("websocket", &["v4.channel.k8s.io"], Ok(None), "v4.channel.k8s.io")]
    #[case("WebSocket", &["base64url.bearer.authorization.k8s.io.c2VjcmV0, a", "b"], Ok(Some("secret")), "a, b")]
    #[case("websocket", &["a", "base64url.bearer.authorization.k8s.io.c2VjcmV0"], Ok(Some("secret")), "a")]
    #[case("SPDY/3.1", &["base64url.bearer.authorization.k8s.io.c2VjcmV0, a"], Ok(None), "a")]
    #[case("websocket", &["base64url.bearer.authorization.k8s.io.c2VjcmV0"], Err(NoToken), "")]
    #[case("websocket", &["base64url.bearer.authorization.k8s.io.c2VjcmV0=, a"], Err(NoToken), "a")]
    #[case("websocket", &["base64url.bearer.authorization.k8s.io._w, a"], Err(NoToken), "a")]
    #[case("websocket", &["a, base64url.bearer.authorization.k8s.io.c2VjcmV0, base64url.bearer.authorization.k8s.io.c2VjcmV0"], Err(NoToken), "a")]
    fn tokens(
        #[case] upgrade: &'static str,
        #[case] given: &[&'static str],
        #[case] expected: Result<Option<&str>, NoToken>,
        #[case] left: &str,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
        for value in given {
            headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(value));
        }
        let found = token(&headers);
        assert_eq!(
            found.as_ref().map(Option::as_deref),
            expected.as_ref().map(|found| *found)
        );
        remove(&mut headers);
        assert_eq!(protocols(&headers).collect::<Vec<_>>().join(", "), left);
    }
}
