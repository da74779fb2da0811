//! Lifecycle hooks.

use std::sync::Arc;
use std::time::Duration;

use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;

use super::worker::PodWorker;
use crate::programs::{Output, exec};

/// The exit code of a command that a signal ended at once.
const KILLED: i32 = 137;

/// The strings of a list.
pub(super) fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

impl PodWorker {
    /// A hook of a running container, to be awaited beside other work; the error is the text for its status.
    pub(super) fn hook(
        &self,
        name: &str,
        hook: &Value,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let sleep = at(hook, "sleep.seconds").and_then(Value::as_u64);
        let argv = strings(at(hook, "exec.command"));
        let process = self.processes.get(name);
        let run = process.map(|process| Arc::clone(&process.run));
        let request = self.hook_request(name, hook);
        let unknown_succeeds = process.is_some_and(|process| process.serves.is_some() || process.is_outside);
        let (container, pod) = (name.to_owned(), Arc::clone(&self.pod));
        async move {
            if let Some(seconds) = sleep {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                return Ok(());
            }
            let Some(run) = run else { return Ok(()) };
            let pod = format!("{}_{}({})", pod.name(), pod.namespace(), pod.uid());
            if let Some(request) = request {
                let made = Box::pin(request.make()).await;
                return made.map_err(|why| {
                    let path = request.path();
                    format!(
                        "HTTP lifecycle hook ({path}) for Container \"{container}\" in Pod \"{pod}\" failed - error: {why}"
                    )
                });
            }
            if argv.is_empty() {
                return if run.listens() {
                    Ok(())
                } else {
                    Err("connection refused".to_owned())
                };
            }
            let command = exec(&argv, &run);
            // A command dies with the program of its container.
            let (code, out) = tokio::select! {
                biased;
                () = run.logs.closed() => (KILLED, Output::default()),
                done = command => done,
            };
            // A program that is only known to serve has commands of its own.
            if code == 0 || (code == 127 && unknown_succeeds) {
                return Ok(());
            }
            let command = argv.join(" ");
            Err(format!(
                "Exec lifecycle hook ([{command}]) for Container \"{container}\" in Pod \"{pod}\" failed - error: command \
                 '{command}' exited with {code}: , message: \"{}\"",
                out.text().trim_end()
            ))
        }
    }
}
