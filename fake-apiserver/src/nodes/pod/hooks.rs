//! Lifecycle hooks.

use std::time::Duration;

use shared_json::Value;

use super::worker::PodWorker;
use crate::meta::{ObjectMeta as _, at};
use crate::nodes::programs::exec;

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
    /// Runs a hook of a container that runs; the error is what its status shows.
    pub(super) async fn run_hook(&self, name: &str, hook: &Value) -> Result<(), String> {
        if let Some(seconds) = at(hook, "sleep.seconds").and_then(Value::as_u64) {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        let Some(process) = self.processes.get(name) else {
            return Ok(());
        };
        let argv = strings(at(hook, "exec.command"));
        if argv.is_empty() {
            return if process.run.listens {
                Ok(())
            } else {
                Err("connection refused".to_owned())
            };
        }
        let (files, env) = (process.run.files.clone(), process.run.env.clone());
        let unknown_succeeds = process.serves.is_some();
        let (code, out) = exec(&argv, &files, &env, self.pod.name(), &self.kubelet.clock).await;
        // A program that is only known to serve has commands of its own.
        if code == 0 || (code == 127 && unknown_succeeds) {
            return Ok(());
        }
        let pod = format!("{}_{}({})", self.pod.name(), self.pod.namespace(), self.pod.uid());
        Err(format!(
            "Exec lifecycle hook ([{}]) for Container \"{name}\" in Pod \"{pod}\" failed - error: command '{}' exited \
             with {code}: , message: \"{}\"",
            argv.join(" "),
            argv.join(" "),
            out.text().trim_end()
        ))
    }
}
