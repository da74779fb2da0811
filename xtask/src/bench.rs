//! `cargo xtask bench`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand, ValueEnum};
use conformance::bench_cluster::{self, Maker};
use conformance::bench_manager::{LOADS, Load, ManagerProgram};
use conformance::{bench, bench_api, bench_manager, bench_network};
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

/// Further benchmarks.
#[derive(Debug, Subcommand)]
enum What {
    /// Clusters of many nodes and pods: the time until all run and until all are gone, and the memory of each.
    Cluster {
        /// How many pods; several for how the cost grows.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
        pods: Vec<u32>,
        /// How many nodes; without it, so many that the pods fit.
        #[arg(long)]
        nodes: Option<u32>,
        /// The maker of the pods.
        #[arg(long, value_enum, default_value_t)]
        by: By,
    },
    /// The network in process: memory of pods that serve HTTP, and requests a second between two of them.
    Network {
        /// How many pods.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000])]
        pods: Vec<u32>,
    },
    /// OpenKruise's manager: passes a second, an update in place in real time, memory for each pod.
    Manager {
        /// How many pods; several for how the cost grows.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
        pods: Vec<u32>,
        /// Measures the program `kruise-manager` with objects of these kinds instead: `cloneset`, `statefulset`, …, or `all` (but
        /// `image-pull-job`, which makes a node of each pod).
        #[arg(long, value_delimiter = ',', value_parser = loads)]
        kind: Vec<Loads>,
        /// Flags for `kruise-manager`.
        #[arg(long, default_value = "")]
        flags: String,
        /// The shell's command that starts another manager to measure beside ours. Its environment has `KUBECONFIG`,
        /// `WEBHOOK_HOST`, `WEBHOOK_PORT`, `POD_NAMESPACE` and `FEATURE_GATES`, which the kind needs.
        #[arg(long, requires = "kind")]
        other_manager: Option<String>,
        /// Manifests that are created before the other manager starts: its definitions and webhook configurations.
        #[arg(long, requires = "other_manager")]
        installation: Option<PathBuf>,
    },
    /// A manager on the cluster whose kubeconfig is on standard input: the process that `manager` measures.
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

/// The maker of the measured pods.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum By {
    /// A client, one after the other.
    #[default]
    Client,
    /// A Deployment that has them all.
    Deployment,
    /// A DaemonSet: one on each of as many nodes.
    DaemonSet,
    /// A Job: all at once, until they are removed.
    Job,
    /// A StatefulSet that does not wait for one before the next.
    StatefulSet,
}

impl From<By> for Maker {
    fn from(by: By) -> Self {
        match by {
            By::Client => Self::Client,
            By::Deployment => Self::Deployment,
            By::DaemonSet => Self::DaemonSet,
            By::Job => Self::Job,
            By::StatefulSet => Self::StatefulSet,
        }
    }
}

/// The loads that a value of `--kind` stands for.
#[derive(Debug, Clone)]
struct Loads(Vec<Load>);

fn loads(text: &str) -> Result<Loads, String> {
    if text == "all" {
        let of_pods = LOADS.into_iter().filter(|load| *load != Load::ImagePullJob);
        return Ok(Loads(of_pods.collect()));
    }
    let name = text.replace('-', "");
    let found = LOADS.into_iter().find(|load| load.name() == name);
    found.map(|load| Loads(vec![load])).ok_or_else(|| {
        let names: Vec<&str> = LOADS.iter().map(|load| load.name()).collect();
        format!("no such kind; there are {} and all", names.join(", "))
    })
}

/// Builds `kruise-manager` for release, and says how it is started.
fn own_manager(flags: &str) -> miette::Result<ManagerProgram> {
    let workspace = crate::conformance::workspace();
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--bin", "kruise-manager"])
        .current_dir(&workspace)
        .status()
        .into_diagnostic()
        .wrap_err("build kruise-manager with cargo")?;
    miette::ensure!(built.success(), "kruise-manager does not build");
    let this = std::env::current_exe()
        .into_diagnostic()
        .wrap_err("find this program")?;
    let program = this.with_file_name("kruise-manager");
    let own = "--install --metrics-addr=0 --health-probe-addr=0 --feature-gates=\"$FEATURE_GATES\"";
    Ok(ManagerProgram {
        name: "kruise-manager".to_owned(),
        command: format!(
            "'{}' --kubeconfig \"$KUBECONFIG\" --webhook-url \"https://127.0.0.1:$WEBHOOK_PORT\" {own} {flags}",
            program.display()
        ),
        installation: None,
    })
}

fn real_time() -> miette::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .into_diagnostic()
        .wrap_err("start a runtime")
}

/// Runs this program's command line once more, as a release build.
fn in_release_build() -> miette::Result<ExitCode> {
    eprintln!("bench: building for release");
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--bin", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(crate::conformance::workspace())
        .status()
        .into_diagnostic()
        .wrap_err("run the release build with cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    // Figures of a debug build mean nothing.
    if cfg!(debug_assertions) {
        return in_release_build();
    }
    let mut out = std::io::stdout();
    match arguments.what {
        Some(What::Api { objects, kubeconfig }) => {
            real_time()?.block_on(bench_api::run(objects, &kubeconfig, &mut out))?;
        }
        Some(What::Cluster { pods, nodes, by }) => {
            let fit = |pods: u32| match by {
                By::DaemonSet => pods,
                _ => nodes.unwrap_or_else(|| bench_cluster::nodes_for(pods)),
            };
            let sizes: Vec<(u32, u32)> = pods.into_iter().map(|pods| (fit(pods), pods)).collect();
            bench_cluster::run(&sizes, by.into(), &mut out, &|seed, job| {
                seeded_entropy::simulate(seed, job)
            })?;
        }
        Some(What::Network { pods }) => {
            bench_network::run(&pods, &mut out, &|seed, job| seeded_entropy::simulate(seed, job))?;
        }
        Some(What::Manager {
            pods,
            kind,
            flags,
            other_manager,
            installation,
        }) if !kind.is_empty() => {
            let other = other_manager.map(|command| ManagerProgram {
                name: "the other manager".to_owned(),
                command,
                installation,
            });
            let managers: Vec<ManagerProgram> = [own_manager(&flags)?].into_iter().chain(other).collect();
            let loads: Vec<Load> = kind.into_iter().flat_map(|loads| loads.0).collect();
            bench_manager::run_beside(&loads, &pods, &managers, &mut out)?;
        }
        Some(What::Manager { pods, .. }) => {
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
