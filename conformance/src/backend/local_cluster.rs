//! Clusters that are made for a run, by tools that a machine may have, and taken away after it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::error::Error;

/// How long a cluster may take to answer.
const READY: Duration = Duration::from_secs(120);
/// The image of k3s: the Kubernetes version that everything here follows.
const K3S_IMAGE: &str = "rancher/k3s:v1.36.1-k3s1";
/// Where k3s writes its kubeconfig, in its container.
const K3S_KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";

/// The tool that makes the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The program `kind`, which needs Docker.
    Kind,
    /// k3s, in a container that Docker runs.
    K3s,
}

/// Runs a program and gives its output; a test may answer instead.
pub type Runner<'a> = &'a dyn Fn(&str, &[&str]) -> io::Result<Output>;

/// A cluster that goes when this is dropped.
pub struct MadeCluster<'a> {
    maker: Maker,
    name: String,
    kubeconfig: PathBuf,
    run: Runner<'a>,
}

/// Runs a program on this machine.
///
/// # Errors
/// If it cannot be started.
pub fn run_program(program: &str, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program).args(arguments).output()
}

impl Maker {
    /// The program that makes the cluster.
    fn program(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::K3s => "docker",
        }
    }

    fn failed(self, why: impl Into<String>) -> Error {
        let name = match self {
            Self::Kind => "kind",
            Self::K3s => "k3s",
        };
        Error::Backend {
            what: format!("make a cluster with {name}"),
            why: why.into(),
            help: "start a cluster yourself and use --backend kubeconfig, or use the in-process one (--backend fake)"
                .to_owned(),
        }
    }
}

impl<'a> MadeCluster<'a> {
    /// Makes a cluster and waits until it answers. Its kubeconfig is written below `folder`.
    ///
    /// # Errors
    /// If there is no Docker engine, or the tool is missing or fails; in its own words.
    pub fn make(maker: Maker, folder: &Path, run: Runner<'a>) -> Result<Self, Error> {
        match run("docker", &["info", "--format", "{{.ServerVersion}}"]) {
            Ok(answer) if answer.status.success() => {}
            Ok(_) => return Err(maker.failed("no Docker engine answers")),
            Err(error) => return Err(maker.failed(format!("docker cannot be run: {error}"))),
        }
        let name = format!("seatrial-{}", std::process::id());
        let kubeconfig = folder.join(format!("{name}.kubeconfig"));
        // From here on whatever there is of it goes again, also after a failure.
        let cluster = Self {
            maker,
            name,
            kubeconfig,
            run,
        };
        match maker {
            Maker::Kind => cluster.make_with_kind()?,
            Maker::K3s => cluster.make_with_k3s()?,
        }
        Ok(cluster)
    }

    /// Where the cluster's kubeconfig is.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    fn tool(&self, arguments: &[&str]) -> Result<String, Error> {
        let program = self.maker.program();
        let output = (self.run)(program, arguments)
            .map_err(|error| self.maker.failed(format!("{program} cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(self
            .maker
            .failed(format!("{program} {}: {}", arguments.join(" "), said.trim())))
    }

    fn make_with_kind(&self) -> Result<(), Error> {
        let wait = format!("{}s", READY.as_secs());
        let kubeconfig = self.kubeconfig.to_string_lossy();
        self.tool(&[
            "create",
            "cluster",
            "--name",
            &self.name,
            "--wait",
            &wait,
            "--kubeconfig",
            &kubeconfig,
        ])?;
        Ok(())
    }

    fn make_with_k3s(&self) -> Result<(), Error> {
        self.tool(&[
            "run",
            "--detach",
            "--privileged",
            "--name",
            &self.name,
            "--publish",
            "127.0.0.1::6443",
            K3S_IMAGE,
            "server",
            "--disable=traefik,metrics-server",
        ])?;
        let address = self.tool(&["port", &self.name, "6443/tcp"])?;
        let address = address.lines().next().unwrap_or_default().trim().to_owned();
        // The container waits for its own file, so that nothing here has to.
        let wait = format!("until [ -s {K3S_KUBECONFIG} ]; do sleep 1; done; cat {K3S_KUBECONFIG}");
        let seconds = READY.as_secs().to_string();
        let text = self.tool(&["exec", &self.name, "timeout", &seconds, "sh", "-c", &wait])?;
        std::fs::write(&self.kubeconfig, text.replace("127.0.0.1:6443", &address)).map_err(|source| {
            Error::Write {
                path: self.kubeconfig.clone(),
                source,
            }
        })
    }
}

impl Drop for MadeCluster<'_> {
    fn drop(&mut self) {
        let arguments = match self.maker {
            Maker::Kind => ["delete", "cluster", "--name", &self.name],
            Maker::K3s => ["rm", "--force", "--volumes", &self.name],
        };
        // There is nobody to tell; what is left is a container whose name begins with seatrial-.
        let _ended = (self.run)(self.maker.program(), &arguments);
        let _removed = std::fs::remove_file(&self.kubeconfig);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use rstest::rstest;

    use super::*;

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output {
            // The code is in the second byte of what wait(2) gives.
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("seatrial-made-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[rstest]
    #[case(Maker::Kind, &["docker info", "kind create cluster", "kind delete cluster"])]
    #[case(Maker::K3s, &["docker info", "docker run --detach", "docker port", "docker exec", "docker rm --force"])]
    fn a_cluster_is_made_used_and_taken_away(#[case] maker: Maker, #[case] expected: &[&str]) {
        let folder = folder(&format!("made-{maker:?}"));
        let asked = RefCell::new(Vec::new());
        let run = |program: &str, arguments: &[&str]| {
            asked
                .borrow_mut()
                .push(format!("{program} {}", arguments.join(" ")));
            Ok(match arguments.first() {
                Some(&"port") => output(0, "127.0.0.1:49321\n", ""),
                Some(&"exec") => output(0, "server: https://127.0.0.1:6443\n", ""),
                _ => output(0, "", ""),
            })
        };
        let cluster = MadeCluster::make(maker, &folder, &run).expect("a cluster");
        if maker == Maker::K3s {
            let text = std::fs::read_to_string(cluster.kubeconfig()).expect("a kubeconfig");
            assert_eq!(text, "server: https://127.0.0.1:49321\n");
        }
        let kubeconfig = cluster.kubeconfig().to_owned();
        drop(cluster);
        assert!(!kubeconfig.exists());
        let asked = asked.into_inner();
        assert_eq!(asked.len(), expected.len(), "{asked:#?}");
        for (asked, expected) in std::iter::zip(&asked, expected) {
            assert!(asked.starts_with(expected), "{asked}");
        }
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[rstest]
    #[case("docker", "docker cannot be run: not found")]
    #[case("info", "no Docker engine answers")]
    #[case(
        "create",
        "kind create cluster --name NAME --wait 120s --kubeconfig FILE: no such image"
    )]
    fn what_fails_is_told_and_leaves_nothing(#[case] failing: &str, #[case] expected: &str) {
        let folder = folder(&format!("failing-{failing}"));
        let deleted = RefCell::new(false);
        let run = |program: &str, arguments: &[&str]| {
            let first = arguments.first().copied().unwrap_or_default();
            *deleted.borrow_mut() |= first == "delete";
            if program == failing {
                return Err(io::Error::other("not found"));
            }
            Ok(output(i32::from(first == failing), "", "no such image\n"))
        };
        let error = MadeCluster::make(Maker::Kind, &folder, &run)
            .err()
            .expect("an error")
            .to_string();
        let kubeconfig = folder.join(format!("seatrial-{}.kubeconfig", std::process::id()));
        let error = error
            .replace(&kubeconfig.to_string_lossy().into_owned(), "FILE")
            .replace(&format!("seatrial-{}", std::process::id()), "NAME");
        assert_eq!(error, format!("make a cluster with kind: {expected}"));
        assert_eq!(*deleted.borrow(), failing == "create");
        std::fs::remove_dir_all(folder).expect("no folder");
    }
}
