//! `cargo xtask bench`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand};
use conformance::bench_cluster::{self, Maker};
use conformance::{bench, bench_api, bench_manager};
use miette::{IntoDiagnostic as _, WrapErr as _};

/// Measures.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The sizes of the CloneSets.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    replicas: Vec<u32>,
    #[command(subcommand)]
    what: Option<What>,
}

/// What else can be measured.
#[derive(Debug, Subcommand)]
enum What {
    /// Clusters of many nodes and pods: how long until all run, until all are gone, and what each occupies.
    Cluster {
        /// How many pods; several for how the cost grows.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
        pods: Vec<u32>,
        /// How many nodes; without it, so many that the pods fit.
        #[arg(long)]
        nodes: Option<u32>,
        /// One Deployment has all the pods; otherwise each is by itself.
        #[arg(long)]
        deployment: bool,
    },
    /// OpenKruise's manager: passes a second, an update in place in real time, memory for each pod.
    Manager {
        /// How many pods; several for how the cost grows.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
        pods: Vec<u32>,
    },
    /// A manager on the cluster whose kubeconfig is on standard input: what `manager` starts to measure it.
    #[command(hide = true)]
    ManagerAlone {
        /// Ends after a pass.
        #[arg(long)]
        wait_for_pass: bool,
    },
    /// Requests and watch events per second of an API server: in process, served, and those of kubeconfigs.
    Api {
        /// How many objects.
        #[arg(long, default_value_t = 2000)]
        objects: usize,
        /// Another server to measure; may be given more than once.
        #[arg(long)]
        kubeconfig: Vec<PathBuf>,
    },
}

fn real_time() -> miette::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .into_diagnostic()
        .wrap_err("start a runtime")
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build; for figures that mean something: cargo xtask bench");
    }
    let mut out = std::io::stdout();
    match arguments.what {
        Some(What::Api { objects, kubeconfig }) => {
            real_time()?.block_on(bench_api::run(objects, &kubeconfig, &mut out))?;
        }
        Some(What::Cluster {
            pods,
            nodes,
            deployment,
        }) => {
            let sizes: Vec<(u32, u32)> = pods
                .into_iter()
                .map(|pods| (nodes.unwrap_or_else(|| bench_cluster::nodes_for(pods)), pods))
                .collect();
            let maker = if deployment {
                Maker::Deployment
            } else {
                Maker::Client
            };
            bench_cluster::run(&sizes, maker, &mut out, &|seed, job| {
                seeded_entropy::simulate(seed, job)
            })?;
        }
        Some(What::Manager { pods }) => {
            let this = std::env::current_exe()
                .into_diagnostic()
                .wrap_err("find this program")?;
            let alone = |wait_for_pass: bool| {
                let mut command = Command::new(&this);
                command.args(["bench", "manager-alone"]);
                command.args(wait_for_pass.then_some("--wait-for-pass"));
                command
            };
            bench_manager::run(&pods, &alone, &mut out, &|seed, job| {
                seeded_entropy::simulate(seed, job)
            })?;
        }
        Some(What::ManagerAlone { wait_for_pass }) => {
            let started = real_time()?.block_on(bench_manager::alone(std::io::stdin(), wait_for_pass))?;
            println!("{started}");
        }
        None => {
            let scenarios = crate::conformance::workspace().join("fixtures/scenarios");
            bench::run(&scenarios, &arguments.replicas, &mut out, &|seed, job| {
                seeded_entropy::simulate(seed, job)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
