//! The random spec of the spread, and the user's changes of the workload.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index, signed};
use crate::history::Change;

/// The names of the subsets.
const SUBSETS: [&str; 3] = ["x", "y", "z"];

/// How large the subsets may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maxima {
    /// The last one takes all that the others do not.
    Numbers,
    /// All of them have a maximum.
    AllNumbers,
    /// Each has a share.
    Shares,
}

/// The wanted state of the spread and of its workload.
#[derive(Debug, Clone)]
pub(in crate::histories) struct SpreadWish {
    maxima: Maxima,
    numbers: [u64; 3],
    /// Whether the workload is a Deployment, not a CloneSet.
    versioned: bool,
    first_replicas: i64,
    replicas: i64,
    image: u64,
    /// Whether a maximum, or the number that it is a share of, has become smaller.
    lowered: bool,
}

impl SpreadWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        let replicas = signed(random.below(8));
        Self {
            maxima: [Maxima::Numbers, Maxima::AllNumbers, Maxima::Shares][index(random, 3)],
            numbers: [(); 3].map(|()| random.below(4)),
            versioned: random.below(2) == 0,
            first_replicas: replicas,
            replicas,
            image: 1,
            lowered: false,
        }
    }

    /// The workload.
    fn workload(&self) -> Value {
        let (version, kind) = match self.versioned {
            true => ("apps/v1", "Deployment"),
            false => ("apps.kruise.io/v1alpha1", "CloneSet"),
        };
        let labels = json!({"app": "a"});
        json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "default"},
            "spec": {
                "replicas": self.replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": format!("app:v{}", self.image)}],
                }},
            },
        })
    }

    /// The maximum of each subset.
    fn maximum(&self, at: usize) -> Value {
        match self.maxima {
            Maxima::Shares => json!(["30%", "30%", "40%"][at]),
            Maxima::Numbers if at == 2 => Value::Null,
            Maxima::Numbers | Maxima::AllNumbers => json!(self.numbers[at]),
        }
    }
}

impl Wish for SpreadWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1alpha1"
    }

    fn kind(&self) -> &'static str {
        "WorkloadSpread"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn errands(&mut self, pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        match random.below(8) {
            0..=2 => {
                let replicas = signed(random.below(8));
                self.lowered |= self.maxima == Maxima::Shares && replicas < self.replicas;
                self.replicas = replicas;
                Some(vec![Errand::Patch(self.workload())])
            }
            3 => {
                self.image = random.between(1, 3);
                Some(vec![Errand::Patch(self.workload())])
            }
            4 => {
                let pods = pods.iter().filter(|_| random.below(2) == 0);
                let delete = |pod: &&str| {
                    Errand::Delete(json!({
                        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "default"},
                    }))
                };
                Some(pods.map(delete).collect())
            }
            _ => None,
        }
    }

    fn change(&mut self, random: &mut Random) {
        let at = index(random, 3);
        let number = random.below(4);
        self.lowered |= number < self.numbers[at];
        self.numbers[at] = number;
    }

    fn come_to_rest(&mut self) {}

    fn object(&self) -> Value {
        let mut spec = self.spec();
        let workload = self.workload();
        spec["targetRef"] =
            json!({"apiVersion": workload["apiVersion"], "kind": workload["kind"], "name": "w"});
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": {"name": "a", "namespace": "default"}, "spec": spec,
        })
    }

    fn after(&self) -> Vec<Value> {
        vec![self.workload()]
    }

    fn spec(&self) -> Value {
        let subset = |(at, name): (usize, &&str)| match self.maximum(at) {
            Value::Null => json!({"name": name}),
            maximum => json!({"name": name, "maxReplicas": maximum}),
        };
        let subsets: Vec<Value> = SUBSETS.iter().enumerate().map(subset).collect();
        json!({ "subsets": subsets })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds, self.first_replicas)
    }

    fn unlike(&self, spread: &Value, pods: &[Value]) -> Vec<String> {
        let whole = judge::Whole {
            replicas: self.replicas,
            all_placed: self.maxima == Maxima::Numbers,
            within_maxima: self.maxima == Maxima::Numbers && !self.lowered,
        };
        judge::unlike(spread, pods, &whole)
    }
}
