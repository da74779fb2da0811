//! Distribution of a service's endpoints over its slices: pure.
//!
//! As many endpoints as possible stay where they are, and as few slices as possible are written. The resulting
//! slices that are not full are those of the real one.

use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::meta::at;
use shared_json::Value;

use super::runtime::{list, text};

/// How many endpoints a slice has at most (the real default).
const SLICE_MAX: usize = 100;

/// A slice to be: one that is there, or a new one.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub slice: Option<Arc<Value>>,
    pub ports: Vec<Value>,
    pub endpoints: Vec<Value>,
}

/// The identity of an endpoint.
fn identity(endpoint: &Value) -> (Vec<&str>, &str, &str) {
    let mut addresses: Vec<&str> = list(endpoint, "addresses")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    addresses.sort_unstable();
    (
        addresses,
        text(endpoint, "targetRef.namespace"),
        text(endpoint, "targetRef.name"),
    )
}

/// Whether two endpoints of one identity differ, in more than hints.
fn differ(one: &Value, other: &Value) -> bool {
    ["nodeName", "zone", "conditions"]
        .iter()
        .any(|field| at(one, field) != at(other, field))
}

/// Endpoints that have no slice yet.
struct Left {
    endpoints: Vec<Option<Value>>,
    count: usize,
    next: usize,
}

impl Left {
    fn new(endpoints: Vec<Value>) -> Self {
        Self {
            count: endpoints.len(),
            endpoints: endpoints.into_iter().map(Some).collect(),
            next: 0,
        }
    }

    fn take(&mut self, at: usize) -> Option<Value> {
        let taken = self.endpoints.get_mut(at).and_then(Option::take);
        self.count -= usize::from(taken.is_some());
        taken
    }

    /// Fills a slice up.
    fn fill(&mut self, endpoints: &mut Vec<Value>) {
        while endpoints.len() < SLICE_MAX && self.next < self.endpoints.len() {
            endpoints.extend(self.take(self.next));
            self.next += 1;
        }
    }
}

/// Puts the endpoints of some ports into the existing slices of these ports, and into new ones: returns the slices to write, and
/// which slices go. `relabelled`: whether a slice is written anyway.
pub(super) fn pack(
    ports: &[Value],
    endpoints: Vec<Value>,
    present: &[Arc<Value>],
    relabelled: impl Fn(&Value) -> bool,
) -> (Vec<Packed>, Vec<Arc<Value>>) {
    let places: BTreeMap<_, usize> = endpoints.iter().map(identity).zip(0..).collect();
    let found: Vec<Vec<Option<usize>>> = present
        .iter()
        .map(|slice| {
            let known = list(slice, "endpoints").iter();
            known.map(|known| places.get(&identity(known)).copied()).collect()
        })
        .collect();
    let mut left = Left::new(endpoints);
    let (mut out, mut gone, mut written, mut unwritten) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (slice, found) in present.iter().zip(found) {
        let known = list(slice, "endpoints");
        let mut changed = relabelled(slice);
        let mut kept = Vec::new();
        for (known, at) in known.iter().zip(found) {
            if let Some(endpoint) = at.and_then(|at| left.take(at)) {
                changed |= differ(known, &endpoint);
                kept.push(endpoint);
            }
        }
        changed |= kept.len() != known.len();
        if kept.is_empty() && !known.is_empty() {
            gone.push(Arc::clone(slice));
            continue;
        }
        let group = if changed { &mut written } else { &mut unwritten };
        group.push(out.len());
        out.push(Packed {
            slice: Some(Arc::clone(slice)),
            ports: ports.to_vec(),
            endpoints: kept,
        });
    }
    // Those that are written anyway are filled first, the fullest before the others.
    written.sort_by_key(|at| std::cmp::Reverse(out.get(*at).map_or(0, |packed| packed.endpoints.len())));
    for at in written {
        if let Some(packed) = out.get_mut(at) {
            left.fill(&mut packed.endpoints);
        }
    }
    while left.count > 0 {
        let fits = |packed: &Packed| packed.endpoints.len() + left.count <= SLICE_MAX;
        let fullest = unwritten
            .iter()
            .copied()
            .filter(|at| left.count < SLICE_MAX && out.get(*at).is_some_and(fits))
            .max_by_key(|at| {
                (
                    out.get(*at).map(|packed| packed.endpoints.len()),
                    std::cmp::Reverse(*at),
                )
            });
        match fullest.and_then(|at| out.get_mut(at)) {
            Some(packed) => left.fill(&mut packed.endpoints),
            None => {
                let mut packed = Packed {
                    ports: ports.to_vec(),
                    ..Packed::default()
                };
                left.fill(&mut packed.endpoints);
                out.push(packed);
            }
        }
    }
    (out, gone)
}

/// Reuses slices that would be deleted for those that would be created: updates both lists. `reusable`: whether
/// a slice may.
pub(super) fn reuse(packed: &mut [Packed], gone: &mut Vec<Arc<Value>>, reusable: impl Fn(&Value) -> bool) {
    for new in packed.iter_mut().rev().filter(|packed| packed.slice.is_none()) {
        let Some(at) = gone.iter().position(|slice| reusable(slice)) else {
            return;
        };
        new.slice = Some(gone.remove(at));
    }
}

#[cfg(test)]
mod tests {
    use machinery::meta::ObjectMeta as _;
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// `3` for the endpoint of a pod, `3!` for one that is not ready, `1-4` for several.
    fn endpoints(short: &str) -> Vec<Value> {
        let one = |number: u32, ready: bool| {
            json!({"addresses": [format!("10.0.0.{number}")], "conditions": {"ready": ready},
                "targetRef": {"namespace": "d", "name": format!("p{number}")}})
        };
        short
            .split_terminator(' ')
            .flat_map(|part| {
                let (part, ready) = match part.strip_suffix('!') {
                    Some(part) => (part, false),
                    None => (part, true),
                };
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                let (from, to): (u32, u32) = (from.parse().unwrap(), to.parse().unwrap());
                (from..=to).map(move |number| one(number, ready))
            })
            .collect()
    }

    /// How many endpoints are where, and the first that has come to each: `a 3`, `+ 2` for a new slice, `-a` for one that goes.
    #[rstest]
    #[case::first(&[], "1-3", "+3")]
    #[case::none_left(&["1-3"], "", "-a")]
    #[case::as_they_are(&["1-3"], "1-3", "a3")]
    #[case::order_does_not_count(&["3 1 2"], "1-3", "a3")]
    #[case::one_more(&["1-3"], "1-4", "a4")]
    #[case::one_fewer(&["1-3"], "1 3", "a2")]
    #[case::another(&["1-3"], "1 3 4", "a3")]
    #[case::all_others(&["1-3"], "4-6", "+3 -a")]
    #[case::a_hundred(&[], "1-100", "+100")]
    #[case::one_too_many(&[], "1-101", "+100 +1")]
    #[case::full(&["1-100"], "1-101", "a100 +1")]
    #[case::into_the_one_with_room(&["1-100", "101-150"], "1-151", "a100 b51")]
    #[case::into_the_fullest_with_room(&["1-50", "51-140", "141-200"], "1-201", "a50 b91 c60")]
    #[case::into_the_first_of_equals(&["1-50", "51-100"], "1-101", "a51 b50")]
    #[case::into_one_that_holds_all(&["1-90", "91-140"], "1-160", "a90 b70")]
    #[case::into_none_that_holds_not_all(&["1-90", "91-180"], "1-200", "a90 b90 +20")]
    #[case::into_the_one_that_is_written(&["1-90", "91-95 96!"], "1-97", "a90 b7")]
    #[case::stay_where_they_are(&["1-100", "101-200"], "1-10 101-110", "a10 b10")]
    #[case::one_empties(&["1-100", "101-200"], "1-50", "a50 -b")]
    #[case::from_the_one_that_empties(&["1-2", "3-4"], "1-2 5-6", "a4 -b")]
    #[case::more_than_fit(&["1-99"], "1-250", "a99 +100 +51")]
    fn where_endpoints_go(#[case] present: &[&str], #[case] wanted: &str, #[case] expected: &str) {
        let present: Vec<Arc<Value>> = present
            .iter()
            .zip('a'..)
            .map(|(short, name)| {
                Arc::new(json!({"metadata": {"name": name.to_string()}, "endpoints": endpoints(short)}))
            })
            .collect();
        let (packed, gone) = pack(&[], endpoints(wanted), &present, |_| false);
        let mut found: Vec<String> = packed
            .iter()
            .map(|packed| {
                let name = packed.slice.as_ref().map_or("+", |slice| slice.name());
                format!("{name}{}", packed.endpoints.len())
            })
            .collect();
        found.extend(gone.iter().map(|slice| format!("-{}", slice.name())));
        assert_eq!(found.join(" "), expected);
        let all: usize = packed.iter().map(|packed| packed.endpoints.len()).sum();
        assert_eq!(all, endpoints(wanted).len());
    }

    #[test]
    fn what_goes_becomes_what_comes() {
        let slice = |name: &str| Arc::new(json!({"metadata": {"name": name}}));
        let mut packed = [Packed::default(), Packed::default()];
        let mut gone = vec![slice("a"), slice("b")];
        reuse(&mut packed, &mut gone, |slice| slice.name() == "b");
        let names: Vec<Option<&str>> = packed
            .iter()
            .map(|packed| packed.slice.as_ref().map(|slice| slice.name()))
            .collect();
        assert_eq!(names, [None, Some("b")]);
        assert_eq!(gone.len(), 1);
    }
}
