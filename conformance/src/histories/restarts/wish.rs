//! The requests that the user of a history makes.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index};
use crate::history::Change;
use crate::recording::environment::Environment;

/// How many pods the ReplicaSet has.
const PODS: i64 = 3;
/// After how many seconds a request ends at the latest: a container that is stopped often waits longer each time.
const DEADLINE_SECONDS: u64 = 400;

/// The requests that were made so far.
#[derive(Debug, Clone, Default)]
pub(in crate::histories) struct RestartsWish {
    requests: u64,
}

impl RestartsWish {
    pub(in crate::histories) fn random(_random: &mut Random) -> Self {
        Self::default()
    }
}

/// A request for one container of a pod or for both.
fn request(name: &str, pod: &str, random: &mut Random) -> Value {
    let containers = [&["main"][..], &["side"], &["main", "side"], &["side", "main"]];
    let chosen = containers[usize::try_from(random.below(4)).unwrap_or(0)];
    let containers: Vec<Value> = chosen.iter().map(|name| json!({"name": name})).collect();
    let mut strategy = json!({
        "orderedRecreate": random.below(2) == 1, "forceRecreate": random.below(3) == 0,
        "minStartedSeconds": random.below(6),
        "failurePolicy": if random.below(2) == 0 { "Fail" } else { "Ignore" },
    });
    if random.below(3) == 0 {
        strategy["unreadyGracePeriodSeconds"] = json!(random.below(5));
    }
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "podName": pod, "containers": containers, "strategy": strategy, "activeDeadlineSeconds": DEADLINE_SECONDS,
        },
    })
}

impl Wish for RestartsWish {
    fn api_version(&self) -> &'static str {
        "apps/v1"
    }

    fn kind(&self) -> &'static str {
        "ReplicaSet"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn environment(&self) -> Environment {
        Environment {
            daemon: true,
            ..Environment::default()
        }
    }

    fn change(&mut self, _random: &mut Random) {}

    fn errands(&mut self, pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        let count = u64::try_from(pods.len()).unwrap_or(1).max(1);
        let Some(pod) = pods.get(index(random, count)) else {
            return Some(Vec::new());
        };
        self.requests += 1;
        let request = request(&format!("r{}", self.requests), pod, random);
        Some(vec![Errand::Create(request)])
    }

    fn come_to_rest(&mut self) {}

    fn object(&self) -> Value {
        let labels = json!({"app": "a"});
        let gate = json!([{"conditionType": "KruisePodReady"}]);
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a", "namespace": "default"},
            "spec": {
                "replicas": PODS, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1, "readinessGates": gate,
                    "containers": [{"name": "main", "image": "app:v1"}, {"name": "side", "image": "side:v1"}],
                }},
            },
        })
    }

    fn spec(&self) -> Value {
        json!({"replicas": PODS})
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], _deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history)
    }

    fn unlike(&self, _set: &Value, pods: &[Value]) -> Vec<String> {
        judge::unlike(pods, PODS)
    }
}
