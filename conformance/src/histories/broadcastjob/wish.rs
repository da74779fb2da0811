//! The random spec of the BroadcastJob, and the user's changes of the nodes.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index, signed, without_nulls};
use crate::history::Change;

/// The number of nodes.
const NODES: usize = 3;

/// The wanted state of the job.
#[derive(Debug, Clone)]
pub(in crate::histories) struct BroadcastJobWish {
    parallelism: Value,
    paused: bool,
    /// For how many seconds a pod works, and its exit code then.
    work_s: u64,
    code: u64,
    /// Whether the job ends.
    ends: bool,
    ttl_s: Option<i64>,
    deadline_s: Option<i64>,
    on_failure: &'static str,
    /// Whether containers that fail are started again.
    restarts: bool,
    /// The nodes that take no pods.
    cordoned: [bool; NODES],
}

impl BroadcastJobWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        let ends = random.below(4) > 0;
        Self {
            parallelism: parallelism(random),
            paused: false,
            work_s: work_s(random),
            code: 0,
            ends,
            ttl_s: (ends && random.below(3) > 0).then(|| signed(random.below(20))),
            deadline_s: (ends && random.below(4) == 0).then(|| signed(random.between(3, 30))),
            on_failure: ["FailFast", "Continue", "Pause"][index(random, 3)],
            restarts: random.below(3) == 0,
            cordoned: [false; NODES],
        }
    }
}

fn parallelism(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!("50%"),
        _ => json!(random.between(1, 3)),
    }
}

fn work_s(random: &mut Random) -> u64 {
    [1, 3, 8, 20][index(random, 4)]
}

impl Wish for BroadcastJobWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1beta1"
    }

    fn kind(&self) -> &'static str {
        "BroadcastJob"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    /// Sometimes a node begins or ceases to take pods, or the job is created again once it is gone.
    fn errands(&mut self, _pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        match random.below(8) {
            0..=2 => {
                let node = index(random, 3);
                self.cordoned[node] = !self.cordoned[node];
                let name = format!("node{}", node + 1);
                Some(vec![Errand::Patch(json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                    "spec": {"unschedulable": self.cordoned[node]},
                }))])
            }
            3 | 4 => Some(vec![Errand::Create(self.object())]),
            _ => None,
        }
    }

    fn may_end(&self) -> bool {
        true
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(6) {
            0 | 1 => self.parallelism = parallelism(random),
            2 => self.paused = !self.paused,
            3 => self.code = random.below(2),
            _ => self.work_s = work_s(random),
        }
    }

    fn come_to_rest(&mut self) {
        self.paused = false;
    }

    fn object(&self) -> Value {
        let spec = without_nulls(&self.spec());
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": {"name": "a", "namespace": "default"}, "spec": spec,
        })
    }

    fn spec(&self) -> Value {
        let (kind, policy) = match self.restarts {
            true => ("OnFailure", json!({"type": self.on_failure, "restartLimit": 2})),
            false => ("Never", json!({"type": self.on_failure})),
        };
        let script = format!("sleep {}; exit {}", self.work_s, self.code);
        json!({
            "parallelism": self.parallelism,
            "paused": self.paused,
            "completionPolicy": {
                "type": if self.ends { "Always" } else { "Never" },
                "ttlSecondsAfterFinished": self.ttl_s, "activeDeadlineSeconds": self.deadline_s,
            },
            "failurePolicy": policy,
            "template": {"spec": {
                "restartPolicy": kind, "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "app:v1", "command": ["sh", "-c", script]}],
            }},
        })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, job: &Value, pods: &[Value]) -> Vec<String> {
        let fitting = self.cordoned.iter().filter(|cordoned| !**cordoned).count();
        judge::unlike(job, pods, signed(u64::try_from(fitting).unwrap_or_default()))
    }
}
