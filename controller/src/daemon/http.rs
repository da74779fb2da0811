//! Requests by HTTP to pods, as hooks and probes make them.

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPHeader;

use super::runtime::PodNetwork;
use super::tls;

/// How much of an answer is read.
const BODY_BYTES_MAX: usize = 10 * 1024;
/// How many redirections are followed.
const REDIRECTIONS_MAX: usize = 10;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Get<'a> {
    /// The address of the pod.
    pub(super) host: &'a str,
    /// The port.
    pub(super) port: u16,
    /// `HTTP` or `HTTPS`; empty for the former.
    pub(super) scheme: &'a str,
    /// The path, with its query.
    pub(super) path: &'a str,
    /// Headers.
    pub(super) headers: &'a [HTTPHeader],
    /// The client's name, unless a header gives another.
    pub(super) user_agent: &'a str,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status.
    pub(super) status: u16,
    /// The body, as far as it is read.
    pub(super) body: String,
    /// Where it leads.
    location: Option<String>,
}

impl Get<'_> {
    /// The address of a path.
    fn url(&self, path: &str) -> String {
        let scheme = if self.scheme.is_empty() {
            "HTTP"
        } else {
            self.scheme
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!(
            "{}://{}:{}{slash}{path}",
            scheme.to_lowercase(),
            self.host,
            self.port
        )
    }

    /// The answer. Redirections to another host are not followed, as by the kubelet.
    ///
    /// # Errors
    /// Go's text.
    pub(super) async fn send(&self, network: &dyn PodNetwork) -> Result<Answer, String> {
        let mut path = self.path.to_owned();
        for _ in 0..REDIRECTIONS_MAX {
            let answer = self.once(network, &path).await;
            let answer = answer.map_err(|why| format!("Get {:?}: {why}", self.url(&path)))?;
            let next = answer
                .location
                .as_deref()
                .filter(|_| (300..400).contains(&answer.status));
            match next.and_then(|next| self.own_path(next)) {
                Some(next) => path = next,
                None => return Ok(answer),
            }
        }
        Err(format!(
            "Get {:?}: stopped after {REDIRECTIONS_MAX} redirects",
            self.url(&path)
        ))
    }

    /// The text of a request that takes too long.
    pub(super) fn timed_out(&self) -> String {
        let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        format!("Get {:?}: {why}", self.url(self.path))
    }

    /// The path of a redirection to the same host.
    fn own_path(&self, location: &str) -> Option<String> {
        let own = self.url("/");
        match location.strip_prefix(own.trim_end_matches('/')) {
            Some(path) => Some(path.to_owned()),
            None => location.starts_with('/').then(|| location.to_owned()),
        }
    }

    async fn once(&self, network: &dyn PodNetwork, path: &str) -> Result<Answer, String> {
        let mut stream = network.connect(self.host, self.port).await?;
        if self.scheme.eq_ignore_ascii_case("https") {
            stream = tls::connect(stream, self.host).await?;
        }
        let broken = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let exchange = async {
            let answer = sender.send_request(self.request(path)?).await.map_err(broken)?;
            let (parts, mut body) = answer.into_parts();
            let mut bytes = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(broken)?;
                bytes.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default());
                if bytes.len() >= BODY_BYTES_MAX {
                    bytes.truncate(BODY_BYTES_MAX);
                    break;
                }
            }
            let location = parts
                .headers
                .get("location")
                .and_then(|value| value.to_str().ok());
            Ok(Answer {
                status: parts.status.as_u16(),
                body: String::from_utf8_lossy(&bytes).into_owned(),
                location: location.map(str::to_owned),
            })
        };
        let mut exchange = std::pin::pin!(exchange);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            // The other side may close once it has answered.
            ended = &mut connection => match ended {
                Ok(()) => exchange.await,
                Err(error) => Err(error.to_string()),
            },
        }
    }

    fn request(&self, path: &str) -> Result<hyper::Request<Empty<Bytes>>, String> {
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut request = hyper::Request::get(format!("{slash}{path}"));
        let has = |name: &str| {
            self.headers
                .iter()
                .any(|header| header.name.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            request = request.header("host", format!("{}:{}", self.host, self.port));
        }
        if !has("user-agent") {
            request = request.header("user-agent", self.user_agent);
        }
        if !has("accept") {
            request = request.header("accept", "*/*");
        }
        for header in self.headers {
            request = request.header(&header.name, &header.value);
        }
        request.body(Empty::new()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::daemon::test_node::TestNode;

    /// The scheme, the port, the path, and the status with the body, or the error.
    #[rstest]
    #[case::page("", 80, "/", Ok((200, "welcome")))]
    #[case::no_slash("HTTP", 80, "", Ok((200, "welcome")))]
    #[case::missing("HTTP", 80, "/nope", Ok((404, "no such page")))]
    #[case::redirected("HTTP", 80, "/moved", Ok((200, "welcome")))]
    #[case::redirected_by_address("HTTP", 80, "/moved-far", Ok((200, "welcome")))]
    #[case::redirected_elsewhere("HTTP", 80, "/away", Ok((302, "away")))]
    #[case::in_a_circle(
        "HTTP",
        80,
        "/loop",
        Err("Get \"http://10.0.0.1:80/loop\": stopped after 10 redirects")
    )]
    #[case::headers("HTTP", 80, "/agent", Ok((200, "probe 1")))]
    #[case::refused(
        "HTTP",
        81,
        "/a",
        Err("Get \"http://10.0.0.1:81/a\": dial tcp 10.0.0.1:81: connect: connection refused")
    )]
    #[case::not_a_path(
        "HTTP",
        80,
        "/a b",
        Err("Get \"http://10.0.0.1:80/a b\": invalid uri character")
    )]
    #[case::https("HTTPS", 443, "/", Ok((200, "welcome")))]
    #[case::https_of_a_plain_server(
        "HTTPS",
        80,
        "/",
        Err("Get \"https://10.0.0.1:80/\": http: server gave HTTP response to HTTPS client")
    )]
    #[tokio::test(start_paused = true)]
    async fn answers(
        #[case] scheme: &str,
        #[case] port: u16,
        #[case] path: &str,
        #[case] expect: Result<(u16, &str), &str>,
    ) {
        let headers = [HTTPHeader {
            name: "X-A".to_owned(),
            value: "1".to_owned(),
        }];
        let request = Get {
            host: "10.0.0.1",
            port,
            scheme,
            path,
            headers: &headers,
            user_agent: "probe",
        };
        let answer = request.send(&TestNode).await;
        let shown = answer.as_ref().map(|answer| (answer.status, &*answer.body));
        assert_eq!(shown.map_err(|error| &**error), expect);
    }
}
