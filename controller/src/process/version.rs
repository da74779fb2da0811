//! The version of the programs, and of the systems that they stand for.

/// The version of OpenKruise whose behaviour the manager and the daemon have.
pub const OPENKRUISE: &str = "1.9.0";
/// The version of Kubernetes whose objects they read and write.
pub const KUBERNETES: &str = "1.36";

/// The commit that a program is built from, if the build says it (`SEATRIAL_COMMIT`, as `cargo xtask dist` does).
const COMMIT: Option<&str> = option_env!("SEATRIAL_COMMIT");

/// The line that `--version` prints.
///
/// ```
/// let line = controller::process::version::line("kruise-manager");
/// assert!(line.starts_with("kruise-manager 0.") && line.ends_with("OpenKruise 1.9.0, Kubernetes 1.36)"));
/// ```
#[must_use]
pub fn line(program: &str) -> String {
    let commit = COMMIT.unwrap_or("unknown");
    let version = env!("CARGO_PKG_VERSION");
    format!("{program} {version} (commit {commit}, OpenKruise {OPENKRUISE}, Kubernetes {KUBERNETES})")
}
