//! The programs of a release: static, so that they run on any Linux and in an image of nothing else.

use std::path::PathBuf;
use std::process::Command;

use miette::{IntoDiagnostic as _, WrapErr as _, miette};

/// The targets of a release.
pub(super) const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
/// The programs.
pub(super) const PROGRAMS: [&str; 3] = ["fake-apiserver", "kruise-manager", "kruise-daemon"];
/// Their packages.
const PACKAGES: [&str; 3] = ["fake-apiserver", "seatrial-controller", "kruise-daemon"];

/// Whether the toolchain has the standard library of a target.
pub(super) fn is_installed(target: &str) -> miette::Result<bool> {
    let folder = super::output("rustc", &["--print", "target-libdir", "--target", target]);
    // A target that rustc does not know has no folder.
    Ok(folder.is_ok_and(|folder| PathBuf::from(folder).is_dir()))
}

/// The arguments of cargo.
fn arguments(target: &str) -> Vec<&str> {
    let mut arguments = vec!["build", "--release", "--locked", "--target", target];
    for package in PACKAGES {
        arguments.extend(["--package", package]);
    }
    for program in PROGRAMS {
        arguments.extend(["--bin", program]);
    }
    arguments
}

/// Builds the programs, which tell the commit as theirs. Gives the folder where they are.
pub(super) fn build(target: &str, commit: &str) -> miette::Result<PathBuf> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let status = Command::new("cargo")
        .args(arguments(target))
        .env(
            "RUSTFLAGS",
            format!("{flags} -C target-feature=+crt-static").trim_start(),
        )
        .env("SEATRIAL_COMMIT", commit)
        .current_dir(crate::conformance::workspace())
        .status()
        .into_diagnostic()
        .wrap_err("run cargo")?;
    if !status.success() {
        return Err(miette!("build the programs for {target}: cargo fails"));
    }
    let root = crate::conformance::workspace();
    let target_folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target_folder.join(target).join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_built_for_the_target() {
        let line = arguments("a-b").join(" ");
        assert_eq!(
            line,
            "build --release --locked --target a-b --package fake-apiserver --package seatrial-controller --package kruise-daemon \
             --bin fake-apiserver --bin kruise-manager --bin kruise-daemon"
        );
    }

    #[test]
    fn a_target_that_there_is_not_is_not_installed() {
        assert!(!is_installed("none-such-target").expect("an answer"));
    }
}
