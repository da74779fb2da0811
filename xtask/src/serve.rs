//! `cargo xtask serve`: `fake-apiserver serve` with OpenKruise in the cluster.
//!
//! The manager runs as `kruise-manager` does: its webhooks listen on a port of this machine. The daemons reach the
//! simulated nodes' containers in this process.

use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use controller::Options;
use controller::process::flags::Flags;
use controller::process::gates::FeatureGates;
use controller::process::run::{Environment, run_with};
use controller::process::{install, install_daemon};
use fake_apiserver::cli::{Beside, Failure, Serve, Served};
use futures::future::BoxFuture;
use kruise_cluster::start_daemons;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use miette::{IntoDiagnostic as _, WrapErr as _, miette};
use tokio::task::JoinSet;

/// The manager's user agent.
const MANAGER: &str = "kruise-manager";
/// How long the manager may take until its webhooks answer.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Serves a cluster.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Serve,
    /// OpenKruise's feature gates, as `kruise-manager` takes them.
    #[arg(long, default_value = "")]
    feature_gates: String,
}

/// OpenKruise beside the cluster.
struct Kruise {
    feature_gates: String,
}

impl Beside for Kruise {
    fn looks_at_containers(&self) -> bool {
        true
    }

    fn start<'a>(
        &'a self,
        served: Served<'a>,
        tasks: &'a mut JoinSet<()>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let gates = FeatureGates::parse(&self.feature_gates)?;
            let client = served.cluster.client();
            let port = free_port()?;
            let environment = Environment::read(|name| (name == "WEBHOOK_PORT").then(|| port.to_string()))?;
            let namespace = environment.namespace.clone();
            let secrets = environment.secrets_namespace.clone();
            install::install(&client, (&namespace, &secrets), &gates).await?;
            install_daemon::install(&client, &namespace, &secrets).await?;
            let flags = Flags::parse(
                [
                    "--metrics-addr=0",
                    "--health-probe-addr=0",
                    // The nodes are there to stay: jobs that pull images find them at once.
                    "--nodeimage-creation-delay=0s",
                    &format!("--webhook-url=https://127.0.0.1:{port}"),
                    &format!("--feature-gates={}", self.feature_gates),
                ]
                .map(str::to_owned),
            )?;
            // Manager and daemons have the rights of their roles alone, as in a cluster on which a chart installs them.
            let manager = served.cluster.server().named(MANAGER);
            let manager = manager.acting_as(&install::user(&namespace)).client();
            let (ends, ended) = tokio::sync::oneshot::channel();
            tasks.spawn(async move {
                let options = Options::default();
                let never = std::future::pending::<()>();
                if let Err(error) = run_with(manager, &flags, &environment, options, never).await
                    && let Err(error) = ends.send(error)
                {
                    // The cluster is served already, and goes on.
                    eprintln!("error: kruise-manager ended: {error}");
                }
            });
            let daemon = served.cluster.client_as(&install_daemon::user(&namespace));
            let place = (&daemon, &served.cluster.clock());
            let node = (served.containers, served.images);
            start_daemons(tasks, place, node, &gates, served.nodes);
            tokio::select! {
                Ok(error) = ended => Err(format!("start kruise-manager: {error}").into()),
                ready = ready(&client) => ready,
            }
        })
    }
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until OpenKruise's webhooks answer: a CloneSet could be created.
async fn ready(client: &Client) -> Result<(), Failure> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "CloneSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    let set: DynamicObject = serde_json::from_value(serde_json::json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "ready"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "ready"}},
            "template": {
                "metadata": {"labels": {"app": "ready"}},
                "spec": {"containers": [{"name": "main", "image": "main"}]},
            },
        },
    }))?;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut waited = Duration::ZERO;
    loop {
        match sets.create(&params, &set).await {
            // Without the webhook the strategy has no type.
            Ok(created) if !created.data["spec"]["updateStrategy"]["type"].is_null() => return Ok(()),
            Err(error) if waited > READY_LIMIT => {
                return Err(format!("wait for OpenKruise's webhooks: {error}").into());
            }
            Ok(_) if waited > READY_LIMIT => return Err("wait for OpenKruise's webhooks".into()),
            _ => tokio::time::sleep(LOOK).await,
        }
        waited += LOOK;
    }
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let kruise = Kruise {
        feature_gates: arguments.feature_gates,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .into_diagnostic()
        .wrap_err("start a runtime")?;
    runtime
        .block_on(arguments.cluster.run(&kruise))
        .map_err(|error| miette!("failed to serve: {error}"))?;
    Ok(ExitCode::SUCCESS)
}
