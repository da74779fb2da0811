//! Faults of connections that a test adds: refused, delayed, lost, and partitions between nodes or pods.
//!
//! Each has the two ends that it concerns. Chance is drawn from the cluster's seed. A connection that stands is not concerned.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{Random, Seed};
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::Value;

/// The effect of a fault on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is refused, as if nothing listened.
    Refuse,
    /// It is made so much later.
    Delay(Duration),
    /// Nobody answers: it is given up after 127 seconds, or when its caller loses patience.
    Drop,
}

/// One end of connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Peer {
    /// Any address.
    #[default]
    Any,
    /// A node and the pods on it.
    Node(String),
    /// The pods of a namespace.
    Namespace(String),
    /// A pod, by namespace and name.
    Pod(String, String),
    /// The pods with a label.
    Label(String, String),
    /// An address.
    Address(IpAddr),
}

impl Peer {
    /// A node and the pods on it.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Self::Node(name.to_owned())
    }

    /// A pod.
    #[must_use]
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::Pod(namespace.to_owned(), name.to_owned())
    }

    fn is(&self, end: &End) -> bool {
        let pod = |fits: &dyn Fn(&Value) -> bool| end.pod.as_ref().is_some_and(|pod| fits(pod));
        match self {
            Self::Any => true,
            Self::Node(name) => end.node.as_ref() == Some(name),
            Self::Namespace(name) => pod(&|pod| pod.namespace() == name),
            Self::Pod(namespace, name) => pod(&|pod| pod.namespace() == namespace && pod.name() == name),
            Self::Label(key, value) => pod(&|pod| {
                string_map(pod, "labels")
                    .get(key.as_str())
                    .and_then(Value::as_str)
                    == Some(value)
            }),
            Self::Address(address) => end.address == *address,
        }
    }
}

/// An end of a connection, as faults and policies look at it.
pub(crate) struct End {
    pub address: IpAddr,
    /// The pod that has the address.
    pub pod: Option<Arc<Value>>,
    /// The node that the address is on.
    pub node: Option<String>,
}

/// A fault: an effect, and the connections that it has it on.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Fault {
    effect: Effect,
    from: Peer,
    to: Peer,
    both_ways: bool,
    port: Option<u16>,
    skip: u32,
    times: Option<u32>,
    chance: f64,
}

impl Fault {
    /// A fault of all connections.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            from: Peer::Any,
            to: Peer::Any,
            both_ways: false,
            port: None,
            skip: 0,
            times: None,
            chance: 1.0,
        }
    }

    /// Only of connections from there.
    pub fn from(mut self, peer: Peer) -> Self {
        self.from = peer;
        self
    }

    /// Only of connections to there. A Service stands for the endpoint that was chosen.
    pub fn to(mut self, peer: Peer) -> Self {
        self.to = peer;
        self
    }

    /// Also of connections in the other direction.
    pub fn both_ways(mut self) -> Self {
        self.both_ways = true;
        self
    }

    /// Only of connections to this port of the pod or the node.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Not of the first so many.
    pub fn skip(mut self, count: u32) -> Self {
        self.skip = count;
        self
    }

    /// Of so many at most.
    pub fn times(mut self, count: u32) -> Self {
        self.times = Some(count);
        self
    }

    /// Of this part of them (0 to 1).
    pub fn chance(mut self, chance: f64) -> Self {
        self.chance = chance;
        self
    }

    fn concerns(&self, from: &End, to: &End, port: u16) -> bool {
        let ends = self.from.is(from) && self.to.is(to);
        let reverse = self.both_ways && self.from.is(to) && self.to.is(from);
        (ends || reverse) && self.port.is_none_or(|own| own == port)
    }
}

/// The faults of one network. Clones are the same.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    /// Where there are none, as nearly always, a connection pays for nothing but a look at this.
    active: AtomicUsize,
    inner: Mutex<Inner>,
}

struct Inner {
    random: Random,
    next: u64,
    /// In the order in which they were added.
    rules: BTreeMap<u64, Rule>,
}

struct Rule {
    fault: Fault,
    seen: u32,
    struck: u32,
}

/// A fault that was added: says how often it has struck, and lifts it.
#[derive(Clone)]
pub struct FaultHandle {
    faults: Faults,
    number: u64,
}

/// The combined effect of the faults on a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub delay: Duration,
    pub refuses: bool,
    pub drops: bool,
}

impl Faults {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(Arc::new(Shared {
            active: AtomicUsize::new(0),
            inner: Mutex::new(Inner {
                random: seed.fork("faults").random(),
                next: 0,
                rules: BTreeMap::new(),
            }),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault. It concerns connections from now on.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        let rule = Rule {
            fault,
            seen: 0,
            struck: 0,
        };
        inner.rules.insert(number, rule);
        self.0.active.store(inner.rules.len(), Ordering::Release);
        FaultHandle {
            faults: self.clone(),
            number,
        }
    }

    /// Separates two peers: neither reaches the other, until the fault is lifted.
    pub fn partition(&self, one: Peer, other: Peer) -> FaultHandle {
        self.add(Fault::new(Effect::Drop).from(one).to(other).both_ways())
    }

    /// Lifts all of them.
    pub fn clear(&self) {
        self.lock().rules.clear();
        self.0.active.store(0, Ordering::Release);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.active.load(Ordering::Acquire) == 0
    }

    /// The combined effect on a connection. Delays add up; of the others the first one counts.
    pub(crate) fn fate(&self, from: &End, to: &End, port: u16) -> Fate {
        let mut fate = Fate::default();
        let mut inner = self.lock();
        let Inner { random, rules, .. } = &mut *inner;
        for rule in rules.values_mut() {
            if !rule.fault.concerns(from, to, port) || !rule.strikes(random) {
                continue;
            }
            match rule.fault.effect {
                Effect::Delay(delay) => fate.delay += delay,
                Effect::Refuse => {
                    fate.refuses = true;
                    break;
                }
                Effect::Drop => {
                    fate.drops = true;
                    break;
                }
            }
        }
        fate
    }
}

impl Rule {
    fn strikes(&mut self, random: &mut Random) -> bool {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= self.fault.skip || self.fault.times.is_some_and(|times| self.struck >= times) {
            return false;
        }
        // Of a million, so that no floating point number is compared.
        let strikes = self.fault.chance >= 1.0 || random.below(1_000_000) < parts(self.fault.chance);
        self.struck += u32::from(strikes);
        strikes
    }
}

/// A chance in millionths.
fn parts(chance: f64) -> u64 {
    let millionths = (chance.clamp(0.0, 1.0) * 1_000_000.0).round();
    // It is a whole number of at most a million.
    format!("{millionths:.0}").parse().unwrap_or_default()
}

impl FaultHandle {
    /// How many connections it has struck.
    #[must_use]
    pub fn strikes(&self) -> u32 {
        let inner = self.faults.lock();
        inner.rules.get(&self.number).map_or(0, |rule| rule.struck)
    }

    /// Lifts it.
    pub fn lift(&self) {
        let mut inner = self.faults.lock();
        inner.rules.remove(&self.number);
        self.faults.0.active.store(inner.rules.len(), Ordering::Release);
    }
}
