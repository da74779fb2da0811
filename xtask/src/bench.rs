//! `cargo xtask bench`.

use std::process::ExitCode;

use clap::Args;
use conformance::bench;

/// Measures.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The sizes of the CloneSets.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    replicas: Vec<u32>,
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build; for figures that mean something: cargo xtask bench");
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
