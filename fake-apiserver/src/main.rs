//! `fake-apiserver`: a Kubernetes cluster behind a socket, without containers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use client_kit::{Clock as _, SystemClock};
use fake_apiserver::{Cluster, serve};
use tokio::net::TcpListener;

/// A Kubernetes cluster without containers: API server, simulated nodes, built-in controllers.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a cluster over plain HTTP and prints its URL.
    Serve(Serve),
}

#[derive(clap::Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// How many simulated nodes there are.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Which built-in controllers run.
    #[arg(long, value_enum, default_value_t = Controllers::All)]
    controllers: Controllers,
    /// The number that names, uids and latencies follow from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write a kubeconfig.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Controllers {
    All,
    None,
}

fn main() -> ExitCode {
    let Command::Serve(options) = Arguments::parse().command;
    // One thread: a cluster's state is one store under one lock, and its tasks are short.
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(options)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to serve: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Serve) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let cluster = Cluster::builder()
        .seed(options.seed)
        .start_time(SystemClock.now())
        .nodes(options.nodes)
        .controllers(options.controllers == Controllers::All)
        .start()
        .await?;
    if let Some(path) = &options.kubeconfig {
        // JSON is YAML.
        std::fs::write(path, format!("{:#}\n", serve::kubeconfig(address)))?;
    }
    println!("http://{address}");
    tokio::select! {
        biased;
        result = serve::serve(cluster.server().clone(), listener) => result?,
        result = tokio::signal::ctrl_c() => result?,
    }
    Ok(())
}
