//! `cargo xtask ci`: what CI runs.

use std::process::{Command, ExitCode};

use miette::{IntoDiagnostic as _, WrapErr as _};

/// The commands, in order; the first that fails ends it.
const COMMANDS: [&[&str]; 3] = [
    &["fmt", "--all", "--check"],
    &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "--deny",
        "warnings",
    ],
    &["test", "--workspace", "--quiet"],
];

pub(crate) fn run() -> miette::Result<ExitCode> {
    for arguments in COMMANDS {
        println!("$ cargo {}", arguments.join(" "));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(arguments)
            .current_dir(crate::conformance::workspace())
            .status()
            .into_diagnostic()
            .wrap_err("start cargo")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
