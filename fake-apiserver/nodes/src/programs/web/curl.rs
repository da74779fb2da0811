//! `curl`.

use std::time::Duration;

use ::http::{HeaderValue, Method};
use bytes::Bytes;
use network::ConnectError;
use network::tls::Wire;
use tokio::time::{Instant, timeout_at};

use super::super::files::resolve;
use super::super::shell::{Shell, Streams};
use super::wget::headers_of;
use super::{Arguments, AskError, HttpReply, Url, complain, open, send};
use crate::nic::DialError;

/// How many redirections are followed.
const REDIRECTIONS_MAX: u32 = 50;
/// How long curl tries to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(300);

/// Options with a value.
const WORDS: [&str; 14] = [
    "cacert",
    "oauth2-bearer",
    "output",
    "write-out",
    "request",
    "data",
    "data-raw",
    "header",
    "max-time",
    "connect-timeout",
    "retry",
    "retry-delay",
    "user-agent",
    "interface",
];

/// A failure: the exit code and the text.
type Failed = (i32, String);

impl Shell {
    pub(super) async fn curl(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let read = Arguments::read(arguments, "oXdHmwAubeT", &WORDS);
        if read.operands.is_empty() {
            return complain(streams, "curl: (2) no URL specified", 2);
        }
        let mut code = 0;
        for text in read.operands.clone() {
            let tries = read
                .value(&["retry"])
                .and_then(|text| text.parse().ok())
                .unwrap_or(0_u32);
            let pause = read.seconds(&["retry-delay"]).unwrap_or(Duration::from_secs(1));
            let mut done = self.curl_one(&read, text, streams).await;
            for _ in 0..tries.min(1000) {
                // Only what may pass is tried again.
                if !matches!(done, Err((7 | 28 | 52, _))) {
                    break;
                }
                tokio::time::sleep(pause).await;
                done = self.curl_one(&read, text, streams).await;
            }
            if let Err((failed, text)) = done {
                code = failed;
                let is_silent = read.has(&["s", "silent"]) && !read.has(&["S", "show-error"]);
                if !is_silent {
                    streams.err.write(format!("curl: ({failed}) {text}\n").as_bytes());
                }
                if let Some(format) = read.value(&["w", "write-out"]) {
                    streams.out.write(written(format, 0).as_bytes());
                }
            }
        }
        code
    }

    async fn curl_one(&mut self, read: &Arguments<'_>, text: &str, streams: &Streams) -> Result<(), Failed> {
        let Some(mut url) = Url::read(text) else {
            return Err((3, "URL rejected: Malformed input to a URL function".to_owned()));
        };
        let started = Instant::now();
        let whole = read.seconds(&["m", "max-time"]).map(|limit| started + limit);
        for _ in 0..REDIRECTIONS_MAX {
            let asked = self.curl_ask(read, &url);
            let outcome = match whole {
                Some(end) => timeout_at(end, asked).await,
                None => Ok(asked.await),
            };
            let timed_out = |what: &str| {
                let took = started.elapsed().as_millis();
                (28, format!("{what} timed out after {took} milliseconds"))
            };
            let outcome = match outcome {
                Err(_) => return Err(timed_out("Operation")),
                Ok(None) => return Err(timed_out("Connection")),
                Ok(Some(outcome)) => outcome,
            };
            let reply = match outcome {
                Err(AskError::Dial(DialError::Outside(_))) => return Ok(()),
                Err(error) => return Err(failure(&url, &error)),
                Ok(reply) => reply,
            };
            let location = reply
                .headers
                .get("location")
                .and_then(|place| place.to_str().ok());
            let follows = read.has(&["L", "location"]) && reply.status.is_redirection();
            match location
                .filter(|_| follows)
                .and_then(|location| url.join(location))
            {
                Some(next) => url = next,
                None => return self.curl_answered(read, &reply, streams),
            }
        }
        Err((47, format!("Maximum ({REDIRECTIONS_MAX}) redirects followed")))
    }

    /// None if the connection was not made in time.
    async fn curl_ask(&self, read: &Arguments<'_>, url: &Url) -> Option<Result<HttpReply, AskError>> {
        let patience = read.seconds(&["connect-timeout"]).unwrap_or(CONNECT_PATIENCE);
        let opening = self.curl_open(url, read);
        match tokio::time::timeout(patience, opening).await.ok()? {
            Ok(stream) => Some(self.curl_send(read, url, stream).await),
            Err(error) => Some(Err(error)),
        }
    }

    async fn curl_open(&self, url: &Url, read: &Arguments<'_>) -> Result<Box<dyn Wire>, AskError> {
        let insecure = read.has(&["k", "insecure"]);
        if !url.secure || insecure {
            return open(&self.nic(), url, None).await;
        }
        // The world's certificates are good.
        self.nic().target(&url.host)?;
        let path = read.value(&["cacert"]).ok_or(AskError::Unknown)?;
        let authorities = self.files.read(&resolve(&self.cwd, path));
        let authorities = authorities.map_err(|_| AskError::Authorities(path.to_owned()))?;
        open(&self.nic(), url, Some(&authorities)).await
    }

    async fn curl_send(
        &self,
        read: &Arguments<'_>,
        url: &Url,
        stream: Box<dyn Wire>,
    ) -> Result<HttpReply, AskError> {
        let data = read.value(&["d", "data", "data-raw", "data-binary"]);
        let method = match (read.value(&["X", "request"]), data, read.has(&["I", "head"])) {
            (Some(method), ..) => Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET),
            (None, _, true) => Method::HEAD,
            (None, Some(_), false) => Method::POST,
            (None, None, false) => Method::GET,
        };
        let mut headers = headers_of(&read.values(&["H", "header"]));
        if let Some(token) = read.value(&["oauth2-bearer"])
            && let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}"))
        {
            headers.insert("authorization", value);
        }
        headers.entry("accept").or_insert(HeaderValue::from_static("*/*"));
        if data.is_some() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.entry("content-type").or_insert(form);
        }
        let body = Bytes::copy_from_slice(data.unwrap_or_default().as_bytes());
        let agent = read.value(&["A", "user-agent"]).unwrap_or("curl/8.9.1");
        send(stream, url, (method, headers, body), agent).await
    }

    fn curl_answered(
        &mut self,
        read: &Arguments<'_>,
        reply: &HttpReply,
        streams: &Streams,
    ) -> Result<(), Failed> {
        let code = reply.status.as_u16();
        if read.has(&["f", "fail"]) && code >= 400 {
            return Err((22, format!("The requested URL returned error: {code}")));
        }
        let mut out = Vec::new();
        if read.has(&["i", "include", "I", "head"]) {
            let reason = reply.status.canonical_reason().unwrap_or_default();
            out.extend(format!("HTTP/1.1 {code} {reason}\r\n").into_bytes());
            for (name, value) in &reply.headers {
                out.extend(format!("{name}: ").into_bytes());
                out.extend(value.as_bytes());
                out.extend(b"\r\n");
            }
            out.extend(b"\r\n");
        }
        out.extend_from_slice(&reply.body);
        match read.value(&["o", "output"]) {
            None | Some("-") => streams.out.write(&out),
            Some(file) => {
                let path = resolve(&self.cwd, file);
                self.files.write(&path, &out, false).map_err(|error| {
                    (
                        23,
                        format!("Failure writing output to destination: {file}: {error}"),
                    )
                })?;
            }
        }
        if let Some(format) = read.value(&["w", "write-out"]) {
            streams.out.write(written(format, code).as_bytes());
        }
        Ok(())
    }
}

/// The text of `--write-out`.
fn written(format: &str, code: u16) -> String {
    let code = format!("{code:03}");
    let known = ["%{http_code}", "%{response_code}"];
    let filled = known
        .iter()
        .fold(format.to_owned(), |text, name| text.replace(name, &code));
    filled.replace("\\n", "\n").replace("\\t", "\t")
}

fn failure(url: &Url, error: &AskError) -> Failed {
    let place = format!("{} port {}", url.host, url.port);
    match error {
        AskError::Dial(DialError::Name(_)) => (6, format!("Could not resolve host: {}", url.host)),
        AskError::Dial(DialError::Connect(ConnectError::TimedOut(_))) => {
            (28, format!("Failed to connect to {place}: Connection timed out"))
        }
        AskError::Dial(DialError::Connect(_)) => (
            7,
            format!("Failed to connect to {place} after 0 ms: Couldn't connect to server"),
        ),
        AskError::Dial(DialError::Outside(_)) => (0, String::new()),
        AskError::Broken(why) if why == "EOF" => (52, "Empty reply from server".to_owned()),
        AskError::Broken(_) => (1, "Received HTTP/0.9 when not allowed".to_owned()),
        AskError::Secure(_) => (35, error.to_string()),
        AskError::Unknown => (60, error.to_string()),
        AskError::Authorities(_) => (77, error.to_string()),
    }
}
