//! Rows: the results of probes, pass by pass. Time begins at second 100.

use client_kit::TokioClock;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::daemon::test_node::TestNode;

/// A prober for the node `node1`, which has the probe `m#p` of the pod with this uid.
struct Bed {
    prober: Prober,
    uid: String,
}

impl Bed {
    fn new(uid: &str, probe: &Value) -> Self {
        let probes = Informer::new();
        let prober = Prober {
            probes,
            node: ObjectKey::new("", "node1"),
            runtime: Arc::new(TestNode),
            network: Arc::new(TestNode),
            clock: Arc::new(TokioClock::starting_at(Timestamp::from_second(100).unwrap())),
            results: Arc::default(),
            states: Mutex::default(),
            writes: Arc::new(WorkQueue::new()),
        };
        let bed = Self {
            prober,
            uid: uid.to_owned(),
        };
        bed.put(Some(probe));
        bed
    }

    /// The probe is this from now on, or is gone.
    fn put(&self, probe: Option<&Value>) {
        let probes: Vec<Value> = probe
            .into_iter()
            .map(|probe| json!({ "name": "m#p", "containerName": "main", "probe": probe }))
            .collect();
        let pod =
            json!({ "name": "a", "namespace": "n", "uid": self.uid, "IP": "10.0.0.1", "probes": probes });
        let object = json!({ "metadata": { "name": "node1" }, "spec": { "podProbes": [pod] } });
        let object: NodePodProbe = serde_json::from_value(object).unwrap();
        self.prober.probes.learn(&self.prober.node, Some(object));
    }

    /// One pass: the result, and after how many seconds the next comes.
    async fn pass(&self) -> (String, Option<u64>) {
        let key = ProbeKey {
            namespace: "n".to_owned(),
            pod: "a".to_owned(),
            uid: self.uid.clone(),
            container: "main".to_owned(),
            probe: "m#p".to_owned(),
        };
        let next = match self.prober.pass(&key).await.unwrap() {
            Next::Event => None,
            Next::After(after) => Some(after.as_secs()),
        };
        let results = self.prober.results.all();
        let result = results.get(&key);
        let shown = result.map(|result| format!("{} {}", result.state.word(), result.message));
        (shown.unwrap_or_default().trim_end().to_owned(), next)
    }
}

fn command(name: &str, change: Value) -> Value {
    let mut probe = json!({ "exec": { "command": [name] }, "periodSeconds": 2 });
    crate::kit::json::merge(&mut probe, change);
    probe
}

/// The pod, the probe, and the result of the first pass.
#[rstest]
#[case::succeeds("runs", command("ok", json!({})), "Succeeded fine")]
#[case::fails("runs", command("fails", json!({})), "Failed broken")]
#[case::fails_once("runs", command("fails", json!({ "failureThreshold": 2 })), "Unknown")]
#[case::says_nothing("runs", command("nonesuch", json!({})), "Unknown")]
#[case::too_young("young", command("ok", json!({ "initialDelaySeconds": 6 })), "Unknown")]
#[case::old_enough("young", command("ok", json!({ "initialDelaySeconds": 5 })), "Succeeded fine")]
#[case::has_ended("ended", command("ok", json!({})), "Failed Container(main) is Non-running")]
#[case::no_container("none", command("ok", json!({})), "")]
#[tokio::test(start_paused = true)]
async fn first_results(#[case] uid: &str, #[case] probe: Value, #[case] expect: &str) {
    let bed = Bed::new(uid, &probe);
    assert_eq!(bed.pass().await, (expect.to_owned(), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_asks_something_else_begins_anew_at_its_usual_time() {
    let bed = Bed::new("runs", &command("ok", json!({})));
    assert_eq!(bed.pass().await, ("Succeeded fine".to_owned(), Some(2)));
    tokio::time::advance(Duration::from_secs(1)).await;
    bed.put(Some(&command("fails", json!({}))));
    assert_eq!(bed.pass().await, ("Unknown".to_owned(), Some(1)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(bed.pass().await, ("Failed broken".to_owned(), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn another_period_counts_from_the_next_question_on() {
    let bed = Bed::new("runs", &command("ok", json!({})));
    bed.pass().await;
    bed.put(Some(&command("ok", json!({ "periodSeconds": 7 }))));
    assert_eq!(bed.pass().await, ("Succeeded fine".to_owned(), Some(2)));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(bed.pass().await, ("Succeeded fine".to_owned(), Some(7)));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_gone_has_no_result() {
    let bed = Bed::new("runs", &command("ok", json!({})));
    bed.pass().await;
    bed.put(None);
    assert_eq!(bed.pass().await, (String::new(), None));
}

#[tokio::test(start_paused = true)]
async fn a_result_is_told_when_it_changes_and_every_ten_minutes() {
    let bed = Bed::new("runs", &command("ok", json!({ "periodSeconds": 300 })));
    let mut told = Vec::new();
    for _ in 0..4 {
        bed.pass().await;
        told.push(bed.prober.results.take_untold().len());
        tokio::time::advance(Duration::from_secs(300)).await;
    }
    assert_eq!(told, [1, 0, 1, 0]);
}
