//! `cargo xtask bench`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use conformance::{bench, bench_api};
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

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build; for figures that mean something: cargo xtask bench");
    }
    if let Some(What::Api { objects, kubeconfig }) = arguments.what {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .into_diagnostic()
            .wrap_err("start a runtime")?;
        runtime.block_on(bench_api::run(objects, &kubeconfig, &mut std::io::stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let scenarios = crate::conformance::workspace().join("fixtures/scenarios");
    bench::run(
        &scenarios,
        &arguments.replicas,
        &mut std::io::stdout(),
        &|seed, job| seeded_entropy::simulate(seed, job),
    )?;
    Ok(ExitCode::SUCCESS)
}
