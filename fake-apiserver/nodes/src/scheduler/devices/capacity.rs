//! The remaining capacity of shared devices.

use std::collections::BTreeMap;

use machinery::meta::at;
use machinery::types::Quantity;
use shared_json::{Map, Value};

use super::super::cluster::{list, text};
use super::pools::{Id, Pool};

/// How much of each of a device's capacities.
pub(super) type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// The allocated devices, and the consumed capacity of shared ones.
#[derive(Debug, Default)]
pub(super) struct Taken<'a> {
    pub devices: std::collections::BTreeSet<Id<'a>>,
    pub amounts: BTreeMap<Id<'a>, Amounts<'a>>,
}

impl<'a> Taken<'a> {
    /// The devices and capacity of the claims' allocations.
    pub(super) fn of(claims: impl Iterator<Item = &'a Value>) -> Self {
        let mut out = Self::default();
        for result in claims.flat_map(|claim| list(claim, "status.allocation.devices.results")) {
            if at(result, "adminAccess").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            let id = (
                text(result, "driver"),
                text(result, "pool"),
                text(result, "device"),
            );
            if text(result, "shareID").is_empty() {
                out.devices.insert(id);
                continue;
            }
            let amounts = out.amounts.entry(id).or_default();
            for (name, amount) in capacities(result, "consumedCapacity") {
                add(amounts, name, Quantity::of(amount));
            }
        }
        out
    }

    fn has(&self, id: &Id<'_>) -> bool {
        self.devices.contains(id) || self.amounts.contains_key(id)
    }
}

fn capacities<'a>(of: &'a Value, path: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let map = at(of, path).and_then(Value::as_object);
    map.into_iter()
        .flat_map(Map::iter)
        .map(|(name, amount)| (name.as_str(), amount))
}

pub(super) fn add<'a>(amounts: &mut Amounts<'a>, name: &'a str, more: Quantity) {
    let known = amounts.get(name).copied().unwrap_or(Quantity::count(0));
    amounts.insert(name, known.plus(more));
}

pub(super) fn is_shared(device: &Value) -> bool {
    at(device, "allowMultipleAllocations").and_then(Value::as_bool) == Some(true)
}

/// A request's consumption of one capacity: the requested amount, rounded up to one that the device allows; without an amount,
/// the device's default, or all of it.
fn share(capacity: &Value, wanted: Option<&Value>) -> Quantity {
    let policy = capacity.get("requestPolicy");
    let of_policy = |path: &str| policy.and_then(|policy| at(policy, path));
    let Some(wanted) = wanted.map(Quantity::of) else {
        let default = of_policy("default").or_else(|| capacity.get("value"));
        return default.map_or(Quantity::count(0), Quantity::of);
    };
    if let Some(min) = of_policy("validRange.min").map(Quantity::of) {
        if wanted.nanos() < min.nanos() {
            return min;
        }
        let Some(step) = of_policy("validRange.step").map(|step| Quantity::of(step).units()) else {
            return wanted;
        };
        let over = wanted.units() - min.units();
        let steps = over.div_euclid(step.max(1)) + i128::from(over.rem_euclid(step.max(1)) != 0);
        let more = i64::try_from(steps * step).unwrap_or(i64::MAX);
        return min.plus(Quantity::count(more));
    }
    let values = of_policy("validValues").and_then(Value::as_array);
    let mut values = values.into_iter().flatten().map(Quantity::of);
    values
        .find(|value| wanted.nanos() <= value.nanos())
        .unwrap_or(wanted)
}

/// Whether a share is none of those that the device allows.
fn is_refused(capacity: &Value, share: Quantity) -> bool {
    let Some(policy) = capacity.get("requestPolicy") else {
        return false;
    };
    let of = |path: &str| at(policy, path).map(Quantity::of);
    if of("default").is_some_and(|default| default.nanos() == share.nanos()) {
        return false;
    }
    if policy.get("validRange").is_some() {
        let min = of("validRange.min").map_or(0, Quantity::units);
        return of("validRange.max").is_some_and(|max| share.nanos() > max.nanos())
            || of("validRange.step").is_some_and(|step| (share.units() - min) % step.units().max(1) != 0);
    }
    let values = list(policy, "validValues");
    !values.is_empty()
        && !values
            .iter()
            .any(|value| Quantity::of(value).nanos() == share.nanos())
}

/// A request's consumption of each capacity of a device.
pub(super) fn shares<'a>(device: &'a Value, request: &Value) -> Amounts<'a> {
    capacities(device, "capacity")
        .map(|(name, capacity)| {
            let wanted = at(request, "capacity.requests").and_then(|wanted| wanted.get(name));
            (name, share(capacity, wanted))
        })
        .collect()
}

/// Whether a device has as much left as a request asks for, when others have `taken` and `taking` of it.
pub(super) fn has_room(
    device: &Value,
    request: &Value,
    taken: Option<&Amounts<'_>>,
    taking: Option<&Amounts<'_>>,
) -> bool {
    let unknown = capacities(request, "capacity.requests")
        .any(|(name, _)| device.get("capacity").and_then(|all| all.get(name)).is_none());
    let shares = shares(device, request);
    let of = |amounts: Option<&Amounts<'_>>, name: &str| {
        amounts
            .and_then(|amounts| amounts.get(name))
            .map_or(0, |amount| amount.nanos())
    };
    !unknown
        && capacities(device, "capacity").all(|(name, capacity)| {
            let Some(share) = shares.get(name) else {
                return true;
            };
            let all = capacity.get("value").map_or(0, |all| Quantity::of(all).nanos());
            !is_refused(capacity, *share) && share.nanos() + of(taken, name) + of(taking, name) <= all
        })
}

/// The consumption of shared counters by devices of a pool, by set and counter.
pub(super) type Counters<'a> = BTreeMap<(&'a str, &'a str), i128>;

/// The consumption of a device.
pub(super) fn used<'a>(device: &'a Value) -> Counters<'a> {
    let mut out = Counters::new();
    for used in list(device, "consumesCounters") {
        for (name, counter) in capacities(used, "counters") {
            let amount = counter
                .get("value")
                .map_or(0, |value| Quantity::of(value).nanos());
            *out.entry((text(used, "counterSet"), name)).or_default() += amount;
        }
    }
    out
}

/// The rest of a pool's shared counters.
pub(super) fn left<'a>(pool: &Pool<'a>, taken: &Taken<'_>) -> Counters<'a> {
    let mut out = Counters::new();
    for set in &pool.counters {
        for (name, counter) in capacities(set, "counters") {
            let amount = counter
                .get("value")
                .map_or(0, |value| Quantity::of(value).nanos());
            out.insert((text(set, "name"), name), amount);
        }
    }
    for (_, device) in pool.everything().filter(|(id, _)| taken.has(id)) {
        for (key, amount) in used(device) {
            *out.entry(key).or_default() -= amount;
        }
    }
    out
}
