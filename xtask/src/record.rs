//! `cargo xtask record`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conformance::record;
use conformance::suite::SuiteOptions;

use crate::conformance::{Backend, ManagerKind};

/// Does the steps of a recording on a cluster, and writes the changes there as a recording.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder with `steps.json` and its manifests.
    #[arg(long, value_name = "DIR")]
    steps: PathBuf,
    /// The folder to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The cluster.
    #[arg(long, value_enum, default_value_t = Backend::Kubeconfig)]
    backend: Backend,
    /// The kubeconfig of `--backend kubeconfig` (otherwise the usual one).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The manager that runs OpenKruise's controllers.
    #[arg(long, value_enum, default_value_t = ManagerKind::External)]
    manager: ManagerKind,
    /// The number that a run on the in-process cluster is a function of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let options = SuiteOptions {
        backend: arguments.backend.choice(arguments.kubeconfig, None),
        manager: arguments.manager.choice(),
        seed: arguments.seed,
        ..SuiteOptions::default()
    };
    let changes = record::run(&options, &arguments.steps, &arguments.out, &|seed, job| {
        seeded_entropy::simulate(seed, job)
    })?;
    println!("{changes} changes in {}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}
