//! `cargo xtask dist`: the files of a release, in one folder.
//!
//! `programs` builds the static programs, `archive` packs them and the chart, `bom` lists their parts, `changelog` sorts the
//! subjects of commits by area, `checksums` comes last. The same commit gives the same archives: times are the commit's.

mod archive;
mod bom;
mod changelog;
mod checksums;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use miette::{IntoDiagnostic as _, WrapErr as _, miette};

use archive::Archive;

/// Make what a release has: programs, chart, bill of materials, changelog, checksums.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to write it. What is there of an earlier run is replaced.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// The targets to build for, besides those that the toolchain lacks.
    #[arg(long, default_values = programs::TARGETS)]
    target: Vec<String>,
    /// A folder with programs that are built already, instead of building them for the first target.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// The revision that the changelog begins after; the beginning, unless said.
    #[arg(long)]
    since: Option<String>,
}

/// The commit that a release is made from.
struct Commit {
    id: String,
    /// Seconds since 1970.
    time: u64,
}

/// The output of `program`, without the last line's end.
fn output(program: &str, arguments: &[&str]) -> miette::Result<String> {
    let what = || format!("run {program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(crate::conformance::workspace())
        .output()
        .into_diagnostic()
        .wrap_err_with(what)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(miette!("{said}")).wrap_err_with(what);
    }
    let text = String::from_utf8(output.stdout).into_diagnostic()?;
    Ok(text.trim_end().to_owned())
}

impl Commit {
    fn read() -> miette::Result<Self> {
        let time = output("git", &["log", "-1", "--format=%ct"])?;
        Ok(Self {
            id: output("git", &["rev-parse", "HEAD"])?,
            time: time.parse().into_diagnostic()?,
        })
    }
}

fn write(path: &Path, content: &[u8]) -> miette::Result<()> {
    println!("{}", path.display());
    std::fs::write(path, content)
        .into_diagnostic()
        .wrap_err_with(|| format!("write {}", path.display()))
}

/// Makes a release.
pub(crate) fn run(arguments: &Arguments) -> miette::Result<ExitCode> {
    let root = crate::conformance::workspace();
    let out = root.join(&arguments.out);
    let version = env!("CARGO_PKG_VERSION");
    let commit = Commit::read()?;
    if out.exists() {
        std::fs::remove_dir_all(&out).into_diagnostic()?;
    }
    std::fs::create_dir_all(&out).into_diagnostic()?;

    for target in &arguments.target {
        let folder = match &arguments.binaries {
            Some(folder) => root.join(folder),
            None if programs::is_installed(target)? => programs::build(target, &commit.id)?,
            None => {
                println!(
                    "skipped: {target}: the toolchain lacks it (rustup target add {target}, and a linker for it)"
                );
                continue;
            }
        };
        let mut archive = Archive::new(commit.time);
        let name = format!("seatrial-{version}-{target}");
        for program in programs::PROGRAMS {
            archive.add(&format!("{name}/{program}"), &folder.join(program), true)?;
        }
        archive.add(&format!("{name}/LICENSE"), &root.join("LICENSE"), false)?;
        write(&out.join(format!("{name}.tar.gz")), &archive.finish()?)?;
        if arguments.binaries.is_some() {
            break;
        }
    }
    let mut archive = Archive::new(commit.time);
    archive.add_folder("kruise", &root.join(crate::chart::CHART))?;
    write(&out.join(format!("kruise-{version}.tgz")), &archive.finish()?)?;

    let mut metadata = vec!["metadata", "--format-version", "1", "--locked"];
    // Other systems need other packages.
    metadata.extend(
        arguments
            .target
            .iter()
            .flat_map(|target| ["--filter-platform", target]),
    );
    let metadata = output("cargo", &metadata)?;
    let metadata = serde_json::from_str(&metadata).into_diagnostic()?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).into_diagnostic()?;
    let bom = bom::cyclonedx(&metadata, &lock, version);
    write(
        &out.join(format!("seatrial-{version}.cdx.json")),
        format!("{bom:#}\n").as_bytes(),
    )?;

    let range = arguments
        .since
        .as_ref()
        .map_or_else(|| "HEAD".to_owned(), |since| format!("{since}..HEAD"));
    let subjects = output("git", &["log", "--no-merges", "--format=%h %s", &range])?;
    write(
        &out.join("CHANGELOG.md"),
        changelog::by_area(version, &subjects).as_bytes(),
    )?;
    write(&out.join("SHA256SUMS"), checksums::of_folder(&out)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
