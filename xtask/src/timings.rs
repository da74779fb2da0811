//! `cargo xtask timings`: the build time of a checkout, and the time until a change has its tests' result.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use conformance::report::stopwatch::Stopwatch;
use miette::{IntoDiagnostic as _, WrapErr as _, miette};

/// Measures builds.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Measures the README's two commands of this commit as well, for the ratio.
    #[arg(long, value_name = "COMMIT")]
    against: Option<String>,
    /// Leaves out the release build, whose binaries are weighed.
    #[arg(long)]
    no_release: bool,
}

/// How often a second the kernel counts processor time, as Linux tells it to programs.
const TICKS: u64 = 100;

/// A change of a rule: the file, and the command that plays the tests of it.
const CHANGES: [(&str, &str, &[&str]); 2] = [
    (
        "a CloneSet rule to its tests' result",
        "controller/src/workloads/cloneset/diff.rs",
        &[
            "test",
            "--package",
            "seatrial-controller",
            "--lib",
            "cloneset::diff",
        ],
    ),
    (
        "a validation rule to its tests' result",
        "fake-apiserver/rules/src/validation/flow_control.rs",
        &[
            "test",
            "--package",
            "seatrial-rules",
            "--lib",
            "validation::flow_control",
        ],
    ),
];

/// The wall and processor time of a command.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    processor: Duration,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            processor: self.processor + other.processor,
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (wall, processor) = (self.wall.as_secs_f64(), self.processor.as_secs_f64());
        write!(f, "{wall:7.1} s, {:6.1} min of processor time", processor / 60.0)
    }
}

/// The processor time of the children that have ended; zero where the system does not tell it as Linux does.
fn of_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in brackets, may hold spaces. After it come the fields from the third on.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Runs cargo in a checkout, with a target folder of its own.
fn cargo(checkout: &Path, target: &Path, arguments: &[&str]) -> miette::Result<Cost> {
    let (stopwatch, before) = (Stopwatch::start(), of_children());
    let status = Command::new("cargo")
        .args(arguments)
        .current_dir(checkout)
        .env("CARGO_TARGET_DIR", target)
        .stdout(Stdio::null())
        .status()
        .into_diagnostic()
        .wrap_err("run cargo")?;
    let cost = Cost {
        wall: stopwatch.elapsed(),
        processor: of_children().saturating_sub(before),
    };
    if !status.success() {
        return Err(miette!(
            "failed to run cargo {} in {}",
            arguments.join(" "),
            checkout.display()
        ));
    }
    Ok(cost)
}

/// The README's two commands on an empty target folder, without running scenarios or tests.
fn two_commands(checkout: &Path, target: &Path) -> miette::Result<(Cost, Cost)> {
    if target.exists() {
        fs::remove_dir_all(target).into_diagnostic()?;
    }
    let first = cargo(checkout, target, &["xtask", "conformance", "--list"])?;
    let second = cargo(checkout, target, &["test", "--workspace", "--no-run"])?;
    println!("  cargo xtask conformance    {first}");
    println!("  cargo test --workspace     {second}");
    println!("  both                       {}", first + second);
    Ok((first, second))
}

/// A file that is longer by a line while this lives.
struct Changed {
    path: PathBuf,
    text: String,
}

impl Changed {
    fn new(path: PathBuf) -> miette::Result<Self> {
        let text = fs::read_to_string(&path)
            .into_diagnostic()
            .wrap_err_with(|| format!("read {}", path.display()))?;
        fs::write(&path, format!("{text}\n// A change that is measured.\n")).into_diagnostic()?;
        Ok(Self { path, text })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // Nothing better can be done than to say it: the file is under version control.
        if let Err(error) = fs::write(&self.path, &self.text) {
            eprintln!("failed to restore {}: {error}", self.path.display());
        }
    }
}

fn git(root: &Path, arguments: &[&OsStr]) -> miette::Result<()> {
    let status = Command::new("git").args(arguments).current_dir(root).status();
    let status = status.into_diagnostic().wrap_err("run git")?;
    match status.success() {
        true => Ok(()),
        false => Err(miette!("failed to run git {arguments:?}")),
    }
}

pub(crate) fn run(arguments: &Arguments) -> miette::Result<ExitCode> {
    let root = crate::conformance::workspace();
    let folder = root.join("target/timings");
    let target = folder.join("target");
    println!("this checkout, nothing compiled:");
    let (first, second) = two_commands(&root, &target)?;
    if let Some(commit) = &arguments.against {
        let checkout = folder.join("checkout");
        if !checkout.exists() {
            let add = ["worktree", "add", "--detach"].map(OsStr::new);
            git(
                &root,
                &[add[0], add[1], add[2], checkout.as_os_str(), OsStr::new(commit)],
            )?;
        }
        println!("{commit}, nothing compiled:");
        let measured = two_commands(&checkout, &folder.join("target-against"));
        git(
            &root,
            &[
                OsStr::new("worktree"),
                OsStr::new("remove"),
                OsStr::new("--force"),
                checkout.as_os_str(),
            ],
        )?;
        let (before, then) = measured?;
        let ratio =
            |new: Cost, old: Cost| new.processor.as_secs_f64() / old.processor.as_secs_f64().max(0.01);
        println!(
            "ratio of processor time: first command {:.2}, both {:.2}",
            ratio(first, before),
            ratio(first + second, before + then)
        );
    }
    println!("a change:");
    for (what, file, command) in CHANGES {
        cargo(&root, &target, command)?;
        let changed = Changed::new(root.join(file))?;
        let cost = cargo(&root, &target, command);
        drop(changed);
        println!("  {what:<40} {}", cost?);
    }
    if !arguments.no_release {
        println!("release binaries:");
        cargo(&root, &target, &["build", "--release", "--workspace", "--bins"])?;
        for name in ["fake-apiserver", "kruise-manager", "kruise-daemon"] {
            let path = target.join("release").join(name);
            let size = fs::metadata(&path)
                .into_diagnostic()
                .wrap_err_with(|| format!("read {}", path.display()))?;
            println!("  {name:<40} {:7.1} MB", size.len() as f64 / 1e6);
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_of_a_file_of_the_package_whose_tests_are_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (what, file, command) in CHANGES {
            let path = root.join(file);
            assert!(path.is_file(), "{what}: {file}");
            let folder = path
                .ancestors()
                .find(|folder| folder.join("Cargo.toml").is_file());
            let manifest =
                fs::read_to_string(folder.expect("a crate").join("Cargo.toml")).expect("a manifest");
            let package = command[2];
            assert!(
                manifest.contains(&format!("\nname = \"{package}\"\n")),
                "{what}: {package}"
            );
        }
    }
}
