//! The devices that a node reaches, pool by pool.

use std::collections::{BTreeMap, BTreeSet};

use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::term_matches;
use shared_json::Value;

use super::super::cluster::{Cluster, NodeInfo, list, text};

/// The identity of a device: driver, pool and name.
pub(super) type Id<'a> = (&'a str, &'a str, &'a str);

/// Why nothing of a pool can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    Incomplete,
    Invalid,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Device<'a> {
    pub id: Id<'a>,
    pub object: &'a Value,
    pub slice: &'a Value,
    /// The place of its pool.
    pub pool: usize,
}

#[derive(Debug)]
pub(super) struct Pool<'a> {
    pub driver: &'a str,
    pub name: &'a str,
    pub problem: Option<Problem>,
    /// Slices with devices that the node reaches.
    slices: Vec<&'a Value>,
    /// Slices with devices for other nodes.
    elsewhere: Vec<&'a Value>,
    /// The shared counters of the pool.
    pub counters: Vec<&'a Value>,
}

fn flag(object: &Value, path: &str) -> bool {
    at(object, path).and_then(Value::as_bool) == Some(true)
}

fn number(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether a node is meant by a slice's `spec`, or by a device.
pub(super) fn reaches(of: &Value, node: &NodeInfo) -> bool {
    let name = text(of, "nodeName");
    if !name.is_empty() {
        return name == node.name();
    }
    flag(of, "allNodes")
        || list(of, "nodeSelector.nodeSelectorTerms")
            .iter()
            .any(|term| term_matches(term, node.labels(), node.name()))
}

fn is_for(spec: &Value, node: &NodeInfo) -> bool {
    if !list(spec, "sharedCounters").is_empty() {
        return true;
    }
    if flag(spec, "perDeviceNodeSelection") {
        return list(spec, "devices").iter().any(|device| reaches(device, node));
    }
    reaches(spec, node)
}

fn devices<'a>(slice: &'a Value) -> impl Iterator<Item = (Id<'a>, &'a Value)> {
    let driver = text(slice, "spec.driver");
    let pool = text(slice, "spec.pool.name");
    let all = list(slice, "spec.devices").iter();
    all.map(move |device| ((driver, pool, text(device, "name")), device))
}

/// The pools that a node reaches, by driver and name; those whose devices have to be waited for come last.
pub(super) fn gather<'a>(cluster: &'a Cluster, node: &NodeInfo) -> Vec<Pool<'a>> {
    let mut found: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    let relevant = cluster
        .slices
        .values()
        .filter(|slice| slice.get("spec").is_some_and(|spec| is_for(spec, node)));
    for slice in relevant {
        let of_pool = found
            .entry((text(slice, "spec.driver"), text(slice, "spec.pool.name")))
            .or_default();
        let generation = number(slice, "spec.pool.generation");
        match of_pool.first().map(|first| number(first, "spec.pool.generation")) {
            Some(known) if generation < known => {}
            Some(known) if generation == known => of_pool.push(slice),
            _ => *of_pool = vec![slice],
        }
    }
    let mut pools: Vec<Pool<'a>> = found
        .into_iter()
        .filter_map(|((driver, name), slices)| pool(cluster, driver, name, slices))
        .collect();
    pools.sort_by_key(|pool| pool.waits());
    pools
}

/// A pool of the slices that matter for a node; none if it is being replaced.
fn pool<'a>(
    cluster: &'a Cluster,
    driver: &'a str,
    name: &'a str,
    slices: Vec<&'a Value>,
) -> Option<Pool<'a>> {
    let generation = number(slices.first()?, "spec.pool.generation");
    let count = number(slices.first()?, "spec.pool.resourceSliceCount");
    let all: Vec<&Value> = cluster
        .slices
        .values()
        .filter(|slice| text(slice, "spec.driver") == driver && text(slice, "spec.pool.name") == name)
        .collect();
    let is_complete = |slices: &[&Value]| i64::try_from(slices.len()) == Ok(count);
    let mut of_generation = slices.clone();
    if !is_complete(&slices) {
        if all
            .iter()
            .any(|slice| number(slice, "spec.pool.generation") > generation)
        {
            return None;
        }
        of_generation = all
            .into_iter()
            .filter(|slice| number(slice, "spec.pool.generation") == generation)
            .collect();
    }
    let mut out = Pool {
        driver,
        name,
        problem: None,
        slices: Vec::new(),
        elsewhere: Vec::new(),
        counters: Vec::new(),
    };
    if !is_complete(&of_generation) {
        out.problem = Some(Problem::Incomplete);
        return Some(out);
    }
    for slice in &slices {
        let counters = list(slice, "spec.sharedCounters");
        if counters.is_empty() {
            out.slices.push(slice);
        } else {
            out.counters.extend(counters);
        }
    }
    out.elsewhere = of_generation
        .into_iter()
        .filter(|slice| !slices.iter().any(|known| known.name() == slice.name()))
        .collect();
    if !out.is_valid() {
        out.problem = Some(Problem::Invalid);
    }
    Some(out)
}

impl<'a> Pool<'a> {
    /// Whether some of its devices need something to happen before a pod gets them.
    fn waits(&self) -> bool {
        self.slices
            .iter()
            .flat_map(|slice| devices(slice))
            .any(|(_, device)| !list(device, "bindingConditions").is_empty())
    }

    /// Whether names of devices are unique, and the counters that devices consume exist.
    fn is_valid(&self) -> bool {
        let (mut names, mut sets) = (BTreeSet::new(), BTreeSet::new());
        let mut here = self.slices.iter().flat_map(|slice| devices(slice));
        self.counters.iter().all(|set| sets.insert(text(set, "name")))
            && here.all(|(id, _)| names.insert(id))
            && self.everything().all(|(_, device)| {
                list(device, "consumesCounters").iter().all(|used| {
                    let set = self
                        .counters
                        .iter()
                        .find(|set| text(set, "name") == text(used, "counterSet"));
                    let wanted = used.get("counters").and_then(Value::as_object);
                    set.is_some_and(|set| {
                        wanted
                            .into_iter()
                            .flatten()
                            .all(|(name, _)| set.get("counters").and_then(|all| all.get(name)).is_some())
                    })
                })
            })
    }

    /// The devices for the node, of a pool that is the `place`th.
    pub(super) fn devices(&self, place: usize) -> impl Iterator<Item = Device<'a>> {
        self.slices.clone().into_iter().flat_map(move |slice| {
            devices(slice).map(move |(id, object)| Device {
                id,
                object,
                slice,
                pool: place,
            })
        })
    }

    /// All devices of the pool, also those in slices for other nodes.
    pub(super) fn everything(&self) -> impl Iterator<Item = (Id<'a>, &'a Value)> {
        let slices = self.slices.iter().chain(&self.elsewhere).copied();
        slices.collect::<Vec<_>>().into_iter().flat_map(devices)
    }
}
