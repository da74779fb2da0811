//! `cargo xtask soak`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use conformance::soak::{self, SoakOptions};
use miette::{IntoDiagnostic as _, WrapErr as _};

/// Soaks.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// For how many seconds requests are sent.
    #[arg(long, default_value_t = 600)]
    duration: u64,
    /// How many clients send them.
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// The seed of the requests.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> miette::Result<ExitCode> {
    let options = SoakOptions {
        duration: Duration::from_secs(arguments.duration),
        clients: arguments.clients,
        seed: arguments.seed,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .into_diagnostic()
        .wrap_err("start a runtime")?;
    let outcome = runtime.block_on(soak::run(&options, &mut std::io::stdout()))?;
    Ok(if outcome.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
