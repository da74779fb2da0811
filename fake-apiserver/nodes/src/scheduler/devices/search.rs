//! The first way in which all requests of some claims get their devices.
//!
//! One request after the other, one device after the other, each tried in order; a choice that leads nowhere is taken
//! back. The first whole solution is taken.

use std::collections::{BTreeMap, BTreeSet};

use client_kit::Seed;
use machinery::meta::ObjectMeta as _;
use shared_json::Value;

use super::super::cluster::{Cluster, NodeInfo};
use super::capacity::{self, Amounts, Counters, Taken};
use super::constraint::Constraint;
use super::pools::{Device, Pool, Problem, gather};
use super::request::Request;

/// So many devices a claim may get (the real one's).
const RESULTS_MAX: usize = 32;
/// After so many attempts the search is given up, as the real one's is after ten seconds.
const STEPS_MAX: usize = 200_000;

/// Why devices are not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Failure {
    /// Not on this node.
    Here(String),
    /// A request is invalid.
    Wrong(String),
}

/// A device that a claim gets.
pub(super) struct Chosen<'a> {
    pub device: Device<'a>,
    pub claim: usize,
    pub request: usize,
    pub way: usize,
    pub share: Option<String>,
    pub consumed: Amounts<'a>,
}

/// The devices found for some claims.
pub(super) struct Found<'a> {
    pub requests: Vec<Vec<Vec<Request<'a>>>>,
    /// By claim.
    pub chosen: Vec<Vec<Chosen<'a>>>,
    /// Which way was taken of the requests with several, by claim and request.
    pub ways: BTreeMap<(usize, usize), usize>,
}

enum Stop {
    TooMany,
    Failed(Failure),
}

/// Where the search is.
#[derive(Clone, Copy, Default)]
struct Place {
    claim: usize,
    request: usize,
    way: usize,
    number: usize,
}

struct Search<'a, 'b> {
    node: &'b NodeInfo,
    claims: &'b [&'a Value],
    requests: Vec<Vec<Vec<Request<'a>>>>,
    /// The devices of a request that takes all it can.
    all: BTreeMap<(usize, usize, usize), Vec<Device<'a>>>,
    pools: Vec<Pool<'a>>,
    devices: Vec<Device<'a>>,
    taken: &'b Taken<'a>,
    constraints: Vec<Vec<Constraint<'a>>>,
    /// The claims that each device is about to go to.
    taking: BTreeMap<super::pools::Id<'a>, BTreeSet<usize>>,
    amounts: BTreeMap<super::pools::Id<'a>, Amounts<'a>>,
    used: BTreeMap<usize, Counters<'a>>,
    takes: BTreeMap<(usize, usize, usize, super::pools::Id<'a>), bool>,
    chosen: Vec<Vec<Chosen<'a>>>,
    ways: BTreeMap<(usize, usize), usize>,
    steps: usize,
}

/// Finds devices on a node for claims. None if there are not enough.
pub(super) fn find<'a>(
    cluster: &'a Cluster,
    node: &NodeInfo,
    claims: &[&'a Value],
    taken: &Taken<'a>,
) -> Result<Option<Found<'a>>, Failure> {
    let pools = gather(cluster, node);
    let usable = pools
        .iter()
        .enumerate()
        .filter(|(_, pool)| pool.problem.is_none());
    let devices = usable.flat_map(|(place, pool)| pool.devices(place)).collect();
    let requests = claims
        .iter()
        .map(|claim| Request::of(claim, cluster).map_err(Failure::Wrong))
        .collect::<Result<Vec<_>, _>>()?;
    let mut search = Search {
        node,
        claims,
        requests,
        all: BTreeMap::new(),
        devices,
        pools,
        taken,
        constraints: claims.iter().map(|claim| Constraint::of(claim)).collect(),
        taking: BTreeMap::new(),
        amounts: BTreeMap::new(),
        used: BTreeMap::new(),
        takes: BTreeMap::new(),
        chosen: claims.iter().map(|_| Vec::new()).collect(),
        ways: BTreeMap::new(),
        steps: 0,
    };
    search.look_ahead()?;
    match search.step(Place::default(), false, 0) {
        Ok(true) => Ok(Some(Found {
            requests: search.requests,
            chosen: search.chosen,
            ways: search.ways,
        })),
        Ok(false)
            if search
                .pools
                .iter()
                .any(|pool| pool.problem == Some(Problem::Invalid)) =>
        {
            Err(Failure::Here(
                "invalid resource pools were encountered".to_owned(),
            ))
        }
        Ok(false) | Err(Stop::TooMany) => Ok(None),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

impl<'a> Search<'a, '_> {
    fn whose(&self, place: Place) -> String {
        let claim = self.claims[place.claim];
        let name = self.requests[place.claim][place.request][place.way].name;
        format!("claim {}/{}, request {name}", claim.namespace(), claim.name())
    }

    /// The devices of requests that take all they can, and whether there are more than a claim may get.
    fn look_ahead(&mut self) -> Result<(), Failure> {
        for claim in 0..self.requests.len() {
            let mut least = 0;
            for request in 0..self.requests[claim].len() {
                let mut least_here = usize::MAX;
                for way in 0..self.requests[claim][request].len() {
                    let place = Place {
                        claim,
                        request,
                        way,
                        number: 0,
                    };
                    if self.requests[claim][request][way].wants_all() {
                        let all = self.everything(place)?;
                        self.all.insert((claim, request, way), all);
                    }
                    least_here = least_here.min(self.wanted(place));
                }
                least += least_here;
            }
            if least > RESULTS_MAX {
                return Err(Failure::Wrong(format!(
                    "claim {}/{}: number of requested devices {least} exceeds the claim limit of {RESULTS_MAX}",
                    self.claims[claim].namespace(),
                    self.claims[claim].name()
                )));
            }
        }
        Ok(())
    }

    /// All devices that a request takes.
    fn everything(&mut self, place: Place) -> Result<Vec<Device<'a>>, Failure> {
        let mut out = Vec::new();
        for at in 0..self.pools.len() {
            let pool = &self.pools[at];
            if let Some(problem) = pool.problem {
                let how = match problem {
                    Problem::Incomplete => "being updated",
                    Problem::Invalid => "invalid",
                };
                return Err(Failure::Wrong(format!(
                    "{}: asks for all devices, but resource pool {}/{} is currently {how}",
                    self.whose(place),
                    pool.driver,
                    pool.name
                )));
            }
            for device in pool.devices(at).collect::<Vec<_>>() {
                if self.takes(place, &device)? && self.has_room(place, &device) {
                    out.push(device);
                }
            }
        }
        Ok(out)
    }

    fn wanted(&self, place: Place) -> usize {
        match self.all.get(&(place.claim, place.request, place.way)) {
            Some(all) => all.len(),
            None => self.requests[place.claim][place.request][place.way].count(),
        }
    }

    fn takes(&mut self, place: Place, device: &Device<'a>) -> Result<bool, Failure> {
        let key = (place.claim, place.request, place.way, device.id);
        if let Some(known) = self.takes.get(&key) {
            return Ok(*known);
        }
        let request = &self.requests[place.claim][place.request][place.way];
        let takes = request.takes(device, self.node).map_err(Failure::Wrong)?;
        self.takes.insert(key, takes);
        Ok(takes)
    }

    fn has_room(&self, place: Place, device: &Device<'a>) -> bool {
        let request = &self.requests[place.claim][place.request][place.way];
        capacity::has_room(
            device.object,
            request.spec,
            self.taken.amounts.get(&device.id),
            self.amounts.get(&device.id),
        )
    }

    /// Goes on from a place. `inside`: one way of several is being tried. `from`: the first device that is looked at.
    fn step(&mut self, mut place: Place, inside: bool, from: usize) -> Result<bool, Stop> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Stop::Failed(Failure::Wrong(format!(
                "node {}: timed out trying to allocate devices",
                self.node.name()
            ))));
        }
        if place.claim >= self.claims.len() {
            return Ok(true);
        }
        let Some(ways) = self.requests[place.claim].get(place.request) else {
            let next = Place {
                claim: place.claim + 1,
                ..Place::default()
            };
            return match self.step(next, false, 0) {
                Err(Stop::TooMany) => Ok(false),
                other => other,
            };
        };
        if !inside && ways.first().is_some_and(|way| way.parent.is_some()) {
            let count = ways.len();
            let mut too_many = true;
            for way in 0..count {
                place.way = way;
                match self.step(place, true, 0) {
                    Err(Stop::TooMany) => continue,
                    Ok(true) => {
                        self.ways.insert((place.claim, place.request), way);
                        return Ok(true);
                    }
                    Ok(false) => too_many = false,
                    Err(stop) => return Err(stop),
                }
            }
            return if too_many { Err(Stop::TooMany) } else { Ok(false) };
        }
        let wanted = self.wanted(place);
        let all = self.all.get(&(place.claim, place.request, place.way));
        if all.is_some_and(Vec::is_empty) {
            return Ok(false);
        }
        if place.number >= wanted {
            let next = Place {
                claim: place.claim,
                request: place.request + 1,
                ..Place::default()
            };
            return self.step(next, false, 0);
        }
        if self.chosen[place.claim].len() + wanted - place.number > RESULTS_MAX {
            return Err(Stop::TooMany);
        }
        let next = Place {
            number: place.number + 1,
            ..place
        };
        if let Some(device) = all.map(|all| all[place.number]) {
            if !self.take(place, device, true).map_err(Stop::Failed)? {
                return Ok(false);
            }
            let done = self.step(next, inside, 0);
            if !matches!(done, Ok(true)) {
                self.give_back(place);
            }
            return done;
        }
        for at in from..self.devices.len() {
            let device = self.devices[at];
            if !self.takes(place, &device).map_err(Stop::Failed)?
                || !self.requests[place.claim][place.request][place.way].fits(device.object)
                || !self.take(place, device, false).map_err(Stop::Failed)?
            {
                continue;
            }
            let done = self.step(next, inside, at + 1);
            if matches!(done, Ok(true)) {
                return done;
            }
            self.give_back(place);
            done?;
        }
        Ok(false)
    }

    fn is_taking(&self, device: &Device<'a>) -> bool {
        self.taking
            .get(&device.id)
            .is_some_and(|claims| !claims.is_empty())
    }

    /// Takes a device if it is free and nothing speaks against it. `must`: no other will do.
    fn take(&mut self, place: Place, device: Device<'a>, must: bool) -> Result<bool, Failure> {
        let request = &self.requests[place.claim][place.request][place.way];
        let (name, parent, is_admin) = (request.name, request.parent, request.is_admin());
        let shared = capacity::is_shared(device.object);
        let by_this_claim = self
            .taking
            .get(&device.id)
            .is_some_and(|claims| claims.contains(&place.claim));
        if (!shared && is_admin && by_this_claim)
            || (!is_admin && (self.taken.devices.contains(&device.id) || self.is_taking(&device)))
            || request.shuns(device.object)
            || !self.has_room(place, &device)
        {
            return Ok(false);
        }
        let in_use = self.taken.amounts.contains_key(&device.id) || self.amounts.contains_key(&device.id);
        let counted = !(shared && in_use);
        if counted && !self.counters_allow(&device) {
            return Ok(false);
        }
        let (base, way) = match parent {
            Some(parent) => (parent, Some(name)),
            None => (name, None),
        };
        let constraints = &mut self.constraints[place.claim];
        for at in 0..constraints.len() {
            if constraints[at].add(base, way, &device) {
                continue;
            }
            for constraint in constraints.iter_mut().take(at) {
                constraint.remove(base, way);
            }
            if must {
                let (driver, pool, device) = device.id;
                return Err(Failure::Wrong(format!(
                    "{}: cannot add device {driver}/{pool}/{device} because a claim constraint would not be satisfied",
                    self.whose(place)
                )));
            }
            return Ok(false);
        }
        if counted {
            let used = self.used.entry(device.pool).or_default();
            for (key, amount) in capacity::used(device.object) {
                *used.entry(key).or_default() += amount;
            }
        }
        let (mut share, mut consumed) = (None, Amounts::new());
        if shared {
            let request = &self.requests[place.claim][place.request][place.way];
            consumed = capacity::shares(device.object, request.spec);
            let amounts = self.amounts.entry(device.id).or_default();
            for (name, amount) in &consumed {
                capacity::add(amounts, name, *amount);
            }
            let of = format!(
                "{} {} {:?}",
                self.claims[place.claim].uid(),
                self.chosen[place.claim].len(),
                device.id
            );
            share = Some(Seed::default().fork(&of).random().uuid());
        } else {
            self.taking.entry(device.id).or_default().insert(place.claim);
        }
        self.chosen[place.claim].push(Chosen {
            device,
            claim: place.claim,
            request: place.request,
            way: place.way,
            share,
            consumed,
        });
        Ok(true)
    }

    /// Whether a pool has as much left as a device uses.
    fn counters_allow(&self, device: &Device<'a>) -> bool {
        let more = capacity::used(device.object);
        if more.is_empty() {
            return true;
        }
        let used = self.used.get(&device.pool);
        capacity::left(&self.pools[device.pool], self.taken)
            .iter()
            .all(|(key, left)| {
                let used = used.and_then(|used| used.get(key)).copied().unwrap_or(0);
                used + more.get(key).copied().unwrap_or(0) <= *left
            })
    }

    /// Gives the last device of a claim back.
    fn give_back(&mut self, place: Place) {
        let Some(chosen) = self.chosen[place.claim].pop() else {
            return;
        };
        let request = &self.requests[place.claim][chosen.request][chosen.way];
        let (base, way) = match request.parent {
            Some(parent) => (parent, Some(request.name)),
            None => (request.name, None),
        };
        for constraint in &mut self.constraints[place.claim] {
            constraint.remove(base, way);
        }
        let device = chosen.device;
        if chosen.share.is_some() {
            let amounts = self.amounts.entry(device.id).or_default();
            for (name, amount) in &chosen.consumed {
                let left = amounts.get(name).map(|known| known.minus(*amount));
                amounts.extend(left.map(|left| (*name, left)));
            }
            return;
        }
        if let Some(claims) = self.taking.get_mut(&device.id) {
            claims.remove(&place.claim);
        }
        let used = self.used.entry(device.pool).or_default();
        for (key, amount) in capacity::used(device.object) {
            *used.entry(key).or_default() -= amount;
        }
    }
}
