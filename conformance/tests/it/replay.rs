//! A run is a function of its seed.

use std::process::Command;

use conformance::backend::{Backend, FakeCluster, FakeOptions};
use conformance::run::scenario as player;
use conformance::scenario::Scenario;

use crate::support::fixtures;

/// Set in a child process: the seed whose trace it is to print.
const CHILD: &str = "SEATRIAL_TRACE_OF";

/// Every commit of the tutorial under a seed.
fn trace(seed: u64) -> String {
    let root = fixtures().join("scenarios");
    let tutorial = Scenario::read(&root, &root.join("tutorial/chainsaw-test.yaml")).expect("the tutorial");
    seeded_entropy::simulate(client_kit::Seed(seed), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let options = FakeOptions {
                seed,
                trace: true,
                ..FakeOptions::default()
            };
            let cluster = FakeCluster::start(options).await.expect("a cluster");
            let backend = Backend::Fake(cluster);
            player::run(&tutorial, &backend, &[], true, &mut |_| {})
                .await
                .expect("a run");
            let Backend::Fake(cluster) = &backend else {
                unreachable!("made above")
            };
            cluster.trace()
        })
    })
}

#[test]
fn one_seed_gives_one_trace() {
    let first = trace(7);
    assert!(
        first.lines().count() > 200,
        "the trace has only {} lines",
        first.lines().count()
    );
    let second = trace(7);
    if first != second {
        let at = first
            .lines()
            .zip(second.lines())
            .position(|(one, other)| one != other);
        let at = at.expect("one trace is the beginning of the other");
        panic!(
            "the traces part at line {at}:\n{:?}\n{:?}",
            first.lines().nth(at),
            second.lines().nth(at)
        );
    }
}

#[test]
fn another_process_gives_the_same_trace() {
    if let Ok(seed) = std::env::var(CHILD) {
        println!("TRACE-BEGIN\n{}TRACE-END", trace(seed.parse().expect("a seed")));
        return;
    }
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "replay::another_process_gives_the_same_trace",
            "--nocapture",
        ])
        .env(CHILD, "7")
        .output()
        .expect("a child");
    let output = String::from_utf8_lossy(&child.stdout);
    let theirs = output
        .split_once("TRACE-BEGIN\n")
        .and_then(|(_, rest)| rest.split_once("TRACE-END"))
        .map(|(trace, _)| trace)
        .unwrap_or_else(|| {
            panic!(
                "the child printed no trace: {output}{}",
                String::from_utf8_lossy(&child.stderr)
            )
        });
    assert!(trace(7) == theirs, "the traces of two processes differ");
}

#[test]
fn another_seed_differs_only_where_it_should() {
    // What a reader sees of the tutorial is the same under every seed; identities and timings are not.
    let (one, other) = (trace(7), trace(8));
    assert_ne!(one, other);
    let said = |trace: &str| {
        let mut lines: Vec<String> = trace
            .lines()
            .filter(|line| line.contains(" ADDED events "))
            .filter_map(|line| shared_json::from_str::<shared_json::Value>(&line[line.find('{')?..]).ok())
            .filter(|event| event["involvedObject"]["kind"] == "CloneSet")
            .map(|event| format!("{} {}", event["reason"], event["message"]))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(said(&one), said(&other));
    let uids = |trace: &str| trace.lines().filter(|line| line.contains("\"uid\"")).count();
    assert!(uids(&one) > 100);
    let first_uid = |trace: &str| {
        let at = trace.find("\"uid\":\"").expect("a uid") + 7;
        trace[at..at + 36].to_owned()
    };
    assert_ne!(first_uid(&one), first_uid(&other));
}
