//! Hints for services that ask by annotation for endpoints in the zones of their clients: pure.

use std::collections::BTreeMap;

use machinery::meta::{at, string_map};
use machinery::types::Quantity;
use shared_json::{Value, json};

use super::runtime::{is_true, text};

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// The annotations that ask; the first is the older one, and counts where both are there.
const ANNOTATIONS: [&str; 2] = [
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
];
/// Nodes with any of these labels take no part.
const APART: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];
/// By how much more than its share an endpoint may be asked (the real one's).
const OVERLOAD: f64 = 0.2;

/// Of each zone, its share of all processors.
pub(super) type Shares = BTreeMap<String, f64>;

/// Of each zone, how many endpoints are for it.
pub(super) type Zones = BTreeMap<String, i64>;

/// Whether a service asks for hints by annotation.
pub(super) fn is_asked(service: &Value) -> bool {
    let annotations = string_map(service, "annotations");
    let said = ANNOTATIONS.iter().find_map(|name| annotations.get(*name));
    said.and_then(Value::as_str)
        .is_some_and(|mode| matches!(mode, "Auto" | "auto"))
}

/// The deciding properties of a node: whether it is ready, and its zone.
pub(super) fn place(node: &Value) -> (bool, Option<&str>) {
    let zone = string_map(node, "labels").get(ZONE_LABEL).and_then(Value::as_str);
    (is_true(node, "Ready"), zone)
}

/// The shares of the zones; none if one node says too little, or there are not two zones.
pub(super) fn shares<'a>(nodes: impl Iterator<Item = &'a Value>) -> Option<Shares> {
    let mut zones: BTreeMap<String, i128> = BTreeMap::new();
    for node in nodes {
        let labels = string_map(node, "labels");
        let (is_ready, zone) = place(node);
        if !is_ready || APART.iter().any(|label| labels.contains_key(*label)) {
            continue;
        }
        let processors = at(node, "status.allocatable.cpu").map_or(0, |cpu| Quantity::of(cpu).nanos());
        let zone = zone.filter(|zone| !zone.is_empty() && processors > 0)?;
        *zones.entry(zone.to_owned()).or_default() += processors;
    }
    let all: i128 = zones.values().sum();
    let share = |of_zone: i128| thousandths(of_zone) / thousandths(all);
    (zones.len() > 1).then(|| {
        zones
            .into_iter()
            .map(|(zone, of_zone)| (zone, share(of_zone)))
            .collect()
    })
}

fn thousandths(nanos: i128) -> f64 {
    exact(i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn exact(count: i64) -> f64 {
    count as f64
}

fn is_ready(endpoint: &Value) -> bool {
    at(endpoint, "conditions.ready").and_then(Value::as_bool) == Some(true)
}

/// The fewest endpoints that serve such a share of so many.
fn fewest(share: f64, all: i64) -> f64 {
    (share * exact(all) / (1.0 + OVERLOAD)).ceil()
}

/// Gives every endpoint that is ready its zone, or that of another zone that has too few; or says why none gets any.
pub(super) fn give_hints(endpoints: &mut [&mut Value], shares: Option<&Shares>) -> Result<Zones, String> {
    let Some(shares) = shares else {
        return Err(
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
                .to_owned(),
        );
    };
    let ready = endpoints.iter().filter(|endpoint| is_ready(endpoint)).count();
    let ready = i64::try_from(ready).unwrap_or(i64::MAX);
    let zones = i64::try_from(shares.len()).unwrap_or(i64::MAX);
    let of_zones = format!("({ready} endpoints, {zones} zones)");
    if zones > ready {
        return Err(format!("Insufficient number of endpoints {of_zones}"));
    }
    let least: f64 = shares.values().map(|share| fewest(*share, ready)).sum();
    if least > exact(ready) {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold {of_zones}"
        ));
    }
    let mut given = Zones::new();
    for endpoint in endpoints.iter_mut().filter(|endpoint| is_ready(endpoint)) {
        let zone = text(endpoint, "zone").to_owned();
        if zone.is_empty() {
            return Err("One or more endpoints do not have a zone specified".to_owned());
        }
        endpoint["hints"] = json!({"forZones": [{"name": zone}]});
        *given.entry(zone).or_default() += 1;
    }
    let (mut giving, mut receiving) = moves(shares, &given, ready);
    for endpoint in endpoints.iter_mut().filter(|endpoint| is_ready(endpoint)) {
        let zone = text(endpoint, "zone").to_owned();
        let Some(left) = giving.get_mut(&zone).filter(|left| **left > 0) else {
            continue;
        };
        let Some((other, wanted)) = receiving.iter_mut().find(|(_, wanted)| **wanted > 0) else {
            break;
        };
        *left -= 1;
        *wanted -= 1;
        endpoint["hints"] = json!({"forZones": [{"name": other}]});
        *given.entry(other.clone()).or_default() += 1;
        *given.entry(zone).or_default() -= 1;
    }
    Ok(given)
}

/// How many endpoints zones give to others, and how many they get.
fn moves(shares: &Shares, given: &Zones, ready: i64) -> (Zones, Zones) {
    let mut over: BTreeMap<&String, f64> = shares
        .iter()
        .map(|(zone, share)| {
            let wanted = (share * exact(ready)).max(fewest(*share, ready));
            (zone, exact(given.get(zone).copied().unwrap_or(0)) - wanted)
        })
        .collect();
    let most = |over: &BTreeMap<&String, f64>, sign: f64| {
        let mut found: Option<(String, f64)> = None;
        for (zone, over) in over {
            let much = over * sign;
            if much > found.as_ref().map_or(0.0, |(_, most)| *most) {
                found = Some(((*zone).clone(), much));
            }
        }
        found
    };
    let (mut giving, mut receiving) = (Zones::new(), Zones::new());
    while let Some(((from, gives), (to, gets))) = most(&over, 1.0).zip(most(&over, -1.0)) {
        if (gives < 1.0 && gets < 1.0) || gives < 0.5 || gets < 0.5 {
            break;
        }
        for (zone, change) in [(&from, -1.0), (&to, 1.0)] {
            if let Some(over) = over.get_mut(zone) {
                *over += change;
            }
        }
        *giving.entry(from).or_default() += 1;
        *receiving.entry(to).or_default() += 1;
    }
    (giving, receiving)
}

/// Whether a zone has too few of the endpoints that were given out.
pub(super) fn is_overloaded(given: &Zones, shares: Option<&Shares>) -> bool {
    let all: i64 = given.values().sum();
    !given.is_empty()
        && shares.is_none_or(|shares| {
            shares.iter().any(|(zone, share)| {
                given
                    .get(zone)
                    .is_none_or(|count| exact(*count) < fewest(*share, all))
            })
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Nodes in short: zone, processors, and `-` if it is not ready, `c` if it is of the control plane.
    fn nodes(short: &str) -> Vec<Value> {
        let node = |short: &str| {
            let mut parts = short.split(' ');
            let (zone, cpu) = (parts.next().unwrap(), parts.next().unwrap());
            let rest: Vec<&str> = parts.collect();
            let ready = if rest.contains(&"-") { "False" } else { "True" };
            let mut labels = json!({});
            if zone != "_" {
                labels[ZONE_LABEL] = json!(zone);
            }
            if rest.contains(&"c") {
                labels[APART[0]] = json!("");
            }
            json!({"metadata": {"labels": labels}, "status": {"allocatable": {"cpu": cpu},
                "conditions": [{"type": "Ready", "status": ready}]}})
        };
        short.split_terminator(", ").map(node).collect()
    }

    #[rstest]
    #[case::two("a 1, b 1", Some("a .50 b .50"))]
    #[case::uneven("a 1, b 3", Some("a .25 b .75"))]
    #[case::several_in_one("a 1, a 500m, b 500m", Some("a .75 b .25"))]
    #[case::one_zone("a 1, a 1", None)]
    #[case::none("", None)]
    #[case::without_zone("a 1, b 1, _ 1", None)]
    #[case::without_processors("a 1, b 1, c 0", None)]
    #[case::not_ready("a 1, b 1, _ 0 -", Some("a .50 b .50"))]
    #[case::control_plane("a 1, b 1, c 4 c", Some("a .50 b .50"))]
    fn shares_of_zones(#[case] short: &str, #[case] expected: Option<&str>) {
        let nodes = nodes(short);
        let found = shares(nodes.iter()).map(|shares| {
            let parts: Vec<String> = shares
                .iter()
                .map(|(zone, share)| format!("{zone} {}", format!("{share:.2}").trim_start_matches('0')))
                .collect();
            parts.join(" ")
        });
        assert_eq!(found.as_deref(), expected);
    }

    /// Endpoints by the letter of their zone (`_`: none; a capital: not ready), and the zones that they are for.
    #[rstest]
    #[case::at_home("a 1, b 1", "aabb", "aabb")]
    #[case::one_moves("a 1, b 1", "aaab", "baab")]
    #[case::all_in_one("a 1, b 1", "aaaa", "bbaa")]
    #[case::by_share("a 1, b 3", "aaaabbbb", "bbaabbbb")]
    #[case::little_is_left_alone("a 1, b 1", "aaaabbb", "aaaabbb")]
    #[case::five_are_too_many_for_some(
        "a 1, b 1",
        "aaabb",
        "!Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (5 endpoints, 2 zones)"
    )]
    #[case::not_ready("a 1, b 1", "aAbB", "a.b.")]
    #[case::too_few("a 1, b 1", "a", "!Insufficient number of endpoints (1 endpoints, 2 zones)")]
    #[case::too_few_ready("a 1, b 1", "aB", "!Insufficient number of endpoints (1 endpoints, 2 zones)")]
    #[case::without_zone("a 1, b 1", "a_", "!One or more endpoints do not have a zone specified")]
    #[case::too_uneven(
        "a 1, b 9",
        "abb",
        "!Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 2 zones)"
    )]
    #[case::unknown_nodes(
        "a 1",
        "ab",
        "!Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
    )]
    fn hints(#[case] short: &str, #[case] zones: &str, #[case] expected: &str) {
        let nodes = nodes(short);
        let mut endpoints: Vec<Value> = zones
            .chars()
            .map(|zone| {
                let mut endpoint = json!({"conditions": {"ready": !zone.is_uppercase()}});
                if zone != '_' {
                    endpoint["zone"] = json!(zone.to_lowercase().to_string());
                }
                endpoint
            })
            .collect();
        let mut all: Vec<&mut Value> = endpoints.iter_mut().collect();
        let found = give_hints(&mut all, shares(nodes.iter()).as_ref());
        let shown = match found {
            Err(why) => format!("!{why}"),
            Ok(_) => endpoints
                .iter()
                .map(|endpoint| match endpoint.pointer("/hints/forZones/0/name") {
                    Some(zone) => zone.as_str().unwrap().to_owned(),
                    None => ".".to_owned(),
                })
                .collect(),
        };
        assert_eq!(shown, expected);
    }

    #[rstest]
    #[case(&[("a", 2), ("b", 2)], "a 1, b 1", false)]
    #[case(&[("a", 3), ("b", 1)], "a 1, b 1", true)]
    #[case(&[("a", 2)], "a 1, b 1", true)]
    #[case(&[("a", 2)], "a 1", true)]
    #[case(&[], "a 1", false)]
    fn overload(#[case] given: &[(&str, i64)], #[case] short: &str, #[case] expected: bool) {
        let given: Zones = given
            .iter()
            .map(|(zone, count)| ((*zone).to_owned(), *count))
            .collect();
        let nodes = nodes(short);
        assert_eq!(is_overloaded(&given, shares(nodes.iter()).as_ref()), expected);
    }
}
