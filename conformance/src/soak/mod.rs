//! A soak: clients that send random requests, valid and not, while watches are open.
//!
//! [`requests`] draws the requests, [`replay`] follows a watch. In the end nothing has panicked, no answer was a failure of the server,
//! every watch adds up to the objects of a list, and memory has not grown after the first minute.

mod replay;
mod requests;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use client_kit::Seed;
use kube::Client;
use tokio::task::JoinSet;

use crate::bench_cluster::resident;
use crate::error::Error;
use crate::report::stopwatch::Stopwatch;
use replay::Replay;
use requests::{COLLECTIONS, Requests};

/// How long a watch may take to deliver all events, once nothing changes any more.
const QUIET: Duration = Duration::from_secs(20);
/// From when on memory must not grow, how often it is looked at, and by how much it may differ all the same.
const WARM: Duration = Duration::from_secs(60);
const SAMPLE: Duration = Duration::from_secs(5);
const GROWTH_MAX: f64 = 1.25;
/// How long events of the objects stay: with a real server's hour their number would grow until the hour is over.
const EVENT_LIFE: Duration = Duration::from_secs(30);

/// The collections that the cluster's controllers write to.
const MADE: [&str; 2] = [
    "/api/v1/namespaces/default/events",
    "/apis/apps/v1/namespaces/default/replicasets",
];

/// The options.
#[derive(Debug, Clone)]
pub struct SoakOptions {
    /// For how long requests are sent, in real time.
    pub duration: Duration,
    /// How many clients send them.
    pub clients: u32,
    /// The seed of their requests.
    pub seed: u64,
}

/// The outcome.
#[derive(Debug, Clone, Default)]
pub struct SoakOutcome {
    /// How many answers there were of each status.
    pub answers: BTreeMap<u16, u64>,
    /// Whatever is wrong; empty if all is well.
    pub problems: Vec<String>,
    /// How many objects of each kind there are in the end.
    pub objects: BTreeMap<&'static str, u64>,
    /// The largest resident memory in KiB, by sample; empty where it cannot be known.
    pub memory_kib: Vec<u64>,
}

impl SoakOutcome {
    /// The number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.answers.values().sum()
    }
}

/// Sends requests to a cluster of this process and reports the outcome. Must be called within a runtime whose time is real.
///
/// # Errors
/// If the cluster does not start, or the report cannot be written.
pub async fn run(options: &SoakOptions, out: &mut (dyn Write + Send)) -> Result<SoakOutcome, Error> {
    let cluster = fake_apiserver::Cluster::builder()
        .seed(options.seed)
        .start_time(client_kit::Clock::now(&client_kit::SystemClock))
        .event_life(EVENT_LIFE)
        .nodes(2)
        .start()
        .await
        .map_err(|error| Error::Backend {
            what: "start a cluster".to_owned(),
            why: error.to_string(),
            help: "this is a defect of Seatrial".to_owned(),
        })?;
    let outcome = soak(&cluster.client(), options).await;
    let written = report(&outcome, options, out);
    written.map_err(|source| Error::Write {
        path: "standard output".into(),
        source,
    })?;
    Ok(outcome)
}

async fn soak(client: &Client, options: &SoakOptions) -> SoakOutcome {
    let stopwatch = Stopwatch::start();
    let mut outcome = SoakOutcome::default();
    let mut watches = JoinSet::new();
    let mut replays = Vec::new();
    for path in COLLECTIONS {
        let replay = Replay::new(path);
        watches.spawn(replay.clone().follow(client.clone()));
        replays.push(replay);
    }
    let mut clients = JoinSet::new();
    for number in 0..options.clients {
        let random = Seed(options.seed).fork(&format!("client {number}")).random();
        let (client, duration) = (client.clone(), options.duration);
        clients.spawn(async move {
            let mut requests = Requests::new(random);
            let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
            let mut problems = Vec::new();
            while stopwatch.elapsed() < duration {
                match requests.send(&client).await {
                    Ok(code) => *answers.entry(code).or_default() += 1,
                    Err(problem) => problems.push(problem),
                }
                // The others, and the cluster's own tasks, share this thread.
                tokio::task::yield_now().await;
            }
            (answers, problems)
        });
    }
    let sampling = async {
        let mut samples = Vec::new();
        loop {
            tokio::time::sleep(SAMPLE).await;
            samples.extend(resident().map(|bytes| bytes / 1024));
            if clients.is_empty() || stopwatch.elapsed() >= options.duration {
                return samples;
            }
        }
    };
    let samples = sampling.await;
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok((answers, problems)) => {
                for (code, count) in answers {
                    *outcome.answers.entry(code).or_default() += count;
                }
                outcome.problems.extend(problems);
            }
            Err(error) => outcome
                .problems
                .push(format!("a client has ended early: {error}")),
        }
    }
    outcome.problems.extend(growth(&samples));
    outcome.memory_kib = samples;
    for replay in replays {
        if let Err(problem) = replay.agrees(client, QUIET).await {
            outcome.problems.push(problem);
        }
    }
    for path in COLLECTIONS.into_iter().chain(MADE) {
        let plural = path.rsplit('/').next().unwrap_or_default();
        outcome.objects.insert(plural, count(client, path).await);
    }
    while let Some(ended) = watches.try_join_next() {
        outcome
            .problems
            .push(format!("a watch has ended early: {ended:?}"));
    }
    outcome
}

/// How many objects there are in a collection.
async fn count(client: &Client, path: &str) -> u64 {
    let Ok(request) = http::Request::get(format!("{path}?limit=1")).body(Vec::new()) else {
        return 0;
    };
    let page: shared_json::Value = client.request(request).await.unwrap_or_default();
    let shown = page
        .get("items")
        .and_then(|items| items.as_array())
        .map_or(0, shared_json::Array::len);
    let left = page
        .pointer("/metadata/remainingItemCount")
        .and_then(|count| count.as_u64());
    shown as u64 + left.unwrap_or(0)
}

fn warm_sample() -> usize {
    usize::try_from(WARM.as_secs() / SAMPLE.as_secs()).unwrap_or_default()
}

/// Whether there is more in memory at the end than after the first minute.
fn growth(samples: &[u64]) -> Option<String> {
    let (before, after) = (samples.get(warm_sample())?, samples.last()?);
    #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
    let ratio = *after as f64 / (*before).max(1) as f64;
    (ratio > GROWTH_MAX)
        .then(|| format!("memory has grown from {before} KiB to {after} KiB after the first minute"))
}

fn report(outcome: &SoakOutcome, options: &SoakOptions, out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    let seconds = options.duration.as_secs().max(1);
    writeln!(
        out,
        "{} requests in {seconds} s from {} clients, {} watches; answers: {:?}",
        outcome.requests(),
        options.clients,
        COLLECTIONS.len(),
        outcome.answers
    )?;
    if let (Some(first), Some(last)) = (outcome.memory_kib.first(), outcome.memory_kib.last()) {
        let warm = outcome.memory_kib.get(warm_sample()).copied();
        let warm = warm.map(|warm| format!("{warm} KiB after the first minute, "));
        writeln!(
            out,
            "memory: {first} KiB at first, {}{last} KiB at last",
            warm.unwrap_or_default()
        )?;
    }
    writeln!(out, "objects in the end: {:?}", outcome.objects)?;
    for problem in outcome.problems.iter().take(20) {
        writeln!(out, "problem: {problem}")?;
    }
    writeln!(out, "{} problems (seed {})", outcome.problems.len(), options.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_is_told() {
        let flat: Vec<u64> = (0..30)
            .map(|index| if index < 12 { index * 10 } else { 120 + index % 2 })
            .collect();
        assert_eq!(growth(&flat), None);
        let grows: Vec<u64> = (1..30).map(|index| index * 100).collect();
        assert!(growth(&grows).is_some());
        assert_eq!(growth(&[1, 2, 3]), None, "too short to tell");
    }
}
