//! A cluster of k3s in a container, which testcontainers starts.
//!
//! A program of its own does that (`conformance/testcontainers`), so that only who asks for k3s builds a client of Docker. It takes the
//! container away when its input ends: that is when this process does, whatever ends it.

use std::io::{BufRead as _, BufReader, Read as _};
#[cfg(unix)]
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::failed;
use crate::error::Error;

/// The image of k3s: the Kubernetes version that everything here follows.
const IMAGE: &str = "rancher/k3s:v1.36.1-k3s1";
/// The package of the program, and where it is built.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testcontainers/Cargo.toml");
const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/containers/rust");

/// A cluster that goes when this is dropped, or when this process ends in another way.
pub struct K3sCluster {
    program: Child,
    kubeconfig: PathBuf,
    host: Option<String>,
}

impl K3sCluster {
    /// Builds the program if need be, and has it start a container of this image, or of k3s' own. The kubeconfig is written below `folder`.
    ///
    /// # Errors
    /// If the program cannot be built, or there is no engine, or the container fails.
    pub fn make(image: Option<&str>, folder: &Path) -> Result<Self, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args([
                "build",
                "--locked",
                "--manifest-path",
                PACKAGE,
                "--target-dir",
                TARGET,
            ])
            .args(["--bin", "k3s"])
            .stdin(Stdio::null())
            .status();
        match built {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(failed("k3s", format!("{PACKAGE} cannot be built"))),
            Err(error) => return Err(failed("k3s", format!("cargo cannot be run: {error}"))),
        }
        let program = format!("debug/k3s{}", std::env::consts::EXE_SUFFIX);
        let program = Path::new(TARGET).join(program);
        Self::start(Command::new(program), image, folder)
    }

    /// Starts the program with its arguments, and waits until it says that the cluster is ready.
    fn start(mut program: Command, image: Option<&str>, folder: &Path) -> Result<Self, Error> {
        let kubeconfig = super::kubeconfig(folder);
        // Ctrl-C in a terminal must not end it before it has cleaned up.
        #[cfg(unix)]
        program.process_group(0);
        let program = program
            .args([&super::name(), image.unwrap_or(IMAGE)])
            .arg(&kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed("k3s", format!("its program cannot be run: {error}")))?;
        let mut cluster = Self {
            program,
            kubeconfig,
            host: None,
        };
        cluster.host = cluster.ready()?;
        Ok(cluster)
    }

    /// Waits for the line that says that the cluster is ready. It may have an address.
    fn ready(&mut self) -> Result<Option<String>, Error> {
        let mut line = String::new();
        if let Some(said) = self.program.stdout.take() {
            // What cannot be read says nothing.
            let _read = BufReader::new(said).read_line(&mut line);
        }
        if let Some(host) = line.strip_prefix("ready") {
            return Ok(Some(host.trim().to_owned()).filter(|host| !host.is_empty()));
        }
        let mut why = String::new();
        if let Some(mut said) = self.program.stderr.take() {
            let _read = said.read_to_string(&mut why);
        }
        Err(failed("k3s", why.trim()))
    }

    /// Where the cluster's kubeconfig is.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The address of this machine in the container's network, if the engine tells it.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        self.host.clone()
    }
}

impl Drop for K3sCluster {
    fn drop(&mut self) {
        // Its input ends, so it cleans up. There is nobody to tell if it cannot; what is left is a container named seatrial-.
        drop(self.program.stdin.take());
        let _ended = self.program.wait();
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A program in place of the real one. It notes its arguments below the folder, then what the script says.
    fn start(name: &str, image: Option<&str>, script: &str) -> (PathBuf, Result<K3sCluster, Error>) {
        let folder = std::env::temp_dir().join(format!("seatrial-k3s-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let script = format!("echo \"$2\" >{}/image; {script}", folder.display());
        let mut program = Command::new("sh");
        program.args(["-c", &script, "sh"]);
        let cluster = K3sCluster::start(program, image, &folder);
        (folder, cluster)
    }

    /// The program writes the kubeconfig, and takes it away once its input has ended.
    #[rstest]
    #[case::own_image("own", None, "ready 172.17.0.1", IMAGE, Some("172.17.0.1"))]
    #[case::another_image("other", Some("node:1"), "ready 172.17.0.1", "node:1", Some("172.17.0.1"))]
    #[case::no_address("lonely", None, "ready ", IMAGE, None)]
    fn a_cluster_is_made_used_and_taken_away(
        #[case] name: &str,
        #[case] image: Option<&str>,
        #[case] line: &str,
        #[case] expected: &str,
        #[case] host: Option<&str>,
    ) {
        let script = format!("echo 'apiVersion: v1' >\"$3\"; echo '{line}'; cat >/dev/null; rm \"$3\"");
        let (folder, cluster) = start(name, image, &script);
        let cluster = cluster.expect("a cluster");
        assert_eq!(cluster.host().as_deref(), host);
        let kubeconfig = cluster.kubeconfig().to_owned();
        assert!(kubeconfig.exists());
        let asked = std::fs::read_to_string(folder.join("image")).expect("arguments");
        assert_eq!(asked.trim(), expected);
        drop(cluster);
        assert!(!kubeconfig.exists());
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[rstest]
    #[case::it_says_why(
        "told",
        "echo 'no Docker engine answers' >&2; exit 1",
        "no Docker engine answers"
    )]
    #[case::it_says_nothing("silent", "exit 1", "")]
    fn what_fails_is_told(#[case] name: &str, #[case] script: &str, #[case] why: &str) {
        let (folder, cluster) = start(name, None, script);
        let error = cluster.err().expect("an error").to_string();
        assert_eq!(error, format!("make a cluster with k3s: {why}"));
        std::fs::remove_dir_all(folder).expect("no folder");
    }
}
