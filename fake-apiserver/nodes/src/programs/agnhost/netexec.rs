//! `netexec`: a server by HTTP and UDP that says who it is, asks others, runs commands, and ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_kit::SharedClock;
use futures::channel::mpsc;
use http::{HeaderMap, Method, Request, Response};
use network::Datagram;
use shared_json::{Map, Value, json};
use tokio::sync::watch;

use super::super::native::Container;
use super::super::pipe::Output;
use super::super::process::Run;
use super::super::shell::{Shell, Streams};
use super::super::web::{Url, ask};
use super::webhook::encryption;
use super::{Flags, Query, answer, datagrams, duration, redirection, until_asked};
use crate::nic::Nic;

/// The user agent of Go's client.
const AGENT: &str = "Go-http-client/1.1";
/// How long it waits for another program.
const PATIENCE: Duration = Duration::from_secs(5);

/// The parts of the server that its answers need.
struct Server {
    hostname: String,
    nic: Nic,
    run: Option<Arc<Run>>,
    log: Output,
    clock: SharedClock,
    /// A path that stands for all.
    over: Option<String>,
    ends: mpsc::UnboundedSender<i32>,
}

pub(super) async fn run(mut container: Container, flags: &Flags) -> i32 {
    use futures::StreamExt as _;
    let port = flags.port("http-port", 8080);
    let (ends, mut ended) = mpsc::unbounded();
    let server = Arc::new(Server {
        hostname: container.hostname.clone(),
        nic: container.nic.clone(),
        run: container.run.clone(),
        log: container.streams.err.clone(),
        clock: Arc::clone(&container.clock),
        over: flags.text(&["http-override"]).map(str::to_owned),
        ends,
    });
    server.note(&format!("Started HTTP server on port {port}"));
    let told = Arc::clone(&server);
    let answer = move |request| {
        let server = Arc::clone(&server);
        async move { server.answer(request).await }
    };
    let serving = match flags.text(&["tls-cert-file"]) {
        None => container.serve(port, answer),
        Some(certificate) => {
            let key = flags.text(&["tls-private-key-file"]).unwrap_or_default();
            match encryption(&container, certificate, key) {
                Ok(encryption) => container.serve_encrypted(port, encryption, answer),
                Err(why) => {
                    container.print_error(&format!("{why}\n"));
                    return 1;
                }
            }
        }
    };
    let delay = flags
        .text(&["delay-shutdown"])
        .and_then(|text| text.parse().ok())
        .map(Duration::from_secs);
    let datagrams = flags
        .port_or_none("udp-port", 8081)
        .and_then(|port| container.datagrams(Some(port)));
    let by_datagram = async move {
        if let Some(mut socket) = datagrams {
            socket.answer(|datagram| told.reply(datagram)).await;
        }
        std::future::pending::<()>().await;
    };
    // The server by HTTP is the program: it ends if another one has its port.
    let mut serving = std::pin::pin!(async {
        tokio::select! {
            () = serving => {}
            () = by_datagram => {}
        }
    });
    let code = tokio::select! {
        biased;
        Some(code) = ended.next() => return code,
        code = until_asked(&mut container, &mut serving) => code,
    };
    if let Some(delay) = delay {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = serving => {}
        }
    }
    code
}

impl Server {
    fn note(&self, text: &str) {
        let now = self.clock.now().strftime("%Y/%m/%d %H:%M:%S");
        self.log.write(format!("{now} {text}\n").as_bytes());
    }

    /// The answer to a datagram.
    fn reply(&self, datagram: &Datagram) -> Option<Bytes> {
        let (reply, note) = datagrams::reply(&self.hostname, datagram);
        if let Some(note) = note {
            self.note(&note);
        }
        reply
    }

    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let request = match &self.over {
            None => request,
            Some(over) => {
                let (mut head, _) = request.into_parts();
                head.method = Method::GET;
                head.uri = over.parse().unwrap_or_default();
                Request::from_parts(head, Bytes::new())
            }
        };
        let query = Query::of(&request);
        let path = request.uri().path();
        let target = request
            .uri()
            .path_and_query()
            .map_or(path, http::uri::PathAndQuery::as_str);
        self.note(&format!("GET {target}"));
        match path {
            "/clientip" => {
                let from = request.extensions().get::<SocketAddr>();
                answer(200, from.map_or_else(String::new, SocketAddr::to_string))
            }
            "/dial" => self.dial(&query).await,
            "/echo" => match (query.text("code"), query.text("code").parse::<u16>()) {
                ("", _) => answer(200, query.text("msg").to_owned()),
                (_, Ok(code)) => answer(code, query.text("msg").to_owned()),
                (code, Err(_)) => answer(
                    200,
                    format!("argument 'code' must be an integer or empty, got {code:?}\n"),
                ),
            },
            "/exit" => self.exit(&query).await,
            "/healthz" => answer(200, Bytes::new()),
            "/header" => {
                let named = request.headers().get(query.text("key"));
                answer(
                    200,
                    named.map_or_else(Vec::new, |value| value.as_bytes().to_vec()),
                )
            }
            "/hostname" | "/hostName" => answer(200, self.hostname.clone()),
            "/redirect" => {
                let code = query.text("code").parse().unwrap_or(302);
                redirection(code, query.text("location"))
            }
            "/shell" => self.shell(&query).await,
            "/shutdown" => {
                // The program is at its end, and nobody hears of it.
                let _ = self.ends.unbounded_send(0);
                answer(200, Bytes::new())
            }
            "/upload" => answer(200, json!({"error": "Unable to upload file."}).to_string()),
            _ => {
                let now = self.clock.now().strftime("%Y-%m-%d %H:%M:%S.%9f +0000 UTC");
                answer(200, format!("NOW: {now}"))
            }
        }
    }

    async fn exit(&self, query: &Query) -> Response<Bytes> {
        let times = [("timeout", query.text("timeout")), ("wait", query.text("wait"))];
        for (name, given) in times {
            if !given.is_empty() && duration(given).is_none() {
                let text =
                    format!("argument '{name}' must be a valid golang duration or empty, got {given:?}\n");
                return answer(200, text);
            }
        }
        let Ok(code) = query
            .text("code")
            .parse::<i32>()
            .or_else(|error| match query.text("code") {
                "" => Ok(0),
                _ => Err(error),
            })
        else {
            let given = query.text("code");
            let text = format!("argument 'code' must be an integer [0-127] or empty, got {given:?}\n");
            return answer(200, text);
        };
        tokio::time::sleep(duration(query.text("wait")).unwrap_or_default()).await;
        let _ = self.ends.unbounded_send(code);
        answer(200, Bytes::new())
    }

    async fn dial(&self, query: &Query) -> Response<Bytes> {
        let (host, port, request) = (query.text("host"), query.text("port"), query.text("request"));
        let tries = match query.text("tries") {
            "" => 1,
            text => match text.parse::<u32>() {
                Ok(tries) => tries,
                Err(error) => return answer(400, format!("tries parameter is invalid. {error}\n")),
            },
        };
        if request.is_empty() {
            return answer(400, "request parameter not specified. <nil>\n");
        }
        let by_datagram = match query.text("protocol").to_lowercase().as_str() {
            "" | "http" => false,
            "udp" => true,
            _ => return answer(400, format!("unsupported protocol. {}\n", query.text("protocol"))),
        };
        let place = Url::read(&format!("http://{}/{request}", joined(host, port)));
        let (Some(url), Ok(_)) = (place, self.nic.resolve(host)) else {
            return answer(
                400,
                format!("host and/or port param are invalid. lookup {host}: no such host\n"),
            );
        };
        let (mut responses, mut errors, mut last) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..tries.min(1000) {
            if by_datagram {
                let asked = self.dial_by_datagram((host, port), request).await;
                last = asked.as_ref().map_or_else(|_| String::new(), Clone::clone);
                match asked {
                    Ok(text) => responses.push(Value::from(text)),
                    Err(why) => errors.push(Value::from(why)),
                }
                continue;
            }
            let asked = ask(
                &self.nic,
                &url,
                (Method::GET, HeaderMap::new(), Bytes::new()),
                AGENT,
            );
            last = match tokio::time::timeout(PATIENCE, asked).await {
                Ok(Ok(reply)) => {
                    let text = String::from_utf8_lossy(&reply.body).into_owned();
                    responses.push(Value::from(text.clone()));
                    text
                }
                Ok(Err(error)) => {
                    errors.push(Value::from(format!(
                        "Get \"http://{host}:{port}/{request}\": {error}"
                    )));
                    String::new()
                }
                Err(_) => {
                    let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                    errors.push(Value::from(format!(
                        "Get \"http://{host}:{port}/{request}\": {why}"
                    )));
                    String::new()
                }
            };
        }
        let mut out = Map::new();
        if !errors.is_empty() {
            out.insert("errors", Value::from_iter(errors));
        }
        if !last.is_empty() {
            out.insert("responses", Value::from_iter(responses));
        }
        answer(200, Value::from(out).to_string())
    }

    /// Asks by a datagram; gives the answer, or the text of the error.
    async fn dial_by_datagram(&self, (host, port): (&str, &str), request: &str) -> Result<String, String> {
        let failed = |why: String| format!("udp dial failed. err:{why}");
        let target = self.nic.target(host).map_err(|error| failed(error.to_string()))?;
        let port = port
            .parse()
            .map_err(|_| failed(format!("address {port}: invalid port")))?;
        let target = SocketAddr::new(target, port);
        let payload = Bytes::from(request.to_owned());
        let asked = datagrams::ask(&self.nic, target, payload, Some(PATIENCE)).await;
        let unread = |why: &str| format!("reading from udp connection failed. err:'{why}'");
        match asked {
            Ok(bytes) if bytes.is_empty() => Err(unread("<nil>")),
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(unread(error.text())),
        }
    }

    async fn shell(&self, query: &Query) -> Response<Bytes> {
        let command = match query.text("shellCommand") {
            "" => query.text("cmd"),
            command => command,
        };
        let Some(run) = &self.run else {
            return answer(200, json!({"error": "exit status 127"}).to_string());
        };
        let (_keep, term) = watch::channel(false);
        let mut shell = Shell::of_run(run, term, false);
        let out = Output::default();
        let words = ["/bin/sh", "-c", command].map(str::to_owned);
        let code = shell.run_argv(&words, &Streams::into_one(&out)).await;
        let mut told = Map::new();
        if code != 0 {
            told.insert("error", Value::from(format!("exit status {code}")));
        }
        if !out.text().is_empty() {
            told.insert("output", Value::from(out.text()));
        }
        answer(200, Value::from(told).to_string())
    }
}

fn joined(host: &str, port: &str) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
