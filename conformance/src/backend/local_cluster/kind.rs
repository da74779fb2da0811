//! A cluster that the program `kind` makes.

use std::io;
#[cfg(unix)]
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::failed;
use crate::error::Error;

/// How long a cluster may take to answer.
const READY: Duration = Duration::from_secs(120);

/// Takes a cluster away, and its kubeconfig, the first argument: more than once, since the engine may still be about to make a container
/// for a tool that has been ended.
const REMOVAL: &str =
    "file=$1; shift; for seconds in 0 1 3 10; do sleep $seconds; \"$@\"; rm -f \"$file\"; done";

/// Runs a program and gives its output; a test may answer instead.
pub type Runner<'a> = &'a dyn Fn(&str, &[&str]) -> io::Result<Output>;

/// A cluster of kind that goes when this is dropped, or when this process ends in another way.
pub struct KindCluster<'a> {
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

/// The arguments that take a cluster away.
fn removal(name: &str) -> [&str; 4] {
    ["delete", "cluster", "--name", name]
}

impl<'a> KindCluster<'a> {
    /// Makes a cluster with a node of this image, or of kind's own, and waits until it answers. Its kubeconfig is written below `folder`.
    ///
    /// # Errors
    /// If there is no Docker engine, or kind is missing or fails; in its own words.
    pub fn make(image: Option<&str>, folder: &Path, run: Runner<'a>) -> Result<Self, Error> {
        match run("docker", &["info", "--format", "{{.ServerVersion}}"]) {
            Ok(answer) if answer.status.success() => {}
            Ok(_) => return Err(failed("kind", "no Docker engine answers")),
            Err(error) => return Err(failed("kind", format!("docker cannot be run: {error}"))),
        }
        let name = super::name();
        let kubeconfig = super::kubeconfig(folder);
        let shown = kubeconfig.to_string_lossy().into_owned();
        let mut arguments = vec![shown.as_str(), "kind"];
        arguments.extend(removal(&name));
        // From here on whatever there is of it goes again, also after a failure.
        let cluster = Self {
            watcher: Watcher::start(REMOVAL, &arguments),
            name,
            kubeconfig,
            run,
        };
        let wait = format!("{}s", READY.as_secs());
        let mut arguments = vec!["create", "cluster", "--name", &cluster.name, "--wait", &wait];
        arguments.extend(["--kubeconfig", &shown]);
        if let Some(image) = image {
            arguments.extend(["--image", image]);
        }
        cluster.kind(&arguments)?;
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
        let container = format!("{}-control-plane", self.name);
        let format = "{{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}";
        let output = (self.run)("docker", &["inspect", "--format", format, &container]).ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let address = text.split_whitespace().next()?;
        output.status.success().then(|| address.to_owned())
    }

    fn kind(&self, arguments: &[&str]) -> Result<(), Error> {
        let output = (self.run)("kind", arguments)
            .map_err(|error| failed("kind", format!("kind cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let why = format!("kind {}: {}", arguments.join(" "), said.trim());
        Err(failed("kind", why))
    }
}

impl Drop for KindCluster<'_> {
    fn drop(&mut self) {
        // There is nobody to tell; what is left is a container whose name begins with seatrial-.
        let _ended = (self.run)("kind", &removal(&self.name));
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
        let folder = std::env::temp_dir().join(format!("seatrial-kind-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[rstest]
    #[case(None, "--kubeconfig")]
    #[case(Some("node:1"), "--image node:1")]
    fn a_cluster_is_made_used_and_taken_away(#[case] image: Option<&str>, #[case] wanted: &str) {
        let folder = folder(&format!("made-{}", image.is_some()));
        let asked = RefCell::new(Vec::new());
        let run = |program: &str, arguments: &[&str]| {
            asked
                .borrow_mut()
                .push(format!("{program} {}", arguments.join(" ")));
            Ok(output(0, "", ""))
        };
        let cluster = KindCluster::make(image, &folder, &run).expect("a cluster");
        let kubeconfig = cluster.kubeconfig().to_owned();
        drop(cluster);
        assert!(!kubeconfig.exists());
        let asked = asked.into_inner();
        let expected = ["docker info", "kind create cluster", "kind delete cluster"];
        assert_eq!(asked.len(), expected.len(), "{asked:#?}");
        for (asked, expected) in std::iter::zip(&asked, expected) {
            assert!(asked.starts_with(expected), "{asked}");
        }
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
        let error = KindCluster::make(None, &folder, &run)
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
    #[case(0, "172.18.0.1 \n", Some("172.18.0.1"))]
    #[case(0, "172.17.0.1 172.19.0.1 \n", Some("172.17.0.1"))]
    #[case(0, " \n", None)]
    #[case(1, "172.17.0.1 \n", None)]
    fn hosts(#[case] code: i32, #[case] told: &str, #[case] expected: Option<&str>) {
        let folder = folder(&format!("host-{code}-{}", told.len()));
        let run = |_: &str, arguments: &[&str]| {
            Ok(match arguments.first() {
                Some(&"inspect") => output(code, told, ""),
                _ => output(0, "", ""),
            })
        };
        let cluster = KindCluster::make(None, &folder, &run).expect("a cluster");
        assert_eq!(cluster.host().as_deref(), expected);
        drop(cluster);
        std::fs::remove_dir_all(folder).expect("no folder");
    }
}
