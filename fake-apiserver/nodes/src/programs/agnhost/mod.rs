//! `agnhost`: the program of Kubernetes' tests, by its subcommands.

mod datagrams;
mod files;
mod flags;
mod guestbook;
mod in_cluster;
mod logs;
mod netexec;
mod nettest;
mod servers;
mod webhook;

use bytes::Bytes;
use client_kit::Random;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::watch;

use super::builtins::base_name;
use super::native::{Container, ContainerProgram};
use super::script::short_name;
use super::shell::{Shell, Streams};
use flags::{Flags, Query, duration};

/// The program.
pub(crate) struct Agnhost;

/// The subcommands that run here. All others serve without a port, until they are stopped.
const KNOWN: [&str; 20] = [
    "connect",
    "crd-conversion-webhook",
    "dns-server-list",
    "dns-suffix",
    "entrypoint-tester",
    "etc-hosts",
    "grpc-health-checking",
    "guestbook",
    "inclusterclient",
    "liveness",
    "logs-generator",
    "mounttest",
    "netexec",
    "nettest",
    "pause",
    "porter",
    "serve-hostname",
    "test-service-account-issuer-discovery",
    "test-webserver",
    "webhook",
];

/// Whether an image or a command is this program.
pub(crate) fn is_agnhost(image: &str) -> bool {
    short_name(image) == "agnhost"
}

/// The words of this program in a container of its image: itself, the subcommand, arguments. None if another program runs.
pub(crate) fn words_of(command: &[String], args: &[String]) -> Option<Vec<String>> {
    let mut words = command.to_vec();
    if words.is_empty() {
        words.push("/agnhost".to_owned());
    }
    words.extend(args.iter().cloned());
    if words.len() == 1 {
        words.push("pause".to_owned());
    }
    let own = words.first().is_some_and(|word| is_own_name(word));
    let known = words.get(1).is_some_and(|word| KNOWN.contains(&word.as_str()));
    (own && known).then_some(words)
}

/// Whether the words of a container name a subcommand that asks the API server as the pod's service account.
pub(crate) fn asks_api_server(words: &[String]) -> bool {
    words.iter().any(|word| {
        matches!(
            word.as_str(),
            "inclusterclient" | "test-service-account-issuer-discovery"
        )
    })
}

pub(in super::super) fn is_own_name(word: &str) -> bool {
    matches!(base_name(word), "agnhost" | "agnhost-2")
}

impl ContainerProgram for Agnhost {
    fn run(&self, container: Container) -> BoxFuture<'static, i32> {
        let words = words_of(&container.command, &container.args).unwrap_or_default();
        begin(container, words)
    }
}

/// Runs a subcommand. (Commands can run it, too: the type of its future must not have that of itself in it.)
fn begin(container: Container, words: Vec<String>) -> BoxFuture<'static, i32> {
    run(container, words).boxed()
}

async fn run(mut container: Container, words: Vec<String>) -> i32 {
    let arguments: Vec<String> = words.get(2..).unwrap_or_default().to_vec();
    let flags = Flags::read(&arguments);
    match words.get(1).map(String::as_str).unwrap_or_default() {
        "connect" => servers::connect(&container, &flags).await,
        "entrypoint-tester" => {
            container.print(&format!("[{}]\n", words.join(" ")));
            0
        }
        "grpc-health-checking" => servers::healthy(container, &flags).await,
        "guestbook" => guestbook::run(container, &flags).await,
        "inclusterclient" => in_cluster::poll(&container, &flags).await,
        "liveness" => servers::liveness(container).await,
        "logs-generator" => logs::generate(&mut container, &flags).await,
        "mounttest" => files::mounttest(&container, &flags).await,
        "netexec" => netexec::run(container, &flags).await,
        "nettest" => nettest::run(container, &flags).await,
        "porter" => servers::porter(container, &flags).await,
        "serve-hostname" => servers::serve_hostname(container, &flags).await,
        "test-service-account-issuer-discovery" => in_cluster::check_token(&container, &flags).await,
        "test-webserver" => servers::test_webserver(container, &flags).await,
        "webhook" => webhook::run(container, &flags, false).await,
        "crd-conversion-webhook" => webhook::run(container, &flags, true).await,
        "etc-hosts" => files::print(&container, "/etc/hosts"),
        name @ ("dns-suffix" | "dns-server-list") => files::resolver(&container, name),
        _ => pause(container).await,
    }
}

/// Waits for a signal, and says in its log and in its container's status which one ended it.
async fn pause(mut container: Container) -> i32 {
    container.print("Paused\nSignals registered\n");
    container.asked_to_end().await;
    let last_words = "exiting because of signal \"terminated\"\n";
    let path = container.env.get("TERMINATION_MESSAGE_PATH").cloned();
    let path = path
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "/dev/termination-log".to_owned());
    // As the real one, it ends the same way if that cannot be written.
    let _ = container.write_file(&path, last_words.as_bytes());
    container.print(last_words);
    2
}

/// An answer, with the type that Go finds in its text.
fn answer(status: u16, body: impl Into<Bytes>) -> Response<Bytes> {
    let body: Bytes = body.into();
    let start = body
        .get(..body.len().min(16))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_page = [
        b"<!doctype html".as_slice(),
        b"<html",
        b"<a ",
        b"<a>",
        b"<p>",
        b"<h1",
        b"<div",
        b"<body",
    ]
    .iter()
    .any(|tag| start.starts_with(tag));
    let kind = if is_page {
        "text/html; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer that sends its client elsewhere.
fn redirection(status: u16, location: &str) -> Response<Bytes> {
    let mut response = answer(status, Bytes::new());
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Serves until the container is asked to end.
async fn until_asked(container: &mut Container, serving: impl Future<Output = ()>) -> i32 {
    tokio::select! {
        biased;
        () = container.asked_to_end() => 0,
        () = serving => 1,
    }
}

impl Shell {
    /// Runs this program as a command.
    pub(super) async fn agnhost(&mut self, name: &str, arguments: &[String], streams: &Streams) -> i32 {
        let mut words = vec![name.to_owned()];
        words.extend(arguments.iter().cloned());
        let (_keep, term) = watch::channel(false);
        let container = Container {
            command: Vec::new(),
            args: Vec::new(),
            env: self.env.clone(),
            files: self.files.clone(),
            nic: self.nic(),
            hostname: self.hostname.clone(),
            clock: std::sync::Arc::clone(&self.clock),
            streams: streams.clone(),
            run: self.run.clone(),
            term,
            catches_term: std::sync::Arc::default(),
            random: command_random(),
        };
        begin(container, words).await
    }
}

/// The numbers of a command: only its log lines have some.
fn command_random() -> Random {
    client_kit::Seed(0).fork("agnhost").random()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], &["netexec", "--http-port=80"], Some("/agnhost netexec --http-port=80"))]
    #[case(&["/agnhost", "pause"], &[], Some("/agnhost pause"))]
    #[case(&["/agnhost-2"], &["entrypoint-tester", "a"], Some("/agnhost-2 entrypoint-tester a"))]
    #[case(&["/bin/sh"], &["netexec"], None)]
    #[case(&[], &["audit-proxy"], None)]
    #[case(&[], &[], Some("/agnhost pause"))]
    fn words(#[case] command: &[&str], #[case] args: &[&str], #[case] expected: Option<&str>) {
        let owned = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let found = words_of(&owned(command), &owned(args));
        assert_eq!(found.map(|words| words.join(" ")).as_deref(), expected);
    }
}
