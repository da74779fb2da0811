//! `cargo xtask fuzz`.

use std::process::{Command, ExitCode};

use clap::Args;
use conformance::apidiff;
use miette::{IntoDiagnostic as _, WrapErr as _, bail};

/// The toolchain whose compiler has the flags that cargo-fuzz needs.
const TOOLCHAIN: &str = "+nightly";

/// Fuzzes the API server with cargo-fuzz, beginning with the requests of the recorded cases.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The fuzz targets: files of `fake-apiserver/fuzz/fuzz_targets`, without their ending. All in turn if none is named.
    targets: Vec<String>,
    /// For how many seconds each.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only writes the seeds, below `fake-apiserver/fuzz/corpus`.
    #[arg(long)]
    seeds_only: bool,
}

/// Exit code 1 if one of the targets has found something; cargo-fuzz has then printed it.
pub(crate) fn run(arguments: &Arguments) -> miette::Result<ExitCode> {
    let workspace = crate::conformance::workspace();
    let folder = workspace.join("fake-apiserver/fuzz");
    let seeds = apidiff::seeds(&apidiff::read_all(&workspace.join("fixtures/apidiff/cases"))?);
    let wanted =
        |target: &&str| arguments.targets.is_empty() || arguments.targets.iter().any(|t| t == *target);
    let targets: Vec<&str> = seeds.keys().copied().filter(wanted).collect();
    if let Some(unknown) = arguments.targets.iter().find(|t| !targets.contains(&t.as_str())) {
        let known: Vec<&str> = seeds.keys().copied().collect();
        bail!(
            help = format!("the targets are {}", known.join(", ")),
            "there is no fuzz target {unknown}"
        );
    }
    for target in &targets {
        apidiff::write_seeds(&seeds, target, &folder.join("corpus").join(target))?;
    }
    if arguments.seeds_only {
        return Ok(ExitCode::SUCCESS);
    }
    let has_tool = Command::new("cargo")
        .args([TOOLCHAIN, "fuzz", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_tool {
        bail!(
            help = "install them: rustup toolchain install nightly, cargo install --locked cargo-fuzz",
            "cargo-fuzz or the nightly toolchain that it needs is missing"
        );
    }
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        println!("== {target}");
        let status = Command::new("cargo")
            .args([TOOLCHAIN, "fuzz", "run", "--fuzz-dir"])
            .arg(&folder)
            .args([target, "--", "-timeout=30"])
            .arg(format!("-max_total_time={}", arguments.seconds))
            .current_dir(&folder)
            .status()
            .into_diagnostic()
            .wrap_err("start cargo fuzz")?;
        if !status.success() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
