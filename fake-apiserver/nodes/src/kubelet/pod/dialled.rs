//! Probes of pods that stand for ports of this machine.

use std::io;
use std::time::Duration;

use machinery::meta::at;
use shared_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How much of an answer is read.
const HEAD_BYTES_MAX: usize = 4096;

/// Asks the program at a place: by HTTP where that is asked for, else whether something listens there. (Certificates are not looked
/// at, as by a kubelet, so HTTPS is asked no more than that.)
pub(super) async fn ask(place: &(String, u16), spec: &Value, limit: Duration) -> Result<(), String> {
    match tokio::time::timeout(limit, Box::pin(asked(place, spec))).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("dial tcp {}:{}: i/o timeout", place.0, place.1)),
    }
}

async fn asked((host, port): &(String, u16), spec: &Value) -> Result<(), String> {
    let address = format!("{host}:{port}");
    let dialled = TcpStream::connect((host.as_str(), *port)).await;
    let stream = dialled.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {address}: connect: connection refused"),
        _ => format!("dial tcp {address}: {error}"),
    })?;
    let text = |field: &str| at(spec, field).and_then(Value::as_str).unwrap_or_default();
    if spec.get("httpGet").is_none() || text("httpGet.scheme") == "HTTPS" {
        return Ok(());
    }
    let path = rooted(text("httpGet.path"));
    let code = status_of(stream, &address, &path).await;
    let code = code.map_err(|error| format!("Get \"http://{address}{path}\": {error}"))?;
    match code {
        200..400 => Ok(()),
        code => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// The path of a request. Probes and hooks may name it without the first slash.
pub(super) fn rooted(path: &str) -> String {
    format!("/{}", path.strip_prefix('/').unwrap_or(path))
}

/// The status code of the answer to a GET.
async fn status_of(mut stream: TcpStream, host: &str, path: &str) -> io::Result<u16> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.contains(&b'\n') && head.len() < HEAD_BYTES_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let code = String::from_utf8_lossy(&head)
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok());
    code.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "malformed HTTP response"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[rstest]
    #[case::good(json!({"httpGet": {"path": "/healthz"}}), "HTTP/1.1 200 OK\r\n\r\n", Ok(()))]
    #[case::moved(json!({"httpGet": {}}), "HTTP/1.1 302 Found\r\n\r\n", Ok(()))]
    #[case::bad(json!({"httpGet": {"path": "/healthz"}}), "HTTP/1.1 503 No\r\n\r\n", Err("HTTP probe failed with statuscode: 503"))]
    #[case::not_http(json!({"httpGet": {"path": "/healthz"}}), "hello\n", Err("malformed HTTP response"))]
    #[case::encrypted(json!({"httpGet": {"scheme": "HTTPS"}}), "", Ok(()))]
    #[case::listens(json!({"tcpSocket": {}}), "", Ok(()))]
    #[tokio::test]
    async fn answers(#[case] spec: Value, #[case] answer: &'static str, #[case] expected: Result<(), &str>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut heard = [0; 512];
            if !answer.is_empty() && stream.read(&mut heard).await.is_ok() {
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let place = ("127.0.0.1".to_owned(), port);
        let told = ask(&place, &spec, Duration::from_secs(5)).await;
        match expected {
            Ok(()) => assert_eq!(told, Ok(())),
            Err(why) => assert!(told.clone().is_err_and(|told| told.ends_with(why)), "{told:?}"),
        }
    }

    #[rstest]
    #[case("", "/")]
    #[case("/", "/")]
    #[case("readyz", "/readyz")]
    #[case("/readyz?verbose", "/readyz?verbose")]
    fn paths(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(rooted(path), expected);
    }

    #[tokio::test]
    async fn nothing_listens() {
        let told = ask(&("127.0.0.1".to_owned(), 1), &json!({}), Duration::from_secs(5)).await;
        assert_eq!(
            told,
            Err("dial tcp 127.0.0.1:1: connect: connection refused".to_owned())
        );
    }
}
