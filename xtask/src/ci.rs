//! `cargo xtask ci`: the checks of CI.

use std::process::{Command, ExitCode};

use miette::{IntoDiagnostic as _, WrapErr as _};

/// Runs `.ci/run`, the one list of checks.
pub(crate) fn run() -> miette::Result<ExitCode> {
    let status = Command::new("bash")
        .arg(".ci/run")
        .current_dir(crate::conformance::workspace())
        .status()
        .into_diagnostic()
        .wrap_err("run .ci/run with bash")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
