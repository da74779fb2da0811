//! Faults that a test asks for: requests that are refused, delayed or answered too late, watches that miss
//! events, hear of them late, or end.
//!
//! Networks and servers do all of this to a controller sooner or later. The faults here do it at a place of the test's
//! choosing, and again at the same place with the same seed. The three ways in which a controller is most often led astray
//! (a stale view, a state that it never saw, a pass that ended in the middle) are [`Effect::DelayEvents`],
//! [`Effect::DropEvents`] and [`Effect::Refuse`].

mod fault;
mod file;
mod glob;
mod requests;

use std::ops::ControlFlow;
use std::time::Duration;

use client_kit::{RuleHandle, Rules, Seed};

pub use fault::{Effect, Fault, FaultFileError, Refusal};
pub use file::FaultFile;
use machinery::status::ApiError;
pub use requests::Requests;
use store::ObjectKey;

use crate::message::request::ResourceRequest;

/// The faults of one server. Clones are the same.
#[derive(Clone)]
pub struct Faults(Rules<Fault>);

/// A fault that was added: says how often it has struck requests or events, and lifts it.
pub type FaultHandle = RuleHandle<Fault>;

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
        Self(Rules::new(seed.fork("faults").random()))
    }

    /// Adds a fault. It concerns requests from now on, and the next events of the open watches.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        self.0.add(fault)
    }

    /// Lifts all of them.
    pub fn clear(&self) {
        self.0.clear();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// The combined effect on a request. Delays add up; of refusals and lost answers the first one counts.
    pub(crate) fn of_request(&self, asked: &Asked<'_>) -> Fate {
        let mut fate = Fate::default();
        let concerned = |fault: &Fault| !fault.effect.is_of_events() && fault.requests.concerns(asked);
        self.0.strike(concerned, |fault| {
            tracing::debug!(
                fault = fault.name,
                verb = asked.request.verb.as_str(),
                resource = asked.request.resource,
                name = asked.request.name,
                "fault"
            );
            match &fault.effect {
                Effect::Delay(delay) => fate.delay += *delay,
                Effect::Refuse(refusal) => {
                    fate.refusal = Some(refusal.error(asked.request));
                    return ControlFlow::Break(());
                }
                Effect::LoseAnswer => {
                    fate.lose_answer = true;
                    return ControlFlow::Break(());
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        fate
    }

    /// The combined effect on an event that a watch is about to send.
    pub(crate) fn of_event(&self, watch: &Asked<'_>, kind: &str, key: &ObjectKey) -> EventFate {
        let mut late = Duration::ZERO;
        let mut end = None;
        let concerned =
            |fault: &Fault| fault.effect.is_of_events() && fault.requests.concerns_event(watch, kind, key);
        self.0.strike(concerned, |fault| {
            tracing::debug!(
                fault = fault.name,
                kind,
                name = key.name.as_str(),
                watcher = watch.user_agent,
                "fault"
            );
            end = match &fault.effect {
                Effect::DelayEvents(delay) => {
                    late += *delay;
                    None
                }
                Effect::DropEvents => Some(EventFate::Dropped),
                Effect::EndWatch => Some(EventFate::Ended),
                Effect::ExpireWatch => Some(EventFate::Expired),
                Effect::Refuse(_) | Effect::LoseAnswer | Effect::Delay(_) => None,
            };
            match end {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        end.unwrap_or(EventFate::Sent(late))
    }
}

#[cfg(test)]
mod tests;
