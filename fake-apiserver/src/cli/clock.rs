//! `fake-apiserver clock`.

use std::path::PathBuf;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use shared_json::{Value, json};

use super::Failure;
use crate::serve::CLOCK_PATH;

/// The time of a served cluster.
#[derive(Debug, clap::Args)]
pub struct Clock {
    #[command(subcommand)]
    verb: Verb,
    /// The kubeconfig of the cluster; by default `$KUBECONFIG`.
    #[arg(long, global = true, conflicts_with = "server")]
    kubeconfig: Option<PathBuf>,
    /// The address of a cluster that is served over plain HTTP, instead of a kubeconfig.
    #[arg(long, global = true)]
    server: Option<http::Uri>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Prints the cluster's time, and what is due next.
    Status,
    /// Lets the cluster's time jump. What is due on the way has happened when the command ends.
    Advance {
        /// How far, as `5m` or `1h30m`.
        by: String,
    },
}

impl Clock {
    /// Asks the server, and prints its answer.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses.
    pub async fn run(self) -> Result<(), Failure> {
        let mut config = match (self.server, self.kubeconfig) {
            (Some(server), _) => kube::Config::new(server),
            (None, path) => {
                let read = match path {
                    Some(path) => Kubeconfig::read_from(path)?,
                    None => Kubeconfig::read()?,
                };
                kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?
            }
        };
        // A jump may take longer than any other request.
        config.read_timeout = None;
        let client = kube::Client::try_from(config)?;
        let (method, body) = match self.verb {
            Verb::Status => ("GET", Vec::new()),
            Verb::Advance { by } => ("POST", json!({"advance": by}).to_string().into_bytes()),
        };
        let request = Request::builder()
            .method(method)
            .uri(CLOCK_PATH)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)?;
        let answer = client.request_text(request).await?;
        print!("{}", shown(&shared_json::from_str(&answer)?));
        Ok(())
    }
}

/// The time, and what is due next, a line each.
fn shown(status: &Value) -> String {
    let text = |value: &Value, field: &str| -> String {
        match value.get(field) {
            Some(Value::String(text)) => text.to_string(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    };
    let mut out = format!(
        "time   {}\nspeed  {}\nahead  {}\n",
        text(status, "time"),
        text(status, "speed"),
        text(status, "ahead")
    );
    for due in status.get("next").and_then(Value::as_array).into_iter().flatten() {
        let (time, who, what) = (text(due, "time"), text(due, "who"), text(due, "what"));
        out.push_str(&format!("next   {time}  {who}  {what}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_in_lines() {
        let status = json!({"time": "2026-01-01T00:05:00Z", "speed": 1, "ahead": "5m", "next": [
            {"time": "2026-01-01T00:06:00Z", "who": "cronjob-controller", "what": "default/hello"}]});
        let lines = "time   2026-01-01T00:05:00Z\nspeed  1\nahead  5m\n\
                     next   2026-01-01T00:06:00Z  cronjob-controller  default/hello\n";
        assert_eq!(shown(&status), lines);
    }
}
