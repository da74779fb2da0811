//! `fake-apiserver`: a Kubernetes cluster behind a socket, without containers.

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};
use fake_apiserver::cli::{Clock, KUBERNETES_VERSION, Nodes, Serve};

/// Documents are many small pieces, made and dropped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The version, the commit that the build names, and the version of Kubernetes that the cluster has.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("SEATRIAL_COMMIT").unwrap_or("unknown");
    format!(
        "{} (commit {commit}, Kubernetes {KUBERNETES_VERSION})",
        env!("CARGO_PKG_VERSION")
    )
});

/// A Kubernetes cluster without containers: API server, simulated nodes, built-in controllers.
#[derive(Parser)]
#[command(version = VERSION.as_str())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a cluster, writes a kubeconfig for it and prints the line that makes kubectl use it.
    Serve(Serve),
    /// Tells the time of a served cluster, or lets it jump.
    Clock(Clock),
    /// Gives any API server simulated nodes, until stopped.
    Nodes(Nodes),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // One thread: a cluster's state is one store under one lock, and its tasks are short.
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| {
            runtime.block_on(async {
                match command {
                    Command::Serve(options) => options.run(&()).await,
                    Command::Clock(options) => options.run().await,
                    Command::Nodes(options) => options.run().await,
                }
            })
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to run: {error}");
            ExitCode::FAILURE
        }
    }
}
