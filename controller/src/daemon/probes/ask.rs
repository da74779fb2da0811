//! One question of a probe.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ExecAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::daemon::http::Get;
use crate::daemon::runtime::{ContainerRuntime, PodNetwork, RuntimeError};

/// The client's name in requests by HTTP.
const USER_AGENT: &str = "kube-probe";

/// The answer of a probe: whether it succeeded, and its text.
pub(super) type Reply = (bool, String);

/// Asks the container with this id at the pod's address. None if there is no answer that says anything.
pub(super) async fn ask(
    probe: &Probe,
    id: &str,
    address: &str,
    runtime: &dyn ContainerRuntime,
    network: &dyn PodNetwork,
) -> Option<Reply> {
    let seconds = probe
        .timeout_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let limit = Duration::from_secs(seconds.unwrap_or_default().max(1));
    if let Some(exec) = &probe.exec {
        return run(exec, id, runtime, limit).await;
    }
    if let Some(get) = &probe.http_get {
        return fetch(get, address, network, limit).await;
    }
    let action = probe.tcp_socket.as_ref()?;
    let port = number(&action.port)?;
    let host = action
        .host
        .as_deref()
        .filter(|host| !host.is_empty())
        .unwrap_or(address);
    Some(
        match tokio::time::timeout(limit, network.connect(host, port)).await {
            Ok(Ok(_)) => (true, String::new()),
            Ok(Err(error)) => (false, error),
            Err(_) => (false, format!("dial tcp {host}:{port}: i/o timeout")),
        },
    )
}

async fn run(exec: &ExecAction, id: &str, runtime: &dyn ContainerRuntime, limit: Duration) -> Option<Reply> {
    let command = exec.command.clone().unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match runtime.exec(id, &command, limit).await {
        Ok(output) if output.code == 0 => Some((true, text(&output.out))),
        Ok(output) => Some((false, text(&output.err))),
        Err(RuntimeError::TimedOut(message)) => Some((false, message)),
        Err(RuntimeError::Failed(_)) => None,
    }
}

async fn fetch(
    get: &HTTPGetAction,
    address: &str,
    network: &dyn PodNetwork,
    limit: Duration,
) -> Option<Reply> {
    let request = Get {
        host: get
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
            .unwrap_or(address),
        port: number(&get.port)?,
        scheme: get.scheme.as_deref().unwrap_or_default(),
        path: get.path.as_deref().unwrap_or_default(),
        headers: get.http_headers.as_deref().unwrap_or_default(),
        user_agent: USER_AGENT,
    };
    Some(match tokio::time::timeout(limit, request.send(network)).await {
        Ok(Ok(answer)) if (200..400).contains(&answer.status) => (true, answer.body),
        Ok(Ok(answer)) => (
            false,
            format!("HTTP probe failed with statuscode: {}", answer.status),
        ),
        Ok(Err(error)) => (false, error),
        Err(_) => (false, request.timed_out()),
    })
}

/// The number of a port. The manager has put numbers in place of names.
fn number(port: &IntOrString) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(number) => number.parse().ok()?,
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::daemon::test_node::TestNode;

    #[rstest]
    #[case::command(json!({ "exec": { "command": ["ok"] } }), Some((true, "fine")))]
    #[case::command_fails(json!({ "exec": { "command": ["fails"] } }), Some((false, "broken")))]
    #[case::command_hangs(json!({ "exec": { "command": ["hangs"] } }), Some((false, "context deadline exceeded")))]
    #[case::no_command(json!({ "exec": { "command": ["nonesuch"] } }), None)]
    #[case::page(json!({ "httpGet": { "path": "/", "port": 80, "scheme": "HTTP" } }), Some((true, "welcome")))]
    #[case::redirection(json!({ "httpGet": { "path": "/away", "port": 80 } }), Some((true, "away")))]
    #[case::no_page(
        json!({ "httpGet": { "path": "/nope", "port": 80 } }), Some((false, "HTTP probe failed with statuscode: 404")))]
    #[case::client(json!({ "httpGet": { "path": "/agent", "port": 80 } }), Some((true, "kube-probe ")))]
    #[case::no_server(
        json!({ "httpGet": { "path": "/", "port": 81 } }),
        Some((false, "Get \"http://10.0.0.1:81/\": dial tcp 10.0.0.1:81: connect: connection refused")))]
    #[case::slow_server(
        json!({ "httpGet": { "path": "/", "port": 82 } }),
        Some((false, "Get \"http://10.0.0.1:82/\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)")))]
    #[case::tcp(json!({ "tcpSocket": { "port": 80 } }), Some((true, "")))]
    #[case::tcp_refused(
        json!({ "tcpSocket": { "port": 81 } }), Some((false, "dial tcp 10.0.0.1:81: connect: connection refused")))]
    #[case::tcp_slow(json!({ "tcpSocket": { "port": 82 } }), Some((false, "dial tcp 10.0.0.1:82: i/o timeout")))]
    #[case::no_port(json!({ "tcpSocket": { "port": "web" } }), None)]
    #[case::nothing(json!({}), None)]
    #[tokio::test(start_paused = true)]
    async fn rows(#[case] probe: Value, #[case] expect: Option<(bool, &str)>) {
        let probe: Probe = serde_json::from_value(probe).unwrap();
        let reply = ask(&probe, "containerd://c", "10.0.0.1", &TestNode, &TestNode).await;
        assert_eq!(
            reply.as_ref().map(|(succeeded, text)| (*succeeded, &**text)),
            expect
        );
    }
}
