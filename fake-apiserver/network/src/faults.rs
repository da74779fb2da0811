//! Faults of connections that a test adds: refused, delayed, lost, and partitions between nodes or pods.
//!
//! Each has the two ends that it concerns. Chance is drawn from the cluster's seed. A connection that stands is not concerned.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Frequency, RuleHandle, Rules, Seed, Strikes};
use jiff::SignedDuration;
use machinery::meta::{ObjectMeta as _, string_map};
use serde::Deserialize;
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
#[must_use]
pub struct Fault {
    effect: Effect,
    from: Peer,
    to: Peer,
    both_ways: bool,
    port: Option<u16>,
    frequency: Frequency,
}

impl Strikes for Fault {
    fn frequency(&self) -> Frequency {
        self.frequency
    }
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
            frequency: Frequency::default(),
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
    pub fn after(mut self, count: u32) -> Self {
        self.frequency.skip = count;
        self
    }

    /// Of so many at most.
    pub fn times(mut self, count: u32) -> Self {
        self.frequency.times = Some(count);
        self
    }

    /// Of this part of them (0 to 1).
    pub fn chance(mut self, chance: f64) -> Self {
        self.frequency.set_chance(chance);
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
pub struct Faults(Rules<Fault>);

/// A fault that was added: says how often it has struck connections, and lifts it.
pub type FaultHandle = RuleHandle<Fault>;

/// The combined effect of the faults on a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub delay: Duration,
    pub refuses: bool,
    pub drops: bool,
}

impl Faults {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(Rules::new(seed.fork("faults").random()))
    }

    /// Adds a fault. It concerns connections from now on.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        self.0.add(fault)
    }

    /// Separates two peers: neither reaches the other, until the fault is lifted.
    pub fn partition(&self, one: Peer, other: Peer) -> FaultHandle {
        self.add(Fault::new(Effect::Drop).from(one).to(other).both_ways())
    }

    /// Lifts all of them.
    pub fn clear(&self) {
        self.0.clear();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// The combined effect on a connection. Delays add up; of the others the first one counts.
    pub(crate) fn fate(&self, from: &End, to: &End, port: u16) -> Fate {
        let mut fate = Fate::default();
        let concerned = |fault: &Fault| fault.concerns(from, to, port);
        self.0.strike(concerned, |fault| {
            match fault.effect {
                Effect::Delay(delay) => {
                    fate.delay += delay;
                    return ControlFlow::Continue(());
                }
                Effect::Refuse => fate.refuses = true,
                Effect::Drop => fate.drops = true,
            }
            ControlFlow::Break(())
        });
        fate
    }
}

/// A fault as files have it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    from: Option<WrittenPeer>,
    #[serde(default)]
    to: Option<WrittenPeer>,
    #[serde(default)]
    both_ways: bool,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    skip: u32,
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    chance: Option<f64>,
    #[serde(rename = "do")]
    effect: WrittenEffect,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WrittenPeer {
    Node(String),
    Namespace(String),
    Pod(String),
    Label(String),
    Address(IpAddr),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WrittenEffect {
    Refuse,
    Delay(SignedDuration),
    Drop,
}

impl TryFrom<WrittenPeer> for Peer {
    type Error = String;

    fn try_from(written: WrittenPeer) -> Result<Self, String> {
        Ok(match written {
            WrittenPeer::Node(name) => Self::Node(name),
            WrittenPeer::Namespace(name) => Self::Namespace(name),
            WrittenPeer::Pod(pod) => match pod.split_once('/') {
                Some((namespace, name)) => Self::pod(namespace, name),
                None => return Err(format!("a pod is NAMESPACE/NAME, not {pod:?}")),
            },
            WrittenPeer::Label(label) => match label.split_once('=') {
                Some((key, value)) => Self::Label(key.to_owned(), value.to_owned()),
                None => return Err(format!("a label is KEY=VALUE, not {label:?}")),
            },
            WrittenPeer::Address(address) => Self::Address(address),
        })
    }
}

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let peer = |written: Option<WrittenPeer>| written.map_or(Ok(Peer::Any), Peer::try_from);
        Ok(Self {
            effect: match written.effect {
                WrittenEffect::Refuse => Effect::Refuse,
                WrittenEffect::Drop => Effect::Drop,
                WrittenEffect::Delay(delay) => Effect::Delay(
                    Duration::try_from(delay).map_err(|_| "do.delay: must not be negative".to_owned())?,
                ),
            },
            from: peer(written.from)?,
            to: peer(written.to)?,
            both_ways: written.both_ways,
            port: written.port,
            frequency: Frequency::written(written.skip, written.times, written.chance)?,
        })
    }
}
