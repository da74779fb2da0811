//! One request and its answer, over a connection of its own.

use ::http::header::{CONNECTION, HOST, USER_AGENT};
use ::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use network::tls::{Wire, encrypt_trusting, encrypt_unverified};
use thiserror::Error;

use crate::nic::{DialError, Nic};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A place to ask at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Url {
    pub secure: bool,
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub target: String,
}

impl Url {
    /// Reads a URL, which may lack its scheme. None if it is not one of HTTP.
    pub(in super::super) fn read(text: &str) -> Option<Self> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let whole = whole.split('#').next().unwrap_or_default().replace(' ', "%20");
        let uri: Uri = whole.parse().ok()?;
        let secure = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        (!host.is_empty()).then(|| Self {
            secure,
            host,
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            target: if target.is_empty() {
                "/".to_owned()
            } else {
                target.to_owned()
            },
        })
    }

    /// The place that an answer sends its client to.
    pub(in super::super) fn join(&self, location: &str) -> Option<Self> {
        if location.contains("://") {
            return Self::read(location);
        }
        let target = if location.starts_with('/') {
            location.to_owned()
        } else {
            format!("/{location}")
        };
        Some(Self {
            target,
            ..self.clone()
        })
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            80 => host,
            port => format!("{host}:{port}"),
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum AskError {
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection brought no answer.
    #[error("{0}")]
    Broken(String),
    /// The other side does not encrypt.
    #[error("{0}")]
    Secure(String),
    /// A certificate is of no authority that is known, or for another host.
    #[error("SSL certificate problem: unable to get local issuer certificate")]
    Unknown,
    /// The file of authorities cannot be read.
    #[error("error setting certificate file: {0}")]
    Authorities(String),
}

/// Sends a request over a connection and reads the answer to its end.
pub(crate) async fn exchange(
    stream: Box<dyn Wire>,
    request: Request<Full<Bytes>>,
) -> Result<HttpReply, AskError> {
    let broken = |error: hyper::Error| {
        let text = if error.is_incomplete_message() {
            "EOF".to_owned()
        } else {
            error.to_string()
        };
        AskError::Broken(text)
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut asked = std::pin::pin!(async move {
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body
            .map_err(|error| AskError::Broken(error.to_string()))?
            .to_bytes();
        Ok(HttpReply {
            status: head.status,
            headers: head.headers,
            body,
        })
    });
    tokio::select! {
        biased;
        answer = &mut asked => return answer,
        // The answer may be there although the connection has ended.
        _ = connection => {}
    }
    asked.await
}

/// Connects to a place, encrypted if its URL says so. Without authorities to trust (certificates in PEM), every certificate will do.
pub(in super::super) async fn open(
    nic: &Nic,
    url: &Url,
    authorities: Option<&[u8]>,
) -> Result<Box<dyn Wire>, AskError> {
    let stream: Box<dyn Wire> = Box::new(nic.connect(&url.host, url.port).await?);
    if !url.secure {
        return Ok(stream);
    }
    let encrypted = match authorities {
        None => encrypt_unverified(stream, &url.host).await,
        Some(authorities) => encrypt_trusting(stream, &url.host, authorities).await,
    };
    encrypted.map_err(|error| match error.to_string() {
        text if text.contains("invalid peer certificate") => AskError::Unknown,
        _ => AskError::Secure("SSL routines::wrong version number".to_owned()),
    })
}

/// Asks a program of the cluster.
pub(in super::super) async fn ask(
    nic: &Nic,
    url: &Url,
    asked: (Method, HeaderMap, Bytes),
    agent: &str,
) -> Result<HttpReply, AskError> {
    send(open(nic, url, None).await?, url, asked, agent).await
}

/// Sends a request over a connection to a place.
pub(in super::super) async fn send(
    stream: Box<dyn Wire>,
    url: &Url,
    (method, headers, body): (Method, HeaderMap, Bytes),
    agent: &str,
) -> Result<HttpReply, AskError> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    let bad = |what: &str| AskError::Broken(format!("malformed {what}"));
    *request.uri_mut() = url.target.parse().map_err(|_| bad("path"))?;
    let own = request.headers_mut();
    own.insert(
        HOST,
        HeaderValue::from_str(&url.authority()).map_err(|_| bad("host"))?,
    );
    own.insert(
        USER_AGENT,
        HeaderValue::from_str(agent).map_err(|_| bad("agent"))?,
    );
    own.insert(CONNECTION, HeaderValue::from_static("close"));
    own.extend(headers);
    exchange(stream, request).await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("web", Some((false, "web", 80, "/")))]
    #[case("http://web:8080/a?b=c#d", Some((false, "web", 8080, "/a?b=c")))]
    #[case("10.0.0.1:1/x y", Some((false, "10.0.0.1", 1, "/x%20y")))]
    #[case("https://web", Some((true, "web", 443, "/")))]
    #[case("http://[::1]:1/", Some((false, "::1", 1, "/")))]
    #[case("ftp://web", None)]
    #[case("", None)]
    #[case("http://", None)]
    fn urls(#[case] text: &str, #[case] expected: Option<(bool, &str, u16, &str)>) {
        let read = Url::read(text);
        let got = read
            .as_ref()
            .map(|url| (url.secure, url.host.as_str(), url.port, url.target.as_str()));
        assert_eq!(got, expected);
    }
}
