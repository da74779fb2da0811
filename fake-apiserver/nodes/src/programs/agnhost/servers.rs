//! The smaller servers, and `connect`.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use network::ConnectError;
use network::tls::Encryption;
use shared_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::super::certgen;
use super::super::files::Files;
use super::super::native::Container;
use super::super::web::page;
use super::datagrams;
use super::webhook::encryption;
use super::{Flags, Query, answer, duration, redirection, until_asked};
use crate::nic::DialError;

/// How long `liveness` is well.
const HEALTHY: Duration = Duration::from_secs(10);
/// How long `serve-hostname` waits for its removal after it was asked to end.
const REMOVAL: Duration = Duration::from_secs(60);

pub(super) async fn serve_hostname(mut container: Container, flags: &Flags) -> i32 {
    let port = flags.port("port", 9376);
    let hostname = container.hostname.clone();
    let by_http = flags.text(&["http"]).is_none_or(|value| value != "false");
    if by_http && (flags.flag("tcp") || flags.flag("udp")) {
        container.print_error("Can't server TCP/UDP mode and HTTP mode at the same time\n");
        return 1;
    }
    container.print_error(&format!("Serving on port {port}.\n"));
    let serving = if by_http {
        container.serve(port, move |_| std::future::ready(answer(200, hostname.clone())))
    } else {
        let listener = flags.flag("tcp").then(|| container.listen(port)).flatten();
        let socket = flags
            .flag("udp")
            .then(|| container.datagrams(Some(port)))
            .flatten();
        let by_datagram = datagrams::tell(socket, Bytes::from(hostname.clone()));
        Box::pin(async move {
            tokio::join!(tell(listener, hostname), by_datagram);
        })
    };
    let mut serving = std::pin::pin!(serving);
    let code = until_asked(&mut container, &mut serving).await;
    // Others may not know yet that it ends.
    tokio::select! {
        () = tokio::time::sleep(REMOVAL) => {}
        () = serving => {}
    }
    code
}

/// Sends a text to whoever connects.
async fn tell(listener: Option<super::super::native::Listener>, text: String) {
    let Some(mut listener) = listener else { return };
    while let Some(mut connection) = listener.accept().await {
        // The caller may be gone.
        let _ = connection.stream.write_all(text.as_bytes()).await;
    }
}

pub(super) async fn test_webserver(mut container: Container, flags: &Flags) -> i32 {
    let files = container.files.clone();
    let serving = container.serve(flags.port("port", 80), move |request| {
        let files = files.clone();
        async move {
            let folder = request.uri().path();
            if files.is_dir(folder) && !files.is_file(&format!("{}/index.html", folder.trim_end_matches('/')))
            {
                return answer(200, listing(&files, folder));
            }
            let (head, body) = page(&files, "/", request.uri().path()).into_parts();
            let body = body
                .collect()
                .await
                .map(|body| body.to_bytes())
                .unwrap_or_default();
            Response::from_parts(head, body)
        }
    });
    until_asked(&mut container, serving).await
}

/// The names in a folder, as a page.
fn listing(files: &Files, folder: &str) -> String {
    let folder = folder.trim_end_matches('/');
    let names = files
        .list(if folder.is_empty() { "/" } else { folder })
        .unwrap_or_default();
    let links = names.iter().map(|name| {
        let slash = if files.is_dir(&format!("{folder}/{name}")) {
            "/"
        } else {
            ""
        };
        format!("<a href=\"{name}{slash}\">{name}{slash}</a>\n")
    });
    format!("<!doctype html>\n<pre>\n{}</pre>\n", links.collect::<String>())
}

/// Takes connections: probes by gRPC ask for no more.
pub(super) async fn healthy(mut container: Container, flags: &Flags) -> i32 {
    let serving = tell(container.listen(flags.port("port", 5000)), String::new());
    until_asked(&mut container, serving).await
}

/// Serves the value of each variable `SERVE_PORT_N` on the port N, and that of `SERVE_TLS_PORT_N` by HTTPS.
pub(super) async fn porter(mut container: Container, flags: &Flags) -> i32 {
    let as_json = flags.flag("json-response");
    let mut serving = FuturesUnordered::new();
    let own = own_certificate(&mut container);
    for (name, value) in container.env.clone() {
        let plain = name
            .strip_prefix("SERVE_PORT_")
            .or_else(|| name.strip_prefix("SERVE_TCP_PORT_"));
        let secure = name.strip_prefix("SERVE_TLS_PORT_");
        let Some(port) = plain.or(secure).and_then(|port| port.parse::<u16>().ok()) else {
            continue;
        };
        let page = move |request: http::Request<bytes::Bytes>| {
            let mut response = answer(200, value.clone());
            if as_json {
                let told = json!({"Method": request.method().as_str(), "Body": value.clone()});
                response = answer(200, told.to_string());
                let kind = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, kind);
            }
            std::future::ready(response)
        };
        match (secure, &own) {
            (None, _) => serving.push(container.serve(port, page)),
            (Some(_), Ok(own)) => serving.push(container.serve_encrypted(port, own.clone(), page)),
            (Some(_), Err(why)) => {
                container.print_error(&format!("tls server on port {port:?} failed: {why}\n"))
            }
        }
    }
    let all = async {
        while serving.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    until_asked(&mut container, all).await
}

/// The encryption by the files that the variables name, or by a certificate of this program's own.
fn own_certificate(container: &mut Container) -> Result<Encryption, String> {
    let named = |name: &str| container.env.get(name).filter(|path| !path.is_empty()).cloned();
    if let (Some(certificate), Some(key)) = (named("CERT_FILE"), named("KEY_FILE")) {
        return encryption(container, &certificate, &key);
    }
    let (certificate, key) = certgen::localhost(&mut container.random).map_err(|error| error.to_string())?;
    Encryption::new(certificate.as_bytes(), key.as_bytes()).map_err(|error| error.to_string())
}

/// A server that is well for ten seconds.
pub(super) async fn liveness(mut container: Container) -> i32 {
    let started = Instant::now();
    let serving = container.serve(8080, move |request| {
        let since = started.elapsed();
        let response = match request.uri().path() {
            "/started" => answer(200, format!("{}s", since.as_secs_f64())),
            "/healthz" if since > HEALTHY => answer(500, format!("error: {}", since.as_secs_f64())),
            "/healthz" => answer(200, "ok"),
            "/redirect" => redirection(302, Query::of(&request).text("loc")),
            _ => answer(404, "404 page not found\n"),
        };
        std::future::ready(response)
    });
    until_asked(&mut container, serving).await
}

/// Tries to connect; says why that fails.
pub(super) async fn connect(container: &Container, flags: &Flags) -> i32 {
    let fail = |text: &str| {
        container.print_error(&format!("{text}\n"));
        1
    };
    let Some(place) = flags.operands.first() else {
        return fail("Error: accepts 1 arg(s), received 0");
    };
    let is_datagram = match flags.text(&["protocol"]).unwrap_or("tcp") {
        "" | "tcp" => false,
        "udp" => true,
        _ => return fail("Unsupported protocol"),
    };
    let Some((host, port)) = place.rsplit_once(':') else {
        return fail(&format!("UNKNOWN: address {place}: missing port in address"));
    };
    let host = host.trim_matches(['[', ']']);
    let Ok(port) = port.parse::<u16>() else {
        return fail(&format!("DNS: address {place}: invalid port"));
    };
    let timeout = flags
        .text(&["timeout"])
        .and_then(duration)
        .filter(|timeout| !timeout.is_zero());
    if is_datagram {
        let data = flags.text(&["udp-data"]).unwrap_or("hostname");
        let told = datagrams::connect(&container.nic, (host, port), data, timeout).await;
        return told.map_or_else(|why| fail(&why), |()| 0);
    }
    let connected = container.connect(host, port);
    let outcome = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, connected).await,
        None => Ok(connected.await),
    };
    match outcome {
        Err(_) | Ok(Err(DialError::Connect(ConnectError::TimedOut(_)))) => fail("TIMEOUT"),
        Ok(Ok(_)) | Ok(Err(DialError::Outside(_))) => 0,
        Ok(Err(DialError::Name(error))) => fail(&format!("DNS: {error}")),
        Ok(Err(DialError::Connect(ConnectError::Refused(_)))) => fail("REFUSED"),
        Ok(Err(error @ DialError::Connect(ConnectError::NoRoute(_)))) => fail(&format!("OTHER: {error}")),
    }
}
