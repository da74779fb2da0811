//! `agnhost`: the program of Kubernetes' tests, by its subcommands.

mod files;
mod guestbook;
mod logs;
mod netexec;
mod servers;

use std::time::Duration;

use bytes::Bytes;
use client_kit::Random;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::sync::watch;

use super::builtins::base_name;
use super::native::{Container, ContainerProgram};
use super::script::short_name;
use super::shell::{Shell, Streams};

/// The program.
pub(crate) struct Agnhost;

/// The subcommands that run here. All others serve without a port, until they are stopped.
const KNOWN: [&str; 14] = [
    "connect",
    "dns-server-list",
    "dns-suffix",
    "entrypoint-tester",
    "etc-hosts",
    "guestbook",
    "liveness",
    "logs-generator",
    "mounttest",
    "netexec",
    "pause",
    "porter",
    "serve-hostname",
    "test-webserver",
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
    let own = words.first().is_some_and(|word| is_own_name(word));
    let known = words.get(1).is_some_and(|word| KNOWN.contains(&word.as_str()));
    (own && known).then_some(words)
}

/// Whether the program of a container only waits: it has no ports.
pub(crate) fn only_waits(command: &[String], args: &[String]) -> bool {
    let own = command.first().is_none_or(|word| is_own_name(word));
    let mut words = command.iter().skip(1).chain(args);
    own && words.next().is_none_or(|word| word == "pause")
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
        "guestbook" => guestbook::run(container, &flags).await,
        "liveness" => servers::liveness(container).await,
        "logs-generator" => logs::generate(&mut container, &flags).await,
        "mounttest" => files::mounttest(&container, &flags).await,
        "netexec" => netexec::run(container, &flags).await,
        "porter" => servers::porter(container, &flags).await,
        "serve-hostname" => servers::serve_hostname(container, &flags).await,
        "test-webserver" => servers::test_webserver(container, &flags).await,
        "etc-hosts" => files::print(&container, "/etc/hosts"),
        name @ ("dns-suffix" | "dns-server-list") => files::resolver(&container, name),
        _ => {
            container.asked_to_end().await;
            0
        }
    }
}

/// The flags of a subcommand: `--name=value`, `--name value`, `-n value`.
struct Flags(Vec<(String, String)>, Vec<String>);

impl Flags {
    fn read(arguments: &[String]) -> Self {
        let (mut flags, mut operands) = (Vec::new(), Vec::new());
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                operands.push(argument.clone());
                continue;
            };
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            match flag.split_once('=') {
                Some((name, value)) => flags.push((name.to_owned(), value.to_owned())),
                None => {
                    let value = rest.next_if(|next| !next.starts_with('-') && !SWITCHES.contains(&flag));
                    flags.push((
                        flag.to_owned(),
                        value.cloned().unwrap_or_else(|| "true".to_owned()),
                    ));
                }
            }
        }
        Self(flags, operands)
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        let found = self
            .0
            .iter()
            .rev()
            .find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_str())
    }

    fn port(&self, name: &str, default: u16) -> u16 {
        self.text(&[name])
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }

    fn flag(&self, name: &str) -> bool {
        self.text(&[name])
            .is_some_and(|value| value != "false" && value != "0")
    }
}

/// Flags that have no value of their own.
const SWITCHES: [&str; 6] = [
    "tcp",
    "udp",
    "http",
    "close",
    "json-response",
    "break_on_expected_content",
];

/// A duration as Go writes them: `1m30s`, `500ms`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    if rest == "0" {
        return Some(total);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at_checked(unit)?;
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" => 0.000_001,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// The parameters of a request's query.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(request: &Request<Bytes>) -> Self {
        let mut pairs = Vec::new();
        let is_form = request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if is_form {
            pairs.extend(form_urlencoded::parse(request.body()).into_owned());
        }
        let query = request.uri().query().unwrap_or_default();
        pairs.extend(form_urlencoded::parse(query.as_bytes()).into_owned());
        Self(pairs)
    }

    fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
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
    #[case("1s", Some(1_000))]
    #[case("1m30s", Some(90_000))]
    #[case("1.5s", Some(1_500))]
    #[case("10ms", Some(10))]
    #[case("0", Some(0))]
    #[case("5", None)]
    #[case("", None)]
    #[case("s", None)]
    fn durations(#[case] text: &str, #[case] expected_ms: Option<u128>) {
        assert_eq!(duration(text).map(|duration| duration.as_millis()), expected_ms);
    }

    #[rstest]
    #[case(&[], &["netexec", "--http-port=80"], Some("/agnhost netexec --http-port=80"))]
    #[case(&["/agnhost", "pause"], &[], Some("/agnhost pause"))]
    #[case(&["/agnhost-2"], &["entrypoint-tester", "a"], Some("/agnhost-2 entrypoint-tester a"))]
    #[case(&["/bin/sh"], &["netexec"], None)]
    #[case(&[], &["webhook"], None)]
    #[case(&[], &[], None)]
    fn words(#[case] command: &[&str], #[case] args: &[&str], #[case] expected: Option<&str>) {
        let owned = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let found = words_of(&owned(command), &owned(args));
        assert_eq!(found.map(|words| words.join(" ")).as_deref(), expected);
    }
}
