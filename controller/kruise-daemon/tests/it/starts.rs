//! Starts that end: the exit code, the reason, and the remedy.

use std::path::PathBuf;
use std::process::Command;

use cri::messages::{ImageFsInfoRequest, ImageFsInfoResponse, ListImagesRequest, ListImagesResponse};
use cri::messages::{VersionRequest, VersionResponse};
use cri::{Service, serve};
use rstest::rstest;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;

/// A folder with the socket of a runtime, `cri.sock`, and a file that is no socket, `file`.
struct Folder {
    path: PathBuf,
    _runtime: Runtime,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kruise-daemon-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("file"), "").expect("a file");
        let runtime = Runtime::new().expect("a runtime");
        let service = Service::default()
            .on(|_: ImageFsInfoRequest| async { Ok(ImageFsInfoResponse::default()) })
            .on(|_: ListImagesRequest| async { Ok(ListImagesResponse::default()) })
            .on(|_: VersionRequest| async { Ok(VersionResponse::default()) });
        let _context = runtime.enter();
        let listener = UnixListener::bind(path.join("cri.sock")).expect("a socket");
        runtime.spawn(serve(listener, service));
        Self {
            path,
            _runtime: runtime,
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.path);
    }
}

/// The exit code and the words on standard error.
fn start(folder: &Folder, line: &str, node: Option<&str>) -> (Option<i32>, String) {
    let line = line.replace("DIR", &folder.path.display().to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_kruise-daemon"));
    command
        .args(line.split_whitespace())
        .env_clear()
        .env("NO_COLOR", "1");
    if let Some(node) = node {
        command.env("NODE_NAME", node);
    }
    let output = command.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // The report is wrapped to the width of the terminal, with a bar before each line.
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "│").collect();
    (output.status.code(), words.join(" "))
}

#[rstest]
#[case::flag(
    "--nonesuch",
    Some("n"),
    2,
    "unknown flag: --nonesuch; there are --addr,",
    "kruise-daemon --help lists the flags"
)]
#[case::gate(
    "--feature-gates=Nonesuch=true",
    Some("n"),
    2,
    "Nonesuch",
    "kruise-daemon --help lists the flags"
)]
#[case::node(
    "--socket-file=DIR/cri.sock",
    None,
    1,
    "NODE_NAME is not set",
    "fieldPath: spec.nodeName"
)]
#[case::empty_node(
    "--socket-file=DIR/cri.sock",
    Some(""),
    1,
    "NODE_NAME is not set",
    "fieldPath: spec.nodeName"
)]
#[case::no_sockets(
    "",
    Some("n"),
    1,
    "cri-dockerd/cri-dockerd.sock below /hostvarrun",
    "name the socket: --socket-file="
)]
#[case::no_socket(
    "--socket-file=/nonesuch.sock",
    Some("n"),
    1,
    "there is no socket /nonesuch.sock",
    "name the socket: --socket-file="
)]
#[case::no_answer(
    "--socket-file=DIR/file",
    Some("n"),
    1,
    "Connection refused",
    "has to serve CRI v1"
)]
#[case::no_cluster(
    "--socket-file=DIR/cri.sock --kubeconfig=/nonesuch",
    Some("n"),
    1,
    "/nonesuch",
    "--kubeconfig=FILE"
)]
#[case::no_address(
    "--socket-file=DIR/cri.sock --kubeconfig=DIR/config --addr=nonesuch",
    Some("n"),
    1,
    "listen at nonesuch",
    "give --addr another port"
)]
fn ends(
    #[case] line: &str,
    #[case] node: Option<&str>,
    #[case] code: i32,
    #[case] reason: &str,
    #[case] help: &str,
) {
    let name = format!("{}-{}", line.len(), node.map_or(9, str::len));
    let folder = Folder::new(&name);
    let config = r#"{"apiVersion":"v1","kind":"Config","current-context":"a",
        "clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:9"}}],"users":[{"name":"a","user":{}}],
        "contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}]}"#;
    std::fs::write(folder.path.join("config"), config).expect("a kubeconfig");
    let (found, words) = start(&folder, line, node);
    assert_eq!(found, Some(code), "{words}");
    assert!(words.contains(reason), "{words}");
    assert!(words.contains(help), "{words}");
}

#[test]
fn help_lists_the_flags() {
    let program = Command::new(env!("CARGO_BIN_EXE_kruise-daemon"))
        .arg("--help")
        .output();
    let output = program.expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    for (name, ..) in kruise_daemon::table() {
        assert!(text.contains(&format!("  --{name}")), "{name}");
    }
}
