//! Hooks before a container is stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{HTTPGetAction, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::daemon::http::Get;
use crate::daemon::runtime::{ContainerRuntime, PodNetwork};

/// The container of a hook.
pub(super) struct Hooked<'a> {
    /// Its id.
    pub(super) id: &'a str,
    /// Its name.
    pub(super) container: &'a str,
    /// Its pod as the kubelet writes it: `name_namespace(uid)`.
    pub(super) pod: &'a str,
    /// The pod's address.
    pub(super) address: &'a str,
    /// The numbers of its ports by name.
    pub(super) ports: &'a BTreeMap<String, i32>,
}

impl Hooked<'_> {
    /// Runs a hook for as long as it may take.
    ///
    /// # Errors
    /// The text for the event, in the kubelet's words.
    pub(super) async fn run(
        &self,
        runtime: &dyn ContainerRuntime,
        network: &dyn PodNetwork,
        hook: &LifecycleHandler,
        limit: Duration,
    ) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            let command = exec.command.clone().unwrap_or_default();
            return self.exec(runtime, &command, limit).await;
        }
        if let Some(get) = &hook.http_get {
            return self.get(network, get, limit).await;
        }
        if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
            tokio::time::sleep(limit.min(Duration::from_secs(seconds))).await;
            return Ok(());
        }
        let kind = if hook.tcp_socket.is_some() {
            "tcpSocket"
        } else {
            "none"
        };
        Err(format!("Cannot run handler: invalid handler: {kind}"))
    }

    fn failed(&self, kind: &str, what: &str, error: &str, message: &str) -> String {
        let (container, pod) = (self.container, self.pod);
        format!(
            "{kind} lifecycle hook ({what}) for Container {container:?} in Pod {pod:?} failed - error: {error}, message: \
             {message:?}"
        )
    }

    async fn exec(
        &self,
        runtime: &dyn ContainerRuntime,
        command: &[String],
        limit: Duration,
    ) -> Result<(), String> {
        let shown = command.join(" ");
        let (error, message) = match runtime.exec(self.id, command, limit).await {
            Ok(output) if output.code == 0 => return Ok(()),
            Ok(output) => {
                let [out, err] =
                    [&output.out, &output.err].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let error = format!("command '{shown}' exited with {}: {err}", output.code);
                (error, format!("{out}{err}"))
            }
            Err(error) => (error.to_string(), String::new()),
        };
        Err(self.failed("Exec", &format!("[{shown}]"), &error, &message))
    }

    /// A hook that answers has done its work, whatever it answers.
    async fn get(
        &self,
        network: &dyn PodNetwork,
        get: &HTTPGetAction,
        limit: Duration,
    ) -> Result<(), String> {
        let path = get.path.as_deref().unwrap_or_default();
        let failed = |error: &str| self.failed("HTTP", path, error, "");
        let Some(port) = self.port(&get.port) else {
            return Err(failed("port not found"));
        };
        let request = Get {
            host: get
                .host
                .as_deref()
                .filter(|host| !host.is_empty())
                .unwrap_or(self.address),
            port,
            scheme: get.scheme.as_deref().unwrap_or_default(),
            path,
            headers: get.http_headers.as_deref().unwrap_or_default(),
            user_agent: "kruise-daemon",
        };
        match tokio::time::timeout(limit, request.send(network)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&request.timed_out())),
        }
    }

    fn port(&self, port: &IntOrString) -> Option<u16> {
        let number = match port {
            IntOrString::Int(number) => *number,
            IntOrString::String(name) => match self.ports.get(name) {
                Some(number) => *number,
                None => name.parse().ok()?,
            },
        };
        u16::try_from(number).ok().filter(|number| *number > 0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;
    use crate::daemon::test_node::TestNode;

    /// A hook, its error, and how many seconds it took of three.
    #[rstest]
    #[case::command(json!({ "exec": { "command": ["ok"] } }), "", 0)]
    #[case::command_fails(json!({ "exec": { "command": ["fails", "a"] } }),
        "Exec lifecycle hook ([fails a]) for Container \"c\" in Pod \"p_n(u)\" failed - error: command 'fails a' exited with 3: \
         broken, message: \"halfbroken\"", 0)]
    #[case::command_hangs(json!({ "exec": { "command": ["hangs"] } }),
        "Exec lifecycle hook ([hangs]) for Container \"c\" in Pod \"p_n(u)\" failed - error: context deadline exceeded, \
         message: \"\"", 3)]
    #[case::page(json!({ "httpGet": { "path": "/", "port": 80 } }), "", 0)]
    #[case::any_answer(json!({ "httpGet": { "path": "/nope", "port": "web" } }), "", 0)]
    #[case::no_server(json!({ "httpGet": { "path": "/bye", "port": 81 } }),
        "HTTP lifecycle hook (/bye) for Container \"c\" in Pod \"p_n(u)\" failed - error: Get \"http://10.0.0.1:81/bye\": dial tcp \
         10.0.0.1:81: connect: connection refused, message: \"\"", 0)]
    #[case::no_port(json!({ "httpGet": { "path": "/bye", "port": "other" } }),
        "HTTP lifecycle hook (/bye) for Container \"c\" in Pod \"p_n(u)\" failed - error: port not found, message: \"\"", 0)]
    #[case::slow_server(json!({ "httpGet": { "path": "/bye", "port": 82 } }),
        "HTTP lifecycle hook (/bye) for Container \"c\" in Pod \"p_n(u)\" failed - error: Get \"http://10.0.0.1:82/bye\": context \
         deadline exceeded (Client.Timeout exceeded while awaiting headers), message: \"\"", 3)]
    #[case::sleeps(json!({ "sleep": { "seconds": 2 } }), "", 2)]
    #[case::sleeps_too_long(json!({ "sleep": { "seconds": 9 } }), "", 3)]
    #[case::connection(json!({ "tcpSocket": { "port": 80 } }), "Cannot run handler: invalid handler: tcpSocket", 0)]
    #[case::empty(json!({}), "Cannot run handler: invalid handler: none", 0)]
    #[tokio::test(start_paused = true)]
    async fn rows(#[case] hook: Value, #[case] expect: &str, #[case] seconds: u64) {
        let hook: LifecycleHandler = serde_json::from_value(hook).unwrap();
        let hooked = Hooked {
            id: "containerd://c",
            container: "c",
            pod: "p_n(u)",
            address: "10.0.0.1",
            ports: &BTreeMap::from([("web".to_owned(), 80)]),
        };
        let began = Instant::now();
        let ran = hooked
            .run(&TestNode, &TestNode, &hook, Duration::from_secs(3))
            .await;
        assert_eq!(ran.err().unwrap_or_default(), expect);
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}
