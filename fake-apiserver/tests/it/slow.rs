//! Clients that are slow, that stop, or that are too many: no other client waits for them, and nothing is kept for them without
//! end.

use std::time::Duration;

use fake_apiserver::faults::{Effect, Fault, Requests};
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::served::{Served, start};
use crate::support::request;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A connection over which `head` was sent.
async fn begun(served: &Served, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address()).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("a head");
    stream
}

/// The bytes until the connection ends.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended, too.
    let _ended = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn post(length: usize) -> String {
    format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// On a paused clock all waiting is over at once.
#[tokio::test(start_paused = true)]
async fn who_does_not_go_on_is_let_go() {
    let served = start(false).await;
    let before = tokio::time::Instant::now();
    for (sent, answer) in [
        ("", ""),
        // That might still become HTTP/2.
        ("PRI", ""),
        ("GET /ver", ""),
        ("GET /version HTTP/1.1\r\nhost: x\r\nx-more: ", ""),
        (&post(100), "HTTP/1.1 504 "),
        (&(post(100) + "{\"metadata\":"), "HTTP/1.1 504 "),
        // One that could be used again is not kept for ever.
        ("GET /version HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200 "),
    ] {
        let answered = rest(begun(&served, sent).await).await;
        assert!(answered.starts_with(answer), "{sent:?}: {answered:?}");
        assert!(answer.is_empty() == answered.is_empty(), "{sent:?}: {answered:?}");
        if answer.contains("504") {
            let message = "Timeout: request did not complete within the allotted timeout";
            assert!(answered.contains(message), "{answered}");
        }
    }
    // 90 seconds each, and 60 for what was not sent.
    let waited = before.elapsed().as_secs();
    assert!((5 * 90 + 2 * 60..=7 * 95).contains(&waited), "{waited} s");
}

#[tokio::test]
async fn nobody_waits_for_who_does_not_go_on() {
    let served = start(false).await;
    let head = post(100);
    let mut waiting = Vec::new();
    for sent in ["", "GET /ver", head.as_str()] {
        waiting.push(begun(&served, sent).await);
    }
    let list = "GET /api/v1/namespaces HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let asked = async { rest(begun(&served, list).await).await };
    let answer = tokio::time::timeout(Duration::from_secs(20), asked).await;
    assert!(answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")));
    drop(waiting);
}

/// A watch without a reader gets as many events as its connection takes; later ones are dropped, and it gets 410.
#[tokio::test]
async fn a_watch_that_falls_behind_is_cut_off() {
    const WRITES: usize = 600;
    let served = start(false).await;
    let watch = format!(
        "GET {CONFIG_MAPS}?watch=1&resourceVersion=0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    );
    let unread = begun(&served, &watch).await;
    let mut object = json!({"metadata": {"name": "a"}, "data": {}});
    let (code, _) = request(served.cluster(), "POST", CONFIG_MAPS, &object).await;
    assert_eq!(code, 201);
    for number in 0..WRITES {
        object["data"] = json!({"n": format!("{number} {}", "x".repeat(100_000))});
        let (code, _) = request(served.cluster(), "PUT", &format!("{CONFIG_MAPS}/a"), &object).await;
        assert_eq!(code, 200);
        // The connection is served beside.
        tokio::task::yield_now().await;
    }
    let told = tokio::time::timeout(Duration::from_secs(20), rest(unread)).await;
    let told = told.expect("an end");
    let events = told.matches("\"type\":\"MODIFIED\"").count();
    assert!(events < WRITES, "all {events} events");
    let error = told.find("\"type\":\"ERROR\"").expect("an error");
    let error = told.get(error..).unwrap_or_default();
    assert!(
        error.contains("\"code\":410") && error.contains("too old resource version"),
        "{error}"
    );
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_any_more_stops() {
    let served = start(false).await;
    let slow = Requests::all().verbs(["create"]).resources(["configmaps"]);
    let delay = Duration::from_millis(300);
    served
        .cluster()
        .faults()
        .add(Fault::new(Effect::Delay(delay)).on(slow));
    let body = json!({"metadata": {"name": "a"}}).to_string();
    let send = |name: &'static str| post(body.len()) + &body.replace("\"a\"", &format!("{name:?}"));
    let given_up = begun(&served, &send("x")).await;
    let awaited = begun(&served, &send("y")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(given_up);
    assert!(rest(awaited).await.starts_with("HTTP/1.1 201 "));
    tokio::time::sleep(delay).await;
    let (_, list) = request(served.cluster(), "GET", CONFIG_MAPS, &Value::Null).await;
    let items = list["items"].as_array().into_iter().flatten();
    let names: Vec<&Value> = items.map(|item| &item["metadata"]["name"]).collect();
    assert!(
        names.contains(&&json!("y")) && !names.contains(&&json!("x")),
        "{names:?}"
    );
}
