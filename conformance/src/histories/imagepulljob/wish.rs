//! The random spec of the ImageListPullJob, and the ImagePullJobs that the user makes beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index, signed, without_nulls};
use crate::history::Change;
use crate::recording::environment::Environment;

/// The images, and how many seconds a node takes to get each; one cannot be had.
const IMAGES: [(&str, u64); 4] = [("one:v1", 1), ("one:v2", 2), ("two:v1", 4), (MISSING, 0)];
/// The image that no registry has.
pub(super) const MISSING: &str = "none:v1";
/// The time after which a NodeImage has dropped the tags of a job that has ended (at most ten minutes), and some.
const REST: Duration = Duration::from_secs(1500);

/// The wanted state of the list, and how many jobs were made beside it.
#[derive(Debug, Clone)]
pub(in crate::histories) struct PullJobsWish {
    images: [bool; IMAGES.len()],
    ends: bool,
    jobs: u64,
}

impl PullJobsWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        Self {
            images: [(); IMAGES.len()].map(|()| random.below(3) == 0),
            ends: random.below(2) == 0,
            jobs: 0,
        }
    }

    fn listed(&self) -> Vec<&'static str> {
        let listed = IMAGES.iter().zip(self.images).filter(|(_, is)| *is);
        let mut listed: Vec<&str> = listed.map(|((image, _), _)| *image).collect();
        // A list names one image at least.
        if listed.is_empty() {
            listed.push(IMAGES[0].0);
        }
        listed
    }
}

/// A job beside the list.
fn job(name: &str, random: &mut Random) -> Value {
    let mut spec = json!({
        "image": IMAGES[index(random, 4)].0,
        "parallelism": random.between(1, 3),
        "pullPolicy": {"timeoutSeconds": random.between(5, 9), "backoffLimit": random.below(2)},
        "imagePullPolicy": if random.below(2) == 0 { "Always" } else { "IfNotPresent" },
    });
    let ttl = (random.below(2) == 0).then(|| random.below(20));
    let deadline = (random.below(3) == 0).then(|| random.between(10, 60));
    spec["completionPolicy"] = match random.below(4) {
        0 => json!({"type": "Never"}),
        _ => json!({"type": "Always", "ttlSecondsAfterFinished": ttl, "activeDeadlineSeconds": deadline}),
    };
    if random.below(3) == 0 {
        let names = [json!(["node1"]), json!(["node2", "node3"]), json!(["node9"])];
        spec["selector"] = json!({"names": names[index(random, 3)]});
    }
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": name, "namespace": "default"}, "spec": without_nulls(&spec),
    })
}

impl Wish for PullJobsWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1beta1"
    }

    fn kind(&self) -> &'static str {
        "ImageListPullJob"
    }

    fn resource(&self) -> &'static str {
        judge::JOBS
    }

    fn environment(&self) -> Environment {
        let pulled = IMAGES.iter().filter(|(image, _)| *image != MISSING);
        let pulls: BTreeMap<String, Duration> = pulled
            .map(|(image, seconds)| ((*image).to_owned(), Duration::from_secs(*seconds)))
            .collect();
        Environment {
            daemon: true,
            gates: "ImagePullJobGate=true".to_owned(),
            pulls,
            missing: BTreeSet::from([MISSING.to_owned()]),
            ..Environment::default()
        }
    }

    fn errands(&mut self, _pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        match random.below(6) {
            0 => None,
            1 => {
                let name = format!("p{}", random.between(1, self.jobs.max(1)));
                Some(vec![Errand::Delete(json!({
                    "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
                    "metadata": {"name": name, "namespace": "default"},
                }))])
            }
            _ => {
                let count = random.between(1, 2);
                let errands = (0..count).map(|_| {
                    self.jobs += 1;
                    Errand::Create(job(&format!("p{}", self.jobs), random))
                });
                Some(errands.collect())
            }
        }
    }

    fn rest(&self) -> Duration {
        REST
    }

    fn change(&mut self, random: &mut Random) {
        let at = index(random, 4);
        self.images[at] = !self.images[at];
    }

    fn come_to_rest(&mut self) {}

    fn object(&self) -> Value {
        let mut spec = self.spec();
        let kind = if self.ends { "Always" } else { "Never" };
        spec["completionPolicy"] = json!({ "type": kind });
        spec["parallelism"] = json!(2);
        spec["pullPolicy"] = json!({"timeoutSeconds": 6, "backoffLimit": 0});
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": {"name": "a", "namespace": "default"}, "spec": spec,
        })
    }

    fn spec(&self) -> Value {
        json!({ "images": self.listed() })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, list: &Value, _pods: &[Value]) -> Vec<String> {
        let images = u64::try_from(self.listed().len()).unwrap_or_default();
        judge::unlike(list, (!self.ends).then(|| signed(images)))
    }
}
