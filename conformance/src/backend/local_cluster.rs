//! Clusters that are made for a run, by tools that a machine may have, and taken away after it.

use std::io;
#[cfg(unix)]
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::error::Error;

/// How long a cluster may take to answer.
const READY: Duration = Duration::from_secs(120);
/// The image of k3s: the Kubernetes version that everything here follows.
const K3S_IMAGE: &str = "rancher/k3s:v1.36.1-k3s1";
/// Where k3s writes its kubeconfig, in its container.
const K3S_KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";

/// Takes a cluster away, and its kubeconfig, the first argument: more than once, since the engine may still be about to make a container
/// for a tool that has been ended.
const REMOVAL: &str =
    "file=$1; shift; for seconds in 0 1 3 10; do sleep $seconds; \"$@\"; rm -f \"$file\"; done";

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

/// A cluster that goes when this is dropped, or when this process ends in another way.
pub struct MadeCluster<'a> {
    maker: Maker,
    /// The image of its node, in place of the tool's own.
    image: Option<String>,
    name: String,
    /// Takes it away if this process cannot.
    watcher: Option<Watcher>,
    kubeconfig: PathBuf,
    run: Runner<'a>,
}

/// Runs a program on this machine. It is asked to end if this process ends before it does.
///
/// # Errors
/// If it cannot be started.
pub fn run_program(program: &str, arguments: &[&str]) -> io::Result<Output> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let id = child.id().to_string();
    let _watcher = Watcher::start("kill \"$1\"", &[&id]);
    child.wait_with_output()
}

/// A shell that runs a script as soon as this process has ended, whatever ends it: until then the shell's input is open. Ctrl-C in a
/// terminal does not reach it. Once this is dropped the script is not run.
struct Watcher(Child);

impl Watcher {
    /// Where there is no shell, nothing is done after this process.
    fn start(script: &str, arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new("sh");
        #[cfg(unix)]
        command.process_group(0);
        let child = command
            .args(["-c", &format!("cat >/dev/null; {script}"), "sh"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(Self)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

impl Maker {
    /// The program that makes the cluster.
    fn program(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::K3s => "docker",
        }
    }

    /// The arguments that take a cluster away.
    fn removal(self, name: &str) -> [&str; 4] {
        match self {
            Self::Kind => ["delete", "cluster", "--name", name],
            Self::K3s => ["rm", "--force", "--volumes", name],
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
    /// Makes a cluster with a node of this image, or of the tool's own, and waits until it answers. Its kubeconfig is written below
    /// `folder`.
    ///
    /// # Errors
    /// If there is no Docker engine, or the tool is missing or fails; in its own words.
    pub fn make(maker: Maker, image: Option<&str>, folder: &Path, run: Runner<'a>) -> Result<Self, Error> {
        match run("docker", &["info", "--format", "{{.ServerVersion}}"]) {
            Ok(answer) if answer.status.success() => {}
            Ok(_) => return Err(maker.failed("no Docker engine answers")),
            Err(error) => return Err(maker.failed(format!("docker cannot be run: {error}"))),
        }
        let name = format!("seatrial-{}", std::process::id());
        let kubeconfig = folder.join(format!("{name}.kubeconfig"));
        let shown = kubeconfig.to_string_lossy().into_owned();
        let mut removal = vec![shown.as_str(), maker.program()];
        removal.extend(maker.removal(&name));
        // From here on whatever there is of it goes again, also after a failure.
        let cluster = Self {
            maker,
            image: image.map(str::to_owned),
            watcher: Watcher::start(REMOVAL, &removal),
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

    /// The address of this machine in the network of the cluster's container, if the engine tells it.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let container = match self.maker {
            Maker::Kind => format!("{}-control-plane", self.name),
            Maker::K3s => self.name.clone(),
        };
        let format = "{{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}";
        let output = (self.run)("docker", &["inspect", "--format", format, &container]).ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let address = text.split_whitespace().next()?;
        output.status.success().then(|| address.to_owned())
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
        let mut arguments = vec!["create", "cluster", "--name", &self.name, "--wait", &wait];
        arguments.extend(["--kubeconfig", &kubeconfig]);
        if let Some(image) = &self.image {
            arguments.extend(["--image", image]);
        }
        self.tool(&arguments)?;
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
            self.image.as_deref().unwrap_or(K3S_IMAGE),
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
        // There is nobody to tell; what is left is a container whose name begins with seatrial-.
        let _ended = (self.run)(self.maker.program(), &self.maker.removal(&self.name));
        drop(self.watcher.take());
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
    #[case(Maker::Kind, None, &["docker info", "kind create cluster", "kind delete cluster"])]
    #[case(Maker::Kind, Some("node:1"), &["docker info", "kind create cluster", "kind delete cluster"])]
    #[case(Maker::K3s, None, &["docker info", "docker run --detach", "docker port", "docker exec", "docker rm --force"])]
    #[case(Maker::K3s, Some("node:1"), &["docker info", "docker run --detach", "docker port", "docker exec", "docker rm --force"])]
    fn a_cluster_is_made_used_and_taken_away(
        #[case] maker: Maker,
        #[case] image: Option<&str>,
        #[case] expected: &[&str],
    ) {
        let folder = folder(&format!("made-{maker:?}-{}", image.is_some()));
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
        let cluster = MadeCluster::make(maker, image, &folder, &run).expect("a cluster");
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
        let wanted = match (maker, image) {
            (Maker::Kind, None) => "--kubeconfig",
            (Maker::Kind, Some(_)) => "--image node:1",
            (Maker::K3s, None) => "rancher/k3s:",
            (Maker::K3s, Some(_)) => "--publish 127.0.0.1::6443 node:1 server",
        };
        assert!(asked[1].contains(wanted), "{}", asked[1]);
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
        let error = MadeCluster::make(Maker::Kind, None, &folder, &run)
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

    /// What a run leaves behind when it is killed goes all the same.
    #[rstest]
    #[case::removal(REMOVAL, "gone")]
    #[case::of_anything("rm \"$1\"", "gone")]
    fn a_script_runs_after_this_process(#[case] script: &str, #[case] name: &str) {
        let script = script.replace("0 1 3 10", "0 0.1");
        let folder = folder(&format!("after-{}", script.len()));
        let file = folder.join(name);
        std::fs::write(&file, "").expect("a file");
        let mut watcher = Watcher::start(&script, &[&file.to_string_lossy(), "true"]).expect("a shell");
        assert!(watcher.0.try_wait().expect("to look").is_none());
        // So its input ends, as it does when the process does.
        drop(watcher.0.stdin.take());
        assert!(watcher.0.wait().expect("an end").success());
        assert!(!file.exists());
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[test]
    fn a_script_does_not_run_once_its_watcher_is_dropped() {
        let folder = folder("dropped");
        let file = folder.join("kept");
        std::fs::write(&file, "").expect("a file");
        drop(Watcher::start("rm \"$1\"", &[&file.to_string_lossy()]).expect("a shell"));
        assert!(file.exists());
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[test]
    fn a_program_that_is_run_gives_its_output() {
        let output = run_program("sh", &["-c", "echo one; echo two >&2; exit 3"]).expect("a shell");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"one\n"[..], &b"two\n"[..])
        );
        assert!(run_program("no-such-program-anywhere", &[]).is_err());
    }

    #[rstest]
    #[case(Maker::Kind, 0, "172.18.0.1 \n", Some("172.18.0.1"))]
    #[case(Maker::K3s, 0, "172.17.0.1 172.19.0.1 \n", Some("172.17.0.1"))]
    #[case(Maker::K3s, 0, " \n", None)]
    #[case(Maker::K3s, 1, "172.17.0.1 \n", None)]
    fn hosts(#[case] maker: Maker, #[case] code: i32, #[case] told: &str, #[case] expected: Option<&str>) {
        let folder = folder(&format!("host-{maker:?}-{code}-{}", told.len()));
        let run = |_: &str, arguments: &[&str]| {
            Ok(match arguments.first() {
                Some(&"inspect") => output(code, told, ""),
                _ => output(0, "127.0.0.1:49321\n", ""),
            })
        };
        let cluster = MadeCluster::make(maker, None, &folder, &run).expect("a cluster");
        assert_eq!(cluster.host().as_deref(), expected);
        drop(cluster);
        std::fs::remove_dir_all(folder).expect("no folder");
    }
}
