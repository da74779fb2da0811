//! Eviction rates of pods on lost nodes, by the state of their zones: pure.
//!
//! One node after the other in a zone; hardly any, or none, where most of it is lost; none where all nodes of all zones are, for
//! then it is the controller that has lost them.

use std::collections::BTreeMap;
use std::time::Duration;

use machinery::meta::string_map;
use shared_json::Value;

use super::runtime::{condition, text};

/// The time from one node of a zone to the next (the real default: 0.1 nodes a second).
const PACE: Duration = Duration::from_secs(10);
/// The same in a large zone of which most is lost.
const SLOW_PACE: Duration = Duration::from_secs(100);
/// Zones of more nodes are large. In smaller ones no node loses its pods while most are lost.
const LARGE: usize = 50;
/// From how many lost nodes in a hundred on most of a zone is lost; and how few never are most of it.
const MOST_PERCENT: usize = 55;
const FEW: usize = 2;

/// Nodes with this label say nothing of their zones.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// A zone's nodes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zone {
    pub ready: usize,
    pub lost: usize,
}

/// The zones of a cluster, by region and name.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<(String, String), Zone>);

/// A node's region and zone.
pub(super) fn zone_of(node: &Value) -> (String, String) {
    let labels = string_map(node, "labels");
    let said = |newer: &str, older: &str| {
        let value = labels.get(newer).or_else(|| labels.get(older));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    (
        said(
            "topology.kubernetes.io/region",
            "failure-domain.beta.kubernetes.io/region",
        ),
        said(
            "topology.kubernetes.io/zone",
            "failure-domain.beta.kubernetes.io/zone",
        ),
    )
}

impl Zones {
    pub(super) fn of<'a>(nodes: impl Iterator<Item = &'a Value>) -> Self {
        let mut zones = Self::default();
        for node in nodes.filter(|node| !string_map(node, "labels").contains_key(EXCLUDED)) {
            let zone = zones.0.entry(zone_of(node)).or_default();
            let is_ready = condition(node, "Ready").is_some_and(|ready| text(ready, "status") == "True");
            if is_ready {
                zone.ready += 1;
            } else {
                zone.lost += 1;
            }
        }
        zones
    }

    /// Whether no node of any zone is ready.
    pub(super) fn are_all_lost(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|zone| zone.ready == 0)
    }

    /// The time from one lost node of a zone to the next until their pods have to go; none if they do not have to.
    pub(super) fn pace(&self, zone: &(String, String)) -> Option<Duration> {
        if self.are_all_lost() {
            return None;
        }
        let Zone { ready, lost } = self.0.get(zone).copied().unwrap_or_default();
        let size = ready + lost;
        let is_most = lost > FEW && lost * 100 >= size * MOST_PERCENT;
        if ready == 0 || !is_most {
            return Some(PACE);
        }
        (size > LARGE).then_some(SLOW_PACE)
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    /// Zones as `name ready/lost`, those whose nodes say nothing of them behind `-`; the zone in question; seconds from one node to the next.
    #[track_caller]
    fn check(zones: &str, zone: &str, expected: Option<u64>) {
        let mut nodes = Vec::new();
        for zone in zones.split(", ") {
            let (name, counts) = zone.split_once(' ').unwrap();
            let (ready, lost) = counts.split_once('/').unwrap();
            let excluded = name.starts_with('-');
            let name = name.trim_start_matches('-');
            let mut more = |count: &str, status: &str| {
                for _ in 0..count.parse::<usize>().unwrap() {
                    let mut node = json!({
                        "metadata": {"labels": {"topology.kubernetes.io/zone": name}},
                        "status": {"conditions": [{"type": "Ready", "status": status}]},
                    });
                    if excluded {
                        node["metadata"]["labels"][EXCLUDED] = json!("");
                    }
                    nodes.push(node);
                }
            };
            more(ready, "True");
            more(lost, "False");
        }
        let pace = Zones::of(nodes.iter()).pace(&(String::new(), zone.to_owned()));
        assert_eq!(pace, expected.map(Duration::from_secs), "{zones}: {zone}");
    }

    #[test]
    fn how_fast_pods_go() {
        check("a 2/1", "a", Some(10));
        check("a 1/1", "a", Some(10));
        check("a 1/2", "a", Some(10));
        // From three on it may be most of the zone.
        check("a 1/3", "a", None);
        check("a 2/3", "a", None);
        check("a 3/3", "a", Some(10));
        check("a 45/55", "a", Some(100));
        check("a 46/54", "a", Some(10));
        check("a 20/30", "a", None);
        check("a 20/31", "a", Some(100));
        check("a 1/500", "a", Some(100));
        // A zone that is lost as a whole is evicted as fast as usual, while others are there.
        check("a 0/5, b 1/0", "a", Some(10));
        check("a 0/5, b 1/0", "b", Some(10));
        check("a 0/5, b 1/3", "b", None);
        check("a 0/1, b 0/1", "a", None);
        check("a 0/1", "a", None);
        check("a 0/80", "a", None);
        check("a 0/5, b 0/1, c 9/0", "b", Some(10));
        check("a 5/0", "a", Some(10));
        check("a 3/0, b 0/3", "b", Some(10));
        // Whoever is left out is no reason to evict, nor one not to.
        check("a 0/2, -b 1/0", "a", None);
        check("a 1/1, -a 0/9", "a", Some(10));
        check("a 1/3, -a 9/0", "a", None);
        check("-a 0/2", "a", Some(10));
    }

    #[test]
    fn where_nodes_are() {
        let zone = |labels: Value| zone_of(&json!({"metadata": {"labels": labels}}));
        let of = |region: &str, zone: &str| (region.to_owned(), zone.to_owned());
        assert_eq!(zone(json!({})), of("", ""));
        assert_eq!(zone(json!({"topology.kubernetes.io/zone": "z"})), of("", "z"));
        assert_eq!(
            zone(
                json!({"failure-domain.beta.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"})
            ),
            of("r", "z")
        );
        assert_eq!(
            zone(json!({"failure-domain.beta.kubernetes.io/zone": "y", "topology.kubernetes.io/zone": "z"})),
            of("", "z")
        );
    }
}
