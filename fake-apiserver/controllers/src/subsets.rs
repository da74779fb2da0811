//! The canonical form of Endpoints: addresses that share all their ports are one subset.
//!
//! As `RepackSubsets` of the real controller: each port has the addresses that serve it, ready or not; ports with the same
//! addresses belong together. Ports and subsets are in the order of hashes over Go's structs ([`go_dump`]).

use std::collections::BTreeMap;

use go_dump::{port_hash, subset_hash};
use shared_json::{Value, json};

use super::runtime::{list, text};

/// So many addresses Endpoints have at most (the real one's).
pub(super) const CAPACITY: usize = 1000;

/// An address and whether it is ready.
pub(super) type Address = (Value, bool);

/// By address and uid of the pod: as the addresses of a subset are sorted, by their text.
type AddressKey = (String, String);

/// The subsets of addresses, which come with the ports that they share; without ports there are none in the subset.
pub(super) fn repack(served: &[(Vec<Value>, Vec<Address>)]) -> Vec<Value> {
    let mut addresses: BTreeMap<AddressKey, &Value> = BTreeMap::new();
    let mut by_port: BTreeMap<String, (Option<&Value>, BTreeMap<AddressKey, bool>)> = BTreeMap::new();
    for (ports, entries) in served.iter().filter(|(_, entries)| !entries.is_empty()) {
        let none = ports.is_empty().then_some(None);
        for port in ports.iter().map(Some).chain(none) {
            let of = port.map(ToString::to_string).unwrap_or_default();
            let (_, served_by) = by_port.entry(of).or_insert_with(|| (port, BTreeMap::new()));
            for (address, ready) in entries {
                let key = key(address);
                addresses.entry(key.clone()).or_insert(address);
                let is_ready = served_by.entry(key).or_insert(true);
                *is_ready &= *ready;
            }
        }
    }
    let mut groups: BTreeMap<BTreeMap<AddressKey, bool>, Vec<&Value>> = BTreeMap::new();
    for (port, served_by) in by_port.into_values() {
        groups.entry(served_by).or_default().extend(port);
    }
    let subset = |(served_by, ports): (BTreeMap<AddressKey, bool>, Vec<&Value>)| {
        let mut subset = json!({});
        for (field, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            let of: Vec<&Value> = served_by
                .iter()
                .filter(|(_, is_ready)| **is_ready == ready)
                .filter_map(|(key, _)| addresses.get(key).copied())
                .collect();
            if !of.is_empty() {
                subset[field] = json!(of);
            }
        }
        if !ports.is_empty() {
            subset["ports"] = Value::from(sorted(ports.into_iter().cloned().collect(), port_hash));
        }
        subset
    };
    sorted(groups.into_iter().map(subset).collect(), subset_hash)
}

fn key(address: &Value) -> AddressKey {
    let uid = address.pointer("/targetRef/uid").and_then(Value::as_str);
    (text(address, "ip").to_owned(), uid.unwrap_or_default().to_owned())
}

/// Truncates the addresses to the capacity: those that are not ready are removed first, and each subset loses its share of the
/// excess. Tells whether any went.
pub(super) fn truncate(subsets: &mut [Value], capacity: usize) -> bool {
    let total = |field: &str| -> usize { subsets.iter().map(|subset| list(subset, field).len()).sum() };
    let (ready, others) = (total("addresses"), total("notReadyAddresses"));
    if ready + others <= capacity {
        return false;
    }
    let (field, of, room) = if ready > capacity {
        ("addresses", ready, capacity)
    } else {
        ("notReadyAddresses", others, capacity - ready)
    };
    let mut left = room;
    for subset in subsets {
        // As the real one computes it: rounded up, so that the last subsets get less.
        let part = list(subset, field).len() as f64 / of as f64;
        let share = ((part * room as f64).ceil() as usize).min(left);
        left -= cut(subset, field, share);
        if ready > capacity {
            cut(subset, "notReadyAddresses", 0);
        }
    }
    true
}

/// Leaves so many of a subset's addresses; gives how many there are then.
fn cut(subset: &mut Value, field: &str, count: usize) -> usize {
    let Some(addresses) = subset.get_mut(field).and_then(Value::as_array_mut) else {
        return 0;
    };
    let rest = addresses.len().min(count);
    addresses.truncate(rest);
    if rest == 0
        && let Some(map) = subset.as_object_mut()
    {
        map.remove(field);
    }
    rest
}

/// Sorts by a hash, which is not asked for where there is nothing to sort.
pub(super) fn sorted(mut values: Vec<Value>, hash: fn(&Value) -> u128) -> Vec<Value> {
    if values.len() > 1 {
        values.sort_by_cached_key(hash);
    }
    values
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn port(name: &str) -> Value {
        json!({"name": name, "port": 80, "protocol": "TCP"})
    }

    /// Addresses by their last number, and the names of their ports; the result, one subset a text:
    /// `ports: ready addresses - others`.
    fn check(entries: &[(&str, &str, bool)], expected: &[&str]) {
        let entries: Vec<(Vec<Value>, Vec<Address>)> = entries
            .iter()
            .map(|(ip, ports, ready)| {
                let ports = ports
                    .split(' ')
                    .filter(|name| !name.is_empty())
                    .map(port)
                    .collect();
                (ports, vec![(json!({"ip": format!("10.0.0.{ip}")}), *ready)])
            })
            .collect();
        let texts = |subset: &Value, field: &str, of: &str| {
            let items = subset
                .get(field)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let texts: Vec<String> = items
                .iter()
                .map(|item| text(item, of).replace("10.0.0.", ""))
                .collect();
            texts.join(" ")
        };
        let subsets: Vec<String> = repack(&entries)
            .iter()
            .map(|subset| {
                let addresses = texts(subset, "addresses", "ip");
                let others = texts(subset, "notReadyAddresses", "ip");
                format!("{}: {addresses} - {others}", texts(subset, "ports", "name"))
            })
            .collect();
        assert_eq!(subsets, expected, "{entries:?}");
    }

    #[test]
    fn subsets_of_addresses() {
        check(&[], &[]);
        assert!(repack(&[(vec![port("a")], Vec::new()), (Vec::new(), Vec::new())]).is_empty());
        check(&[("1", "a", true)], &["a: 1 - "]);
        check(&[("1", "", true), ("2", "", false)], &[": 1 - 2"]);
        check(
            &[("2", "a", true), ("10", "a", true), ("1", "a", true)],
            &["a: 1 10 2 - "],
        );
        check(&[("1", "a", false), ("2", "a", true)], &["a: 2 - 1"]);
        check(&[("1", "a b", true)], &["a b: 1 - "]);
        // A port that one of two pods lacks has a subset of its own.
        check(&[("1", "a b", true), ("2", "a", true)], &["b: 1 - ", "a: 1 2 - "]);
    }

    /// Of subsets so many ready addresses and others; how many stay of them.
    #[rstest]
    #[case(&[(5, 5)], &[(5, 5)], false)]
    #[case(&[(11, 0)], &[(10, 0)], true)]
    #[case(&[(0, 11)], &[(0, 10)], true)]
    #[case(&[(6, 5)], &[(6, 4)], true)]
    #[case(&[(10, 3)], &[(10, 0)], true)]
    #[case(&[(12, 3)], &[(10, 0)], true)]
    #[case(&[(10, 0), (10, 0)], &[(5, 0), (5, 0)], true)]
    #[case(&[(15, 7), (5, 1)], &[(8, 0), (2, 0)], true)]
    #[case(&[(1, 0), (1, 0), (30, 0)], &[(1, 0), (1, 0), (8, 0)], true)]
    #[case(&[(30, 0), (1, 0), (1, 0)], &[(10, 0), (0, 0), (0, 0)], true)]
    #[case(&[(4, 10), (2, 10)], &[(4, 2), (2, 2)], true)]
    #[case(&[(0, 1), (6, 10)], &[(0, 1), (6, 3)], true)]
    fn what_is_too_much(
        #[case] subsets: &[(usize, usize)],
        #[case] expected: &[(usize, usize)],
        #[case] any: bool,
    ) {
        let of = |count: usize| vec![json!({"ip": "10.0.0.1"}); count];
        let mut found: Vec<Value> = subsets
            .iter()
            .map(|(ready, others)| json!({"addresses": of(*ready), "notReadyAddresses": of(*others)}))
            .collect();
        assert_eq!(truncate(&mut found, 10), any);
        let count = |subset: &Value, field: &str| list(subset, field).len();
        let found: Vec<(usize, usize)> = found
            .iter()
            .map(|subset| (count(subset, "addresses"), count(subset, "notReadyAddresses")))
            .collect();
        assert_eq!(found, expected);
    }
}
