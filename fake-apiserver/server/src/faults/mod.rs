//! Faults that a test asks for: requests that are refused, delayed or answered too late, watches that miss
//! events, hear of them late, or end.
//!
//! Networks and servers do all of this to a controller sooner or later. The faults here do it at a place of the test's
//! choosing, and again at the same place with the same seed. The three ways in which a controller is most often led astray
//! (a stale view, a state that it never saw, a pass that ended in the middle) are [`Effect::DelayEvents`],
//! [`Effect::DropEvents`] and [`Effect::Refuse`].

mod fault;
mod glob;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{Random, Seed};
use tokio::time::Instant;

pub use fault::{Effect, Fault, FaultFileError, Refusal};
use machinery::status::ApiError;
pub use requests::Requests;
use store::ObjectKey;

use crate::message::request::ResourceRequest;

/// The faults of one server. Clones are the same.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    /// How many there are: where there are none, as nearly always, a request pays for nothing but a look at this.
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
    /// How many requests, or events, it has concerned.
    seen: u32,
    /// How many of them it has struck.
    struck: u32,
    /// When it struck the newest of them.
    moments: VecDeque<Instant>,
}

/// A fault that was added: says how often it has struck, and lifts it.
#[derive(Clone)]
pub struct FaultHandle {
    faults: Faults,
    number: u64,
}

/// The combined effect of the faults on a request.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// How long it waits before anything else.
    pub delay: Duration,
    /// It is refused.
    pub refusal: Option<ApiError>,
    /// It is carried out, and the client gets a timeout.
    pub lose_answer: bool,
}

/// The combined effect of the faults on an event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventFate {
    /// It is sent, so much later.
    Sent(Duration),
    /// The watch never sends it.
    Dropped,
    /// The watch ends before it.
    Ended,
    /// The watch ends with 410 before it.
    Expired,
}

/// A request as faults look at it.
pub(crate) struct Asked<'a> {
    pub request: &'a ResourceRequest,
    pub user_agent: &'a str,
}

impl Faults {
    /// No faults yet. Chance is drawn from `seed`.
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

    /// Adds a fault. It concerns requests from now on, and the next events of the open watches.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        let rule = Rule {
            fault,
            seen: 0,
            struck: 0,
            moments: VecDeque::new(),
        };
        inner.rules.insert(number, rule);
        self.0.active.store(inner.rules.len(), Ordering::Release);
        FaultHandle {
            faults: self.clone(),
            number,
        }
    }

    /// Lifts all of them.
    pub fn clear(&self) {
        self.lock().rules.clear();
        self.0.active.store(0, Ordering::Release);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.active.load(Ordering::Acquire) == 0
    }

    /// The combined effect on a request. Delays add up; of refusals and lost answers the first one counts.
    pub(crate) fn of_request(&self, asked: &Asked<'_>) -> Fate {
        let mut fate = Fate::default();
        if self.is_idle() {
            return fate;
        }
        let mut inner = self.lock();
        let Inner { random, rules, .. } = &mut *inner;
        for rule in rules.values_mut() {
            if rule.fault.effect.is_of_events() || !rule.fault.requests.concerns(asked) {
                continue;
            }
            if !rule.strikes(random) {
                continue;
            }
            tracing::debug!(
                fault = rule.fault.name,
                verb = asked.request.verb.as_str(),
                resource = asked.request.resource,
                name = asked.request.name,
                "fault"
            );
            match &rule.fault.effect {
                Effect::Delay(delay) => fate.delay += *delay,
                Effect::Refuse(refusal) => {
                    fate.refusal = Some(refusal.error(asked.request));
                    break;
                }
                Effect::LoseAnswer => {
                    fate.lose_answer = true;
                    break;
                }
                _ => {}
            }
        }
        fate
    }

    /// The combined effect on an event that a watch is about to send.
    pub(crate) fn of_event(&self, watch: &Asked<'_>, kind: &str, key: &ObjectKey) -> EventFate {
        let mut late = Duration::ZERO;
        if self.is_idle() {
            return EventFate::Sent(late);
        }
        let mut inner = self.lock();
        let Inner { random, rules, .. } = &mut *inner;
        for rule in rules.values_mut() {
            let concerned = rule.fault.effect.is_of_events()
                && rule.fault.requests.concerns_event(watch, kind, key)
                && rule.strikes(random);
            if !concerned {
                continue;
            }
            tracing::debug!(
                fault = rule.fault.name,
                kind,
                name = key.name.as_str(),
                watcher = watch.user_agent,
                "fault"
            );
            match &rule.fault.effect {
                Effect::DelayEvents(delay) => late += *delay,
                Effect::DropEvents => return EventFate::Dropped,
                Effect::EndWatch => return EventFate::Ended,
                Effect::ExpireWatch => return EventFate::Expired,
                _ => {}
            }
        }
        EventFate::Sent(late)
    }
}

impl Rule {
    /// Whether it strikes a request that it concerns: by its start, its limit, and its chance.
    fn strikes(&mut self, random: &mut Random) -> bool {
        let spent = self.fault.times.is_some_and(|times| self.struck >= times);
        if spent {
            return false;
        }
        self.seen = self.seen.saturating_add(1);
        if self.seen <= self.fault.skip {
            return false;
        }
        if self.fault.chance_ppm < PPM && random.below(u64::from(PPM)) >= u64::from(self.fault.chance_ppm) {
            return false;
        }
        self.struck = self.struck.saturating_add(1);
        if self.moments.len() == MOMENTS_KEPT {
            self.moments.pop_front();
        }
        self.moments.push_back(Instant::now());
        true
    }
}

/// So many strikes are remembered with their moments.
const MOMENTS_KEPT: usize = 1024;
/// Chances are counted in millionths.
const PPM: u32 = 1_000_000;

impl FaultHandle {
    /// How many requests, or events, it has struck; 0 once it is lifted.
    #[must_use]
    pub fn strikes(&self) -> u32 {
        let inner = self.faults.lock();
        inner.rules.get(&self.number).map_or(0, |rule| rule.struck)
    }

    /// When it struck, for the newest 1,024 strikes: in a simulation, moments of virtual time. Nothing once it is lifted.
    #[must_use]
    pub fn struck_at(&self) -> Vec<Instant> {
        let inner = self.faults.lock();
        let rule = inner.rules.get(&self.number);
        rule.map(|rule| rule.moments.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Lifts the fault. Dropping the handle does not.
    pub fn lift(&self) {
        let mut inner = self.faults.lock();
        inner.rules.remove(&self.number);
        self.faults.0.active.store(inner.rules.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
