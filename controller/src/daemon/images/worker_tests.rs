//! Rows of the work on one tag.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::daemon::images::service::{ImageService, PullRequest};

/// A service whose first pulls fail, and whose pulls take some seconds.
#[derive(Default)]
struct Node {
    has_it: Mutex<bool>,
    failures: usize,
    takes_s: u64,
    asked: Mutex<Vec<(u64, PullRequest)>>,
    began: Mutex<Option<Instant>>,
}

impl ImageService for Node {
    fn status<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<String>, String>> {
        let has_it = *self.has_it.lock().unwrap();
        async move { Ok(has_it.then(|| "sha256:1".to_owned())) }.boxed()
    }

    fn pull<'a>(&'a self, request: &'a PullRequest) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let began = *self.began.lock().unwrap().get_or_insert_with(Instant::now);
            let at = {
                let mut asked = self.asked.lock().unwrap();
                asked.push((began.elapsed().as_secs(), request.clone()));
                asked.len()
            };
            tokio::time::sleep(Duration::from_secs(self.takes_s)).await;
            if at <= self.failures {
                return Err("no such image".to_owned());
            }
            *self.has_it.lock().unwrap() = true;
            Ok(())
        }
        .boxed()
    }
}

fn task(node: &Arc<Node>, tag: &Value) -> Task {
    let service: Arc<dyn ImageService> = Arc::clone(node) as Arc<dyn ImageService>;
    let client = kube::Client::new(
        tower::service_fn(|_: hyper::Request<kube::client::Body>| {
            std::future::ready(
                hyper::Response::builder()
                    .status(404)
                    .body(kube::client::Body::empty()),
            )
        }),
        "default",
    );
    let clock: SharedClock = Arc::new(client_kit::TokioClock::starting_at(Timestamp::UNIX_EPOCH));
    Task {
        service,
        recorder: EventRecorder::new(client, "test", None, Arc::clone(&clock)),
        clock,
        turns: None,
        name: "nginx".to_owned(),
        tag: serde_json::from_value(tag.clone()).unwrap(),
        sandbox: None,
        credentials: Vec::new(),
        list: ObjectReference::default(),
    }
}

async fn end(worker: &Worker) -> ImageTagStatus {
    for _ in 0..10_000 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let status = worker.status();
        if let Some(status) = status.filter(|status| status.completion_time.is_some()) {
            return status;
        }
    }
    panic!("it does not end");
}

/// The limit of retries, how many pulls fail; when they begin, the second of the end, and the phase.
#[rstest]
#[case::at_once(json!(3), 0, &[0], 0, "Succeeded")]
#[case::after_two_failures(json!(3), 2, &[0, 1, 3], 3, "Succeeded")]
#[case::no_retry(json!(0), 9, &[0], 1, "Failed")]
#[case::one_retry(json!(1), 9, &[0, 1], 3, "Failed")]
#[case::by_default(json!(null), 9, &[0, 1, 3, 7], 15, "Failed")]
#[case::negative(json!(-1), 9, &[0, 1, 3, 7], 15, "Failed")]
#[tokio::test(start_paused = true)]
async fn attempts(
    #[case] limit: Value,
    #[case] failures: usize,
    #[case] begin: &[u64],
    #[case] end_s: i64,
    #[case] phase: &str,
) {
    let node = Arc::new(Node {
        failures,
        ..Node::default()
    });
    let tag = json!({ "tag": "1", "version": 2, "pullPolicy": { "backoffLimit": limit } });
    let status = end(&Worker::start(task(&node, &tag))).await;
    let times: Vec<u64> = node.asked.lock().unwrap().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, begin);
    let completion = status.completion_time.unwrap().0.as_second();
    assert_eq!(
        (completion, status.phase.as_str(), status.version),
        (end_s, phase, 2)
    );
    if phase == "Failed" {
        assert_eq!(
            status.message,
            "Failed to pull image reference \"nginx:1\": no such image"
        );
    } else {
        assert_eq!(
            (status.image_id.as_str(), status.progress),
            ("nginx@sha256:1", 100)
        );
    }
}

/// The policy of the tag, how many seconds a pull takes, and the message.
#[rstest]
#[case::in_time(json!({ "timeoutSeconds": 5 }), 4, "")]
#[case::too_late(json!({ "timeoutSeconds": 5, "backoffLimit": 0 }), 6, "pulling image nginx:1 is canceled")]
#[case::beyond_the_deadline(
    json!({ "timeoutSeconds": 5, "activeDeadlineSeconds": 8 }), 6, "pulling exceeds the activeDeadlineSeconds"
)]
#[tokio::test(start_paused = true)]
async fn times(#[case] policy: Value, #[case] takes_s: u64, #[case] message: &str) {
    let node = Arc::new(Node {
        takes_s,
        ..Node::default()
    });
    let status = end(&Worker::start(task(
        &node,
        &json!({ "tag": "1", "pullPolicy": policy }),
    )))
    .await;
    assert_eq!(status.message, message);
}

/// The policy for images that are there, and whether the node pulls one that it has.
#[rstest]
#[case("IfNotPresent", false)]
#[case("Always", true)]
#[case("", true)]
#[tokio::test(start_paused = true)]
async fn images_that_are_there(#[case] policy: &str, #[case] pulls: bool) {
    let node = Arc::new(Node {
        has_it: Mutex::new(true),
        ..Node::default()
    });
    end(&Worker::start(task(
        &node,
        &json!({ "tag": "1", "imagePullPolicy": policy }),
    )))
    .await;
    assert_eq!(!node.asked.lock().unwrap().is_empty(), pulls);
}

#[tokio::test(start_paused = true)]
async fn one_worker_waits_for_the_other() {
    let node = Arc::new(Node {
        takes_s: 10,
        ..Node::default()
    });
    let turns = Arc::new(Semaphore::new(1));
    let start = || {
        let mut task = task(&node, &json!({ "tag": "1" }));
        task.turns = Some(Arc::clone(&turns));
        Worker::start(task)
    };
    let (first, second) = (start(), start());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let phases = [&first, &second].map(|worker| worker.status().unwrap().phase);
    assert_eq!(phases, ["Pulling", "Waiting"]);
    drop(first);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(second.status().unwrap().phase, "Pulling");
}

#[tokio::test(start_paused = true)]
async fn credentials_are_tried_in_turn() {
    let node = Arc::new(Node {
        failures: 1,
        ..Node::default()
    });
    let mut task = task(&node, &json!({ "tag": "1" }));
    task.sandbox = serde_json::from_value(json!({ "labels": { "l": "1" } })).unwrap();
    task.credentials = ["a", "b"]
        .map(|name| Credential {
            username: name.to_owned(),
            password: String::new(),
        })
        .to_vec();
    end(&Worker::start(task)).await;
    let asked = node.asked.lock().unwrap();
    let users: Vec<&str> = asked
        .iter()
        .map(|(_, request)| request.credential.as_ref().unwrap().username.as_str())
        .collect();
    assert_eq!(users, ["a", "b"]);
    assert_eq!(json!(asked[0].1.labels), json!({ "l": "1" }));
    assert_eq!(
        json!(asked[0].1.annotations),
        json!({ "apps.kruise.io/pulling-image-by": "kruise-daemon" })
    );
}

#[rstest]
#[case(0, "0s")]
#[case(20, "20ms")]
#[case(1500, "1.5s")]
#[case(61_000, "1m1s")]
#[case(3_600_001, "1h0m0.001s")]
fn durations(#[case] ms: u64, #[case] expect: &str) {
    assert_eq!(go_seconds(Duration::from_millis(ms)), expect);
}
