//! `wget`, as busybox has it.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use bytes::Bytes;
use network::ConnectError;

use super::super::files::resolve;
use super::super::shell::{Shell, Streams};
use super::{Arguments, AskError, HttpReply, Url, ask, complain};
use crate::nic::DialError;

/// How long an answer may take without `-T`.
const PATIENCE_SECONDS: u64 = 900;
/// How many redirections are followed.
const REDIRECTIONS_MAX: u32 = 20;

/// The headers of lines `Name: value`.
pub(super) fn headers_of(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.trim())) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Linux' text of an error.
pub(super) fn reason(error: &ConnectError) -> &'static str {
    match error {
        ConnectError::Refused(_) => "Connection refused",
        ConnectError::NoRoute(_) => "No route to host",
        ConnectError::TimedOut(_) => "Operation timed out",
    }
}

impl Shell {
    pub(super) async fn wget(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let read = Arguments::read(
            arguments,
            "OTtUPYo",
            &[
                "output-document",
                "timeout",
                "tries",
                "header",
                "post-data",
                "user-agent",
            ],
        );
        let Some(text) = read.operands.first() else {
            return complain(streams, "wget: missing URL", 1);
        };
        let Some(mut url) = Url::read(text) else {
            return complain(streams, &format!("wget: not an http or ftp url: {text}"), 1);
        };
        let quiet = read.has(&["q", "quiet"]);
        let agent = read.value(&["U", "user-agent"]).unwrap_or("Wget");
        let data = read.value(&["post-data"]);
        let method = match (data, read.has(&["spider"])) {
            (Some(_), _) => Method::POST,
            (None, true) => Method::HEAD,
            (None, false) => Method::GET,
        };
        let body = Bytes::copy_from_slice(data.unwrap_or_default().as_bytes());
        let headers = headers_of(&read.values(&["header"]));
        let patience = read
            .seconds(&["T", "timeout"])
            .unwrap_or(std::time::Duration::from_secs(PATIENCE_SECONDS));
        let nic = self.nic();
        for _ in 0..REDIRECTIONS_MAX {
            if !quiet && let Ok(address) = nic.target(&url.host) {
                let line = format!("Connecting to {} ({address}:{})\n", url.host, url.port);
                streams.err.write(line.as_bytes());
            }
            let asked = ask(&nic, &url, (method.clone(), headers.clone(), body.clone()), agent);
            let reply = match tokio::time::timeout(patience, asked).await {
                Err(_) => return complain(streams, "wget: download timed out", 1),
                Ok(Err(error)) => return failed(&url, &error, streams),
                Ok(Ok(reply)) => reply,
            };
            let location = reply
                .headers
                .get("location")
                .and_then(|place| place.to_str().ok());
            match location.filter(|_| reply.status.is_redirection()) {
                Some(location) => match url.join(location) {
                    Some(next) => url = next,
                    None => return complain(streams, "wget: bad redirection", 1),
                },
                None => return self.wget_answered(&read, &url, &reply, streams),
            }
        }
        complain(streams, "wget: too many redirections", 1)
    }

    fn wget_answered(
        &mut self,
        read: &Arguments<'_>,
        url: &Url,
        reply: &HttpReply,
        streams: &Streams,
    ) -> i32 {
        let status = reply.status;
        let head = format!(
            "HTTP/1.1 {} {}",
            status.as_u16(),
            status.canonical_reason().unwrap_or_default()
        );
        if read.has(&["S", "server-response"]) {
            streams.err.write(format!("  {head}\n").as_bytes());
        }
        if !status.is_success() {
            return complain(streams, &format!("wget: server returned error: {head}"), 1);
        }
        if read.has(&["spider"]) {
            return 0;
        }
        let path = url.target.split('?').next().unwrap_or_default();
        let own = path.rsplit('/').next().filter(|name| !name.is_empty());
        let file = read
            .value(&["O", "output-document"])
            .unwrap_or(own.unwrap_or("index.html"));
        if file == "-" || file == "/dev/stdout" {
            streams.out.write(&reply.body);
            return 0;
        }
        if let Err(error) = self.files.write(&resolve(&self.cwd, file), &reply.body, false) {
            return complain(streams, &format!("wget: can't open '{file}': {error}"), 1);
        }
        if !read.has(&["q", "quiet"]) {
            streams
                .err
                .write(format!("saving to '{file}'\n'{file}' saved\n").as_bytes());
        }
        0
    }
}

fn failed(url: &Url, error: &AskError, streams: &Streams) -> i32 {
    match error {
        AskError::Dial(DialError::Outside(_)) => 0,
        AskError::Dial(DialError::Name(_)) => {
            complain(streams, &format!("wget: bad address '{}'", url.host), 1)
        }
        AskError::Dial(DialError::Connect(why)) => {
            let text = format!(
                "wget: can't connect to remote host ({}): {}",
                url.host,
                reason(why)
            );
            complain(streams, &text, 1)
        }
        AskError::Broken(_) => complain(streams, "wget: error getting response", 1),
        AskError::Secure(_) | AskError::Unknown | AskError::Authorities(_) => {
            complain(streams, &format!("wget: {error}"), 1)
        }
    }
}
