//! The claims of a pod: the existing ones, the allocated ones, and the treatment of the others.

use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::term_matches;
use shared_json::{Value, json};

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::super::filters::Refusal;
use super::capacity::Taken;
use super::extended::{Extended, Special};
use super::request::Request;
use super::search::Failure;
use super::{result, search};

/// So many pods may use a claim (the real one's).
const RESERVED_MAX: usize = 256;
/// Said of a node where claims that have their devices are of no use.
pub(in super::super) const ELSEWHERE: &str = "resourceclaim not available on the node";

/// The claims of a pod. The error is the claim that it has to wait for.
pub(in super::super) fn claims_of<'a>(pod: &Value, cluster: &'a Cluster) -> Result<Vec<&'a Value>, String> {
    let mut out = Vec::new();
    for wanted in list(pod, "spec.resourceClaims") {
        let mut name = text(wanted, "resourceClaimName");
        let by_template = name.is_empty();
        if by_template {
            let made = list(pod, "status.resourceClaimStatuses")
                .iter()
                .find(|made| text(made, "name") == text(wanted, "name"));
            let Some(made) = made else {
                return Err(format!(
                    "pod \"{}/{}\": ResourceClaim not created yet",
                    pod.namespace(),
                    pod.name()
                ));
            };
            name = text(made, "resourceClaimName");
            if name.is_empty() {
                // It needs none.
                continue;
            }
        }
        let key = (pod.namespace().to_owned(), name.to_owned());
        let Some(claim) = cluster.device_claims.get(&key) else {
            return Err(format!("resourceclaim \"{name}\" not found"));
        };
        if claim.is_terminating() {
            return Err(format!("resourceclaim \"{name}\" is being deleted"));
        }
        let owned = list(claim, "metadata.ownerReferences")
            .iter()
            .any(|owner| text(owner, "uid") == pod.uid());
        if by_template && !owned {
            return Err(format!(
                "ResourceClaim {}/{name} was not created for Pod {}/{} (Pod is not owner)",
                claim.namespace(),
                pod.namespace(),
                pod.name()
            ));
        }
        out.push(claim);
    }
    Ok(out)
}

fn is_allocated(claim: &Value) -> bool {
    at(claim, "status.allocation").is_some_and(Value::is_object)
}

fn is_reserved_for(claim: &Value, pod: &Value) -> bool {
    list(claim, "status.reservedFor")
        .iter()
        .any(|one| text(one, "uid") == pod.uid())
}

/// The claims of a pod that is looked at.
#[derive(Default)]
pub(in super::super) struct State<'a> {
    claims: Vec<&'a Value>,
    /// Those without devices.
    waiting: Vec<&'a Value>,
    taken: Taken<'a>,
    extended: Option<Extended<'a>>,
}

/// The allocations of a pod on a node.
#[derive(Default)]
pub(in super::super) struct Allocated {
    /// The allocations of those of its claims that have none.
    pub claims: Vec<Value>,
    /// The claim for its extended resources, and its allocation.
    pub special: Option<(Special, Value)>,
}

impl<'a> State<'a> {
    /// Looks at the claims of a pod. The error is one that no node can help.
    pub(in super::super) fn new(pod: &'a PodInfo, cluster: &'a Cluster) -> Result<Self, String> {
        let claims = claims_of(&pod.object, cluster)?;
        let extended = Extended::of(pod, cluster);
        if claims.is_empty() && extended.is_none() {
            return Ok(Self::default());
        }
        let mut waiting = Vec::new();
        for claim in &claims {
            if !is_allocated(claim) {
                Request::of(claim, cluster)?;
                waiting.push(*claim);
            } else if list(claim, "status.reservedFor").len() >= RESERVED_MAX
                && !is_reserved_for(claim, &pod.object)
            {
                return Err("resourceclaim in use".to_owned());
            }
        }
        let taken = if waiting.is_empty() && extended.is_none() {
            Taken::default()
        } else {
            Taken::of(cluster.device_claims.values())
        };
        Ok(Self {
            claims,
            waiting,
            taken,
            extended,
        })
    }

    fn is_out_of_reach(claim: &Value, node: &NodeInfo) -> bool {
        let selector = at(claim, "status.allocation.nodeSelector").filter(|selector| selector.is_object());
        selector.is_some_and(|selector| {
            !list(selector, "nodeSelectorTerms")
                .iter()
                .any(|term| term_matches(term, node.labels(), node.name()))
        })
    }

    /// The allocations on a node for the claims that have none. None if there are not enough devices.
    pub(in super::super) fn allocate(
        &self,
        cluster: &'a Cluster,
        node: &NodeInfo,
    ) -> Result<Option<Allocated>, Failure> {
        let special = match &self.extended {
            Some(Extended::Asked(pod, asked)) => Special::of(pod, asked, node, cluster),
            _ => None,
        };
        let mut waiting = self.waiting.clone();
        waiting.extend(special.as_ref().map(|special| &special.claim));
        if waiting.is_empty() {
            return Ok(Some(Allocated::default()));
        }
        let Some(found) = search::find(cluster, node, &waiting, &self.taken)? else {
            return Ok(None);
        };
        let mut claims = result::allocations(&found, &waiting, node);
        let special = special.clone().and_then(|special| Some((special, claims.pop()?)));
        Ok(Some(Allocated { claims, special }))
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.extended.is_none()
    }

    /// A claim for the pod's extended resources that is left from an earlier try, and goes.
    pub(in super::super) fn left(&self) -> Option<&'a Value> {
        match self.extended {
            Some(Extended::Left(claim)) => Some(claim),
            _ => None,
        }
    }

    pub(in super::super) fn refuse(&self, cluster: &'a Cluster, node: &NodeInfo) -> Option<Refusal> {
        if self.left().is_some() {
            return Some(Refusal::hopeless("cannot schedule extended resource claim"));
        }
        match self.allocate(cluster, node) {
            Ok(Some(_)) => {}
            Ok(None) => return Some(Refusal::hopeless("cannot allocate all claims")),
            Err(Failure::Here(why)) => return Some(Refusal::hopeless(&why)),
            Err(Failure::Wrong(why)) => {
                return Some(Refusal::error(&format!(
                    "running \"DynamicResources\" filter plugin: {why}"
                )));
            }
        }
        self.claims
            .iter()
            .any(|claim| Self::is_out_of_reach(claim, node))
            .then(|| Refusal::hopeless(ELSEWHERE))
    }

    /// How much a node is to be preferred: the earlier ways of requests with several are the better ones.
    pub(in super::super) fn score(&self, cluster: &'a Cluster, node: &NodeInfo) -> i64 {
        let has_ways = |claim: &&Value| {
            list(claim, "spec.devices.requests")
                .iter()
                .any(|request| !list(request, "firstAvailable").is_empty())
        };
        if !self.claims.iter().any(has_ways) {
            return 0;
        }
        let mut fresh = self
            .allocate(cluster, node)
            .ok()
            .flatten()
            .unwrap_or_default()
            .claims
            .into_iter();
        let each = self.claims.iter().map(|claim| {
            let allocation = if is_allocated(claim) {
                at(claim, "status.allocation").cloned()
            } else {
                fresh.next()
            };
            allocation.map_or(0, |allocation| preference(claim, &allocation))
        });
        each.sum()
    }

    /// A claim whose devices are out of the nodes' reach, and that no other pod uses: it may get others.
    pub(in super::super) fn idle(&self, pod: &Value, nodes: &[&NodeInfo]) -> Option<&'a Value> {
        self.claims.iter().copied().find(|claim| {
            is_allocated(claim)
                && nodes.iter().any(|node| Self::is_out_of_reach(claim, node))
                && list(claim, "status.reservedFor")
                    .iter()
                    .all(|one| text(one, "uid") == pod.uid())
                && list(claim, "status.reservedFor").len() <= 1
        })
    }

    /// The message about the claims of a pod that fits nowhere.
    pub(in super::super) fn said(&self, freed: bool) -> &'static str {
        if self.is_empty() {
            super::super::message::NO_CLAIMS
        } else if freed {
            "deallocation of ResourceClaim completed"
        } else if self.left().is_some() {
            "deletion of ResourceClaim completed"
        } else {
            "still not schedulable"
        }
    }

    /// The claims as they are written when the pod goes to a node: those that have to be, with their allocation if they had
    /// none, and with the pod among those that they are reserved for.
    pub(in super::super) fn reserved(&self, pod: &Value, allocations: Vec<Value>, stamp: &str) -> Vec<Value> {
        let mut fresh = allocations.into_iter();
        let unreserved = self.claims.iter().filter_map(|claim| {
            let allocation = (!is_allocated(claim)).then(|| fresh.next()).flatten();
            if is_reserved_for(claim, pod) {
                return None;
            }
            let mut claim = Value::clone(claim);
            reserve(&mut claim, pod, allocation, stamp);
            Some(claim)
        });
        unreserved.collect()
    }
}

/// Puts a pod among those that a claim is reserved for, with its allocation if it had none.
pub(in super::super) fn reserve(claim: &mut Value, pod: &Value, allocation: Option<Value>, stamp: &str) {
    if let Some(allocation) = allocation {
        claim["status"]["allocation"] = allocation;
    }
    if at(claim, "status.allocation.allocationTimestamp").is_none() {
        claim["status"]["allocation"]["allocationTimestamp"] = json!(stamp);
    }
    let mut reserved = list(claim, "status.reservedFor").to_vec();
    reserved.push(json!({"resource": "pods", "name": pod.name(), "uid": pod.uid()}));
    claim["status"]["reservedFor"] = Value::from(reserved);
}

/// The real one's: eight for the first way of a request, one less for each after it.
fn preference(claim: &Value, allocation: &Value) -> i64 {
    const FIRST: i64 = 8;
    let taken: Vec<&str> = list(allocation, "devices.results")
        .iter()
        .map(|result| text(result, "request"))
        .collect();
    let mut score = 0;
    for request in list(claim, "spec.devices.requests") {
        let ways = list(request, "firstAvailable")
            .iter()
            .map(|way| text(way, "name"));
        for (place, way) in (0..).zip(ways) {
            let name = format!("{}/{way}", text(request, "name"));
            if taken.contains(&name.as_str()) {
                score += FIRST - place;
            }
        }
    }
    score
}
