//! Scores of the feasible nodes of a pod: the real scheduler's default plugins and weights.

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::tolerates;
use shared_json::Value;

use super::cluster::{NodeInfo, PodInfo, list, text};
use super::filters::{
    Cycle, affinity_terms, includes_node, is_about, preferences, preferred_nodes, spread_constraints,
    spread_counts,
};

/// The largest score that one of them gives.
const SCORE_MAX: i64 = 100;
/// The weight of a pod's required affinity for the pods that it requires.
const REQUIRED_WEIGHT: i64 = 1;
/// Images count from this size on, and no more than this for each container (bytes).
const IMAGE_LEAST: i64 = 23 * 1024 * 1024;
const IMAGE_MOST: i64 = 1000 * 1024 * 1024;
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Over which places pods of a set or service are spread that say nothing of it, and the skew that is let pass.
const DEFAULT_SPREAD: [(&str, i64); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

/// A score of each node.
type Score = fn(&Cycle<'_>, &[&NodeInfo]) -> Vec<i64>;

const SCORES: [(Score, i64); 8] = [
    (taints, 3),
    (preferred, 2),
    (spread, 2),
    (beside, 2),
    (devices, 2),
    (least_allocated, 1),
    (balanced, 1),
    (images, 1),
];

/// The best of some nodes. Among equals the one with the fewest pods, then the first by name.
pub(super) fn best(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Option<String> {
    let mut totals = vec![0; nodes.len()];
    if nodes.len() > 1 {
        for (score, weight) in SCORES {
            for (total, value) in totals.iter_mut().zip(score(cycle, nodes)) {
                *total += value * weight;
            }
        }
    }
    nodes
        .iter()
        .zip(totals)
        .min_by_key(|(node, total)| (-total, node.pods.len(), node.name()))
        .map(|(node, _)| node.name().to_owned())
}

/// The score of the devices that claims prefer.
fn devices(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let score = |node: &&NodeInfo| cycle.devices.score(cycle.cluster, node);
    share_of_most(nodes.iter().map(score).collect(), false)
}

/// As shares of the largest; `reverse` where less is better.
fn share_of_most(raw: Vec<i64>, reverse: bool) -> Vec<i64> {
    let most = raw.iter().max().copied().unwrap_or_default();
    let share = |value: i64| if most == 0 { 0 } else { SCORE_MAX * value / most };
    raw.into_iter()
        .map(|value| {
            if reverse {
                SCORE_MAX - share(value)
            } else {
                share(value)
            }
        })
        .collect()
}

/// How few taints there are that the pod would rather avoid.
fn taints(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let tolerations: Vec<&Value> = list(&cycle.pod.object, "spec.tolerations")
        .iter()
        .filter(|toleration| matches!(text(toleration, "effect"), "" | "PreferNoSchedule"))
        .collect();
    let count = |node: &&NodeInfo| {
        let intolerable = node.taints.iter().filter(|taint| {
            text(taint, "effect") == "PreferNoSchedule"
                && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
        });
        i64::try_from(intolerable.count()).unwrap_or(i64::MAX)
    };
    share_of_most(nodes.iter().map(count).collect(), true)
}

/// The weight of the pod's preferences that a node meets.
fn preferred(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    if preferences(&cycle.pod.object).is_empty() {
        return vec![0; nodes.len()];
    }
    let raw = nodes.iter().map(|node| preferred_nodes(&cycle.pod.object, node));
    share_of_most(raw.collect(), false)
}

/// Of each resource how much a node has, and how much of it is taken.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// How much of a node would be left, in percent.
fn least_allocated(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let left = |node: &&NodeInfo| {
        let shares = RESOURCES.iter().enumerate().filter_map(|(index, name)| {
            let has = node
                .allocatable
                .get(*name)
                .copied()
                .filter(|amount| *amount > 0)?;
            let used = node.scored[index] + cycle.pod.scored[index];
            Some((has - used).max(0) * 100 / has)
        });
        let (sum, count) = shares.fold((0, 0), |(sum, count), share| (sum + share, count + 1));
        i64::try_from(sum / i128::max(count, 1)).unwrap_or_default()
    };
    nodes.iter().map(left).collect()
}

/// How much more evenly a node's resources are used with the pod than without: 75 if that stays the same.
fn balanced(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let asked = |name: &str| cycle.pod.requests.get(name).copied().unwrap_or_default();
    if RESOURCES.iter().all(|name| asked(name) == 0) {
        return vec![0; nodes.len()];
    }
    // What is compared are whole percents, as the real one's floating numbers are cut off.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    let evenness = |node: &NodeInfo, more: &dyn Fn(&str) -> i128| {
        let shares: Vec<f64> = RESOURCES
            .iter()
            .filter_map(|name| {
                let has = node
                    .allocatable
                    .get(*name)
                    .copied()
                    .filter(|amount| *amount > 0)?;
                let used = node.requested.get(*name).copied().unwrap_or_default() + more(name);
                Some((used as f64 / has as f64).min(1.0))
            })
            .collect();
        let apart = match shares.as_slice() {
            [one, other] => ((one - other) / 2.0).abs(),
            _ => 0.0,
        };
        ((1.0 - apart) * SCORE_MAX as f64) as i64
    };
    nodes
        .iter()
        .map(|node| {
            let (with, without) = (evenness(node, &asked), evenness(node, &|_| 0));
            SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2
        })
        .collect()
}

/// How much of the pod's images a node has, the less of them the more seldom they are.
fn images(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let spec = |field: &str| list(&cycle.pod.object, &format!("spec.{field}"));
    let containers: Vec<&Value> = spec("initContainers").iter().chain(spec("containers")).collect();
    let named = containers.iter().map(|container| text(container, "image"));
    let mounted = spec("volumes")
        .iter()
        .map(|volume| text(volume, "image.reference"));
    let wanted: Vec<String> = named
        .chain(mounted)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let tagged = name.rfind(':') > name.rfind('/');
            if tagged {
                name.to_owned()
            } else {
                format!("{name}:latest")
            }
        })
        .filter(|name| cycle.cluster.nodes_with_image(name) > 0)
        .collect();
    let total = i64::try_from(cycle.cluster.nodes.len())
        .unwrap_or(i64::MAX)
        .max(1);
    let most = IMAGE_MOST.saturating_mul(i64::try_from(containers.len()).unwrap_or(1).max(1));
    let of_node = |node: &&NodeInfo| {
        let mut sum = 0;
        for name in &wanted {
            let here = list(&node.object, "status.images")
                .iter()
                .find(|image| list(image, "names").iter().any(|other| other == name));
            let size = here
                .and_then(|image| image.get("sizeBytes"))
                .and_then(Value::as_i64);
            sum += size.unwrap_or_default() * cycle.cluster.nodes_with_image(name) / total;
        }
        SCORE_MAX * (sum.clamp(IMAGE_LEAST, most) - IMAGE_LEAST) / (most - IMAGE_LEAST)
    };
    if wanted.is_empty() {
        return vec![0; nodes.len()];
    }
    nodes.iter().map(of_node).collect()
}

/// A soft constraint: its key, the skew that is let pass, and how many pods there are in each place, or on each node.
struct Soft {
    key: String,
    skew: i64,
    counts: BTreeMap<String, i64>,
}

/// The soft constraints of a pod with their weights.
fn soft(cycle: &Cycle<'_>) -> Vec<Soft> {
    let all = cycle.cluster.nodes.values();
    let pod = cycle.pod;
    let own: Vec<&Value> = spread_constraints(&pod.object, false).collect();
    let keys: Vec<&str> = own
        .iter()
        .map(|constraint| text(constraint, "topologyKey"))
        .collect();
    let place = |node: &NodeInfo, key: &str| {
        if key == HOSTNAME {
            Some(node.name().to_owned())
        } else {
            node.label(key).map(str::to_owned)
        }
    };
    if !list(&pod.object, "spec.topologySpreadConstraints").is_empty() {
        return own
            .iter()
            .map(|constraint| {
                let key = text(constraint, "topologyKey");
                let mut counts = BTreeMap::new();
                for node in all.clone() {
                    let counted = keys.iter().all(|key| node.label(key).is_some())
                        && (key == HOSTNAME || includes_node(constraint, &pod.object, node));
                    let Some(place) = place(node, key).filter(|_| counted) else {
                        continue;
                    };
                    let here = node
                        .pods
                        .values()
                        .filter(|other| spread_counts(constraint, pod, other));
                    *counts.entry(place).or_default() += i64::try_from(here.count()).unwrap_or(i64::MAX);
                }
                Soft {
                    key: key.to_owned(),
                    skew: constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(1),
                    counts,
                }
            })
            .collect();
    }
    let Some(equals) = equals(cycle) else {
        return Vec::new();
    };
    DEFAULT_SPREAD
        .iter()
        .map(|(key, skew)| {
            let mut counts = BTreeMap::new();
            for (name, count) in &equals {
                let node = cycle.cluster.nodes.get(name);
                if let Some(place) = node.and_then(|node| place(node, key)) {
                    *counts.entry(place).or_default() += count;
                }
            }
            Soft {
                key: (*key).to_owned(),
                skew: *skew,
                counts,
            }
        })
        .collect()
}

/// How many pods of the same set or service each node has; none if the pod is of neither.
fn equals(cycle: &Cycle<'_>) -> Option<BTreeMap<String, i64>> {
    let pod = cycle.pod;
    if pod.owner.is_some() {
        return Some(cycle.cluster.equals(pod).cloned().unwrap_or_default());
    }
    let namespace = pod.object.namespace();
    let selects = |selector: &Value, other: &PodInfo| {
        let wanted = selector.as_object().filter(|wanted| !wanted.is_empty());
        wanted.is_some_and(|wanted| {
            wanted
                .iter()
                .all(|(key, value)| other.labels().get(key) == Some(value))
        })
    };
    let of_namespace = (namespace.to_owned(), String::new())..;
    let selectors: Vec<&Value> = cycle
        .cluster
        .services
        .range(of_namespace)
        .take_while(|((other, _), _)| other == namespace)
        .map(|(_, selector)| selector)
        .filter(|selector| selects(selector, pod))
        .collect();
    if selectors.is_empty() {
        return None;
    }
    let mut out = BTreeMap::new();
    for node in cycle.cluster.nodes.values() {
        let here = node.pods.values().filter(|other| {
            other.object.namespace() == namespace
                && !other.object.is_terminating()
                && selectors.iter().all(|selector| selects(selector, other))
        });
        let count = i64::try_from(here.count()).unwrap_or(i64::MAX);
        if count > 0 {
            out.insert(node.name().to_owned(), count);
        }
    }
    Some(out)
}

/// How few pods that soft constraints count are in the node's places.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn spread(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let constraints = soft(cycle);
    if constraints.is_empty() {
        return vec![0; nodes.len()];
    }
    let by_default = list(&cycle.pod.object, "spec.topologySpreadConstraints").is_empty();
    let is_ignored = |node: &NodeInfo| {
        !by_default
            && constraints
                .iter()
                .any(|constraint| node.label(&constraint.key).is_none())
    };
    let counted = nodes.iter().filter(|node| !is_ignored(node));
    let weights: Vec<f64> = constraints
        .iter()
        .map(|constraint| {
            let places = if constraint.key == HOSTNAME {
                counted.clone().count()
            } else {
                let mut values: Vec<Option<&str>> =
                    counted.clone().map(|node| node.label(&constraint.key)).collect();
                values.sort_unstable();
                values.dedup();
                values.len()
            };
            (places as f64 + 2.0).ln()
        })
        .collect();
    let raw: Vec<Option<i64>> = nodes
        .iter()
        .map(|node| {
            if is_ignored(node) {
                return None;
            }
            let mut score = 0.0;
            for (constraint, weight) in constraints.iter().zip(&weights) {
                let Some(place) = node.label(&constraint.key) else {
                    continue;
                };
                let place = if constraint.key == HOSTNAME {
                    node.name()
                } else {
                    place
                };
                let count = constraint.counts.get(place).copied().unwrap_or_default();
                score += count as f64 * weight + (constraint.skew - 1) as f64;
            }
            Some(score.round() as i64)
        })
        .collect();
    let (least, most) = (
        raw.iter().flatten().min().copied().unwrap_or_default(),
        raw.iter().flatten().max().copied().unwrap_or_default(),
    );
    raw.into_iter()
        .map(|score| match score {
            None => 0,
            Some(_) if most == 0 => SCORE_MAX,
            Some(score) => SCORE_MAX * (most + least - score) / most,
        })
        .collect()
}

/// The weight of the pods that it prefers to be beside, less that of those it prefers not to be, and of those that prefer
/// or require it beside them, less that of those that prefer not.
fn beside(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let (cluster, pod) = (cycle.cluster, cycle.pod);
    let kinds = [("podAffinity", 1), ("podAntiAffinity", -1)];
    let own = kinds
        .iter()
        .any(|(kind, _)| !affinity_terms(&pod.object, kind, false).is_empty());
    if !own && cluster.caring == 0 {
        return vec![0; nodes.len()];
    }
    let mut places: BTreeMap<(String, String), i64> = BTreeMap::new();
    let mut count = |term: &Value, node: &NodeInfo, weight: i64| {
        let key = text(term, "topologyKey");
        if let Some(value) = node.label(key) {
            *places.entry((key.to_owned(), value.to_owned())).or_default() += weight;
        }
    };
    for node in cluster.nodes.values() {
        for other in node.pods.values() {
            for (of, about) in [(pod, other), (other, pod)] {
                for (kind, sign) in kinds {
                    for preference in affinity_terms(&of.object, kind, false) {
                        let weight = preference.get("weight").and_then(Value::as_i64).unwrap_or(1);
                        let term = at(preference, "podAffinityTerm");
                        if let Some(term) = term.filter(|term| is_about(cluster, term, &of.object, about)) {
                            count(term, node, sign * weight);
                        }
                    }
                }
            }
            for term in affinity_terms(&other.object, "podAffinity", true) {
                if is_about(cluster, term, &other.object, pod) {
                    count(term, node, REQUIRED_WEIGHT);
                }
            }
        }
    }
    let raw: Vec<i64> = nodes
        .iter()
        .map(|node| {
            let here = places
                .iter()
                .filter(|((key, value), _)| node.label(key) == Some(value.as_str()));
            here.map(|(_, weight)| weight).sum()
        })
        .collect();
    let (least, most) = (
        raw.iter().min().copied().unwrap_or_default(),
        raw.iter().max().copied().unwrap_or_default(),
    );
    raw.into_iter()
        .map(|value| {
            if most == least {
                0
            } else {
                SCORE_MAX * (value - least) / (most - least)
            }
        })
        .collect()
}
