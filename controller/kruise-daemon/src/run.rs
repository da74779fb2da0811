//! The program, from its command line to its end.

use std::future::Future;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use client_kit::SystemClock;
use controller::daemon::Daemon;
use controller::gates::FeatureGates;
use controller::metrics::Metrics;
use controller::process::connect::connect;
use controller::process::endpoints::{listen, serve};
use controller::process::flags::Flags;
use controller::process::logs::Logs;
use controller::process::stop::asked_to_stop;
use controller::process::version::line;
use miette::{MietteHandlerOpts, Report};
use tokio::task::JoinSet;

use crate::endpoints;
use crate::environment::node_name;
use crate::error::DaemonError;
use crate::flags::table;
use crate::network::NodeNetwork;
use crate::runtimes::{HOST_RUN, Runtimes, sockets};

/// The daemon's name in its requests.
const USER_AGENT: &str = "kruise-daemon";

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let result = Flags::parse_of(&table(), std::env::args().skip(1));
    let result = result.map_err(DaemonError::Usage).and_then(|flags| {
        if flags.is_set("help") {
            print!("{}", Flags::usage_of(&table()));
            return Ok(());
        }
        if flags.is_set("version") {
            println!("{}", line("kruise-daemon"));
            return Ok(());
        }
        let logs = Logs::new(flags.number("v"), flags.text("logging-format") == "json");
        // Nobody else sets one in this process.
        let _only_once = tracing::subscriber::set_global_default(logs);
        // One thread: the daemon waits for the runtime and for pods, and a node has better uses for its memory.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(DaemonError::Runtime)?;
        let variable = |name: &str| std::env::var(name).ok();
        runtime.block_on(run(&flags, variable, asked_to_stop()))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            // A log has no width. Nobody else sets a hook in this process.
            let _only_once = miette::set_hook(Box::new(|_| {
                Box::new(MietteHandlerOpts::new().wrap_lines(false).build())
            }));
            eprintln!("{:?}", Report::new(error));
            ExitCode::from(code)
        }
    }
}

/// Runs the daemon with `flags` and the variables of the environment that `variable` gives, until `stop` is ready.
///
/// # Errors
/// If it does not start.
pub async fn run(
    flags: &Flags,
    variable: impl Fn(&str) -> Option<String>,
    stop: impl Future,
) -> Result<(), DaemonError> {
    let gates = FeatureGates::parse(flags.text("feature-gates"));
    let gates = gates.map_err(|error| DaemonError::Usage(error.into()))?;
    let node = node_name(variable)?;
    let sockets = sockets(flags.text("socket-file"), Path::new(HOST_RUN))?;
    let runtimes = Arc::new(Runtimes::connect(&sockets, USER_AGENT).await?);
    let client = connect(flags.text("kubeconfig"), USER_AGENT).await;
    let client = client.map_err(DaemonError::Cluster)?;
    let metrics: Arc<Metrics> = Arc::default();
    let (containers, images) = (Arc::clone(&runtimes), runtimes);
    let daemon = Daemon::new(
        client,
        &node,
        containers,
        Arc::new(NodeNetwork),
        Arc::new(SystemClock),
    )
    .with_gates(gates)
    .with_images(images)
    .with_pulls_max(Some(flags.number("max-workers-for-pull-image")).filter(|pulls| *pulls > 0))
    .with_metrics(Arc::clone(&metrics));
    let mut tasks = JoinSet::new();
    let address = flags.text("addr");
    if address != "0" {
        let listener = listen(address).await.map_err(DaemonError::Listen)?;
        let health = daemon.health();
        let answer = move |path: &str| endpoints::answer(path, &health, &metrics);
        tasks.spawn(serve(listener, answer));
    }
    tracing::info!(node, "the daemon runs");
    daemon.run(stop).await;
    Ok(())
}
