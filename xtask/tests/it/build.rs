//! The crates are built once: every command that CI and readers run builds them with the same features.

use std::path::{Path, PathBuf};

use rstest::rstest;

/// Cargo chooses the features of crates by the packages that are selected. `--package` selects other features than the whole
/// workspace has, so that tokio, and all that stands on it, would be built a second time. `--bin` selects the workspace's.
#[rstest]
fn scripts_select_programs_not_packages(
    #[files("../.cargo/config.toml")]
    #[files("../.ci/*")]
    #[files("../README.md")]
    #[files("../CONTRIBUTING.md")]
    #[files("../docs/src/*.md")]
    #[files("../conformance/*/run")]
    #[files("../conformance/outside/*")]
    #[include_dot_files]
    file: PathBuf,
) {
    let text = std::fs::read_to_string(&file).unwrap();
    let wrong: Vec<&str> = text.lines().filter(|line| builds_a_package(line)).collect();
    assert_eq!(wrong, Vec::<&str>::new(), "{}", shown(&file));
}

/// Whether a line builds or runs programs of packages chosen by name. Tests of one crate are another matter: a contributor asks
/// for them.
fn builds_a_package(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let builds = words.windows(2).any(|pair| {
        pair[0].ends_with("cargo") && ["build", "run"].contains(&pair[1]) || pair == ["=", "\"run"]
    });
    builds && words.iter().any(|word| ["--package", "-p"].contains(word))
}

fn shown(file: &Path) -> String {
    file.components()
        .rev()
        .take(2)
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join(" of ")
}

#[rstest]
#[case::alias(r#"xtask = "run --quiet --package xtask --""#, true)]
#[case::alias_of_a_program(r#"xtask = "run --quiet --bin xtask --""#, false)]
#[case::script("  cargo build --quiet --package seatrial-controller --bins || exit 1", true)]
#[case::short("$ cargo run -p xtask", true)]
#[case::program("$ cargo run --bin kruise-daemon -- --kubeconfig c", false)]
#[case::tests_of_one_crate("cargo test -p xtask", false)]
fn a_package_is_seen(#[case] line: &str, #[case] expect: bool) {
    assert_eq!(builds_a_package(line), expect);
}
