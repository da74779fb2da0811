//! Rows: commands in containers, their ports, and their end.

use client_kit::{SharedClock, TokioClock};
use futures::StreamExt as _;
use rstest::rstest;
use shared_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use network::Variables;

use crate::nic::Nic;
use crate::programs::{Files, Launch, Process, Ran, launch};

const ADDRESS: &str = "10.0.0.1";
const ID: &str = "containerd://c";

/// A container `c` of the pod `n/p`, with its ends. Without a command it serves.
struct Bed {
    containers: Containers,
    process: Process,
    ends: mpsc::UnboundedReceiver<((String, u32), Exit)>,
}

fn bed(command: &[&str], spec: Value) -> Bed {
    let (exits, ends) = mpsc::unbounded();
    let clock: SharedClock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
    let argv: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let process = launch(
        Launch {
            outside: None,
            run: 0,
            program: None,
            argv: (!argv.is_empty()).then_some(argv),
            image_program: None,
            native: None,
            env: BTreeMap::from([("CFG".to_owned(), "one".to_owned())]),
            hostname: "p".to_owned(),
            nic: Nic::default(),
            links: Variables::default(),
            own_ports: None,
            clock,
            files: Files::with_mounts(Vec::new()),
            stdin: false,
            tty: false,
            stdin_once: false,
            stop: Duration::from_millis(100),
        },
        ("c".to_owned(), 0),
        exits.clone(),
    );
    let containers = Containers::default();
    let info = ContainerInfo {
        name: "c".to_owned(),
        id: ID.to_owned(),
        image: "app:1".to_owned(),
        restarts: 0,
        env: process.run.env.clone(),
        pre_stop: Value::Null,
        started: Timestamp::UNIX_EPOCH,
        running: true,
    };
    let place = Place {
        node: "node1".to_owned(),
        address: ADDRESS.to_owned(),
        pod: ("n".to_owned(), "p".to_owned()),
        spec,
    };
    let handle = Handle {
        place,
        run: Arc::clone(&process.run),
        term: process.term(),
        serves: process.serves,
        exits,
    };
    containers.started("uid", info, handle);
    Bed {
        containers,
        process,
        ends,
    }
}

/// The command, and its exit code and outputs or the beginning of the error.
#[rstest]
#[case::output(&["echo", "a"], Ok((0, "a\n", "")))]
#[case::fails(&["false"], Ok((1, "", "")))]
#[case::both_outputs(&["sh", "-c", "echo a; echo b >&2; exit 3"], Ok((3, "a\n", "b\n")))]
#[case::environment(&["sh", "-c", "echo $CFG"], Ok((0, "one\n", "")))]
#[case::too_long(&["sleep", "9"], Err("command \"sleep 9\" timed out: context deadline exceeded"))]
#[case::no_command(&["nonesuch"], Err("error executing command in container"))]
#[tokio::test(start_paused = true)]
async fn commands(#[case] argv: &[&str], #[case] expect: Result<(i32, &str, &str), &str>) {
    let bed = bed(&["sh", "-c", "sleep 60"], json!({}));
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let ran = bed.containers.exec(ID, argv, Duration::from_secs(1)).await;
    match (ran, expect) {
        (Ok(ran), Ok((code, out, err))) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let shown = (ran.code, text(&ran.out), text(&ran.err));
            assert_eq!(shown, (code, out.to_owned(), err.to_owned()));
        }
        (Err(error), Err(text)) => assert!(error.to_string().starts_with(text), "{error}"),
        (got, _) => panic!("{got:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_serves_has_commands_of_its_own() {
    let bed = bed(&[], json!({}));
    let run = |argv: &str| {
        bed.containers
            .exec(ID, vec![argv.to_owned()], Duration::from_secs(1))
    };
    assert_eq!(run("nonesuch").await, Ok(Ran::default()));
    assert_eq!(run("false").await.map(|ran| ran.code), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_has_ended_runs_no_command() {
    let bed = bed(&[], json!({}));
    bed.containers.ended("uid", "c");
    let ran = bed
        .containers
        .exec(ID, vec!["true".to_owned()], Duration::from_secs(1));
    assert_eq!(ran.await, Err(ExecError::NotRunning(ID.to_owned())));
}

/// The command of the container, the ports of its spec, an address, and the first line of the answer or the error.
#[rstest]
#[case::any_port(&[], json!({}), ADDRESS, Ok("HTTP/1.1 200 OK"))]
#[case::named_port(&[], json!({"ports": [{"containerPort": 80}]}), ADDRESS, Ok("HTTP/1.1 200 OK"))]
#[case::another_port(
    &[], json!({"ports": [{"containerPort": 81}]}), ADDRESS, Err("dial tcp 10.0.0.1:80: connect: connection refused"))]
#[case::a_shell_does_not_listen(
    &["sleep", "60"], json!({}), ADDRESS, Err("dial tcp 10.0.0.1:80: connect: connection refused"))]
#[case::another_pod(&[], json!({}), "10.0.0.2", Err("dial tcp 10.0.0.2:80: connect: no route to host"))]
#[case::no_address(&[], json!({}), "", Err("dial tcp :80: connect: no route to host"))]
#[tokio::test(start_paused = true)]
async fn ports(
    #[case] command: &[&str],
    #[case] spec: Value,
    #[case] address: &str,
    #[case] expect: Result<&str, &str>,
) {
    let bed = bed(command, spec);
    match bed.containers.connect(address, 80) {
        Err(error) => assert_eq!(Err(&*error.to_string()), expect),
        Ok(mut stream) => {
            let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert_eq!(Ok(answer.lines().next().unwrap()), expect);
            assert!(
                answer.ends_with("pod: n/p\ncontainer: c\nrequest: GET /\n"),
                "{answer}"
            );
        }
    }
}

/// A stop is over when the container has ended, at its own pace or at the end of its time.
#[rstest]
#[case::serves(&[], 3, 0, 100)]
#[case::ends_when_asked(&["sh", "-c", "trap exit TERM; while true; do sleep 1; done"], 3, 0, 1000)]
#[case::does_not_listen(&["sh", "-c", "trap '' TERM; while true; do sleep 1; done"], 3, KILLED, 3000)]
#[tokio::test(start_paused = true)]
async fn stops(#[case] command: &[&str], #[case] grace_s: u64, #[case] code: i32, #[case] at_most_ms: u128) {
    let Bed {
        containers,
        process,
        mut ends,
    } = bed(command, json!({}));
    let began = tokio::time::Instant::now();
    let stopped = containers.stop(ID, Duration::from_secs(grace_s));
    // The kubelet takes the program away when it hears of the end.
    let kubelet = tokio::spawn(async move {
        let (_, exit) = ends.next().await.unwrap();
        drop(process);
        exit.code
    });
    stopped.await;
    assert!(began.elapsed().as_millis() <= at_most_ms, "{:?}", began.elapsed());
    assert_eq!(kubelet.await.unwrap(), code);
}

#[tokio::test(start_paused = true)]
async fn the_stop_of_a_container_that_has_ended_is_over() {
    let bed = bed(&[], json!({}));
    bed.containers.ended("uid", "c");
    bed.containers.stop(ID, Duration::from_secs(30)).await;
    assert_eq!(tokio::time::Instant::now().elapsed(), Duration::ZERO);
}

/// The kubelet may hear of an end late, as while it waits for a hook of another container.
#[rstest]
#[case::serves(&[], 0)]
#[case::ends_by_itself(&["sleep", "2"], 2)]
#[tokio::test(start_paused = true)]
async fn an_end_has_the_time_at_which_it_was(#[case] command: &[&str], #[case] at_s: i64) {
    let mut bed = bed(command, json!({}));
    if command.is_empty() {
        drop(bed.containers.stop(ID, Duration::from_millis(1500)));
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    let ended = bed.ends.next().await.map(|(_, exit)| exit.at);
    let expect = Timestamp::from_second(at_s).ok().map(Some);
    assert_eq!(ended, expect);
}
