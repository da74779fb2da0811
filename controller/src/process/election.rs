//! Leader election by a Lease, with client-go's rules: whoever holds the lease leads until it has not been renewed for the
//! lease's duration, measured from when the candidate itself saw the last renewal.

use std::time::Duration;

use client_kit::SharedClock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use tokio::time::Instant;

/// The timings of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// For how long a lease holds that is not renewed.
    pub lease: Duration,
    /// For how long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How often the lease is tried.
    pub retry: Duration,
}

impl Default for Timings {
    /// OpenKruise's (and controller-runtime's): 15, 10 and 2 seconds.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// The next step of a candidate, by the lease as it is.
#[derive(Debug, Clone, PartialEq)]
enum Move {
    /// Someone else leads.
    Wait,
    /// Write this.
    Write(LeaseSpec),
}

/// `silent_for`: how long ago the candidate saw the lease change.
fn decide(spec: Option<&LeaseSpec>, us: &str, silent_for: Duration, lease: Duration, now: Timestamp) -> Move {
    let none = LeaseSpec::default();
    let old = spec.unwrap_or(&none);
    let holder = old.holder_identity.as_deref().unwrap_or_default();
    let ours = holder == us;
    if !holder.is_empty() && !ours && silent_for < lease {
        return Move::Wait;
    }
    let transitions = old.lease_transitions.unwrap_or(0);
    Move::Write(LeaseSpec {
        holder_identity: Some(us.to_owned()),
        lease_duration_seconds: Some(i32::try_from(lease.as_secs()).unwrap_or(i32::MAX)),
        acquire_time: match (&old.acquire_time, ours) {
            (Some(acquired), true) => Some(acquired.clone()),
            _ => Some(MicroTime(now)),
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if ours || spec.is_none() {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..old.clone()
    })
}

/// One candidate.
pub struct Election {
    leases: Api<Lease>,
    clock: SharedClock,
    name: String,
    us: String,
    timings: Timings,
    seen: Option<(LeaseSpec, Instant)>,
}

impl Election {
    /// A candidate called `us` for the lease `namespace/name`.
    #[must_use]
    pub fn new(
        client: Client,
        clock: SharedClock,
        namespace: &str,
        name: &str,
        us: &str,
        timings: Timings,
    ) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            clock,
            name: name.to_owned(),
            us: us.to_owned(),
            timings,
            seen: None,
        }
    }

    /// Waits until this candidate leads.
    pub async fn acquire(&mut self) {
        loop {
            match self.try_once().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, lease = self.name, "failed to acquire the lease"),
            }
            tokio::time::sleep(self.timings.retry).await;
        }
    }

    /// Renews the lease for as long as that works; returns when this candidate leads no more.
    pub async fn hold(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.timings.retry).await;
            let left = self.timings.renew_deadline.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.try_once()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "failed to renew the lease"),
                Err(_) => {}
            }
            if renewed.elapsed() >= self.timings.renew_deadline {
                return;
            }
        }
    }

    /// Gives the lease up, so that another candidate need not wait for its end.
    pub async fn release(&mut self) {
        let Ok(mut lease) = self.leases.get(&self.name).await else {
            return;
        };
        let holds = |spec: &LeaseSpec| spec.holder_identity.as_deref() == Some(&self.us);
        if !lease.spec.as_ref().is_some_and(holds) {
            return;
        }
        let now = MicroTime(self.clock.now());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: lease.spec.as_ref().and_then(|spec| spec.lease_transitions),
            ..LeaseSpec::default()
        });
        let written = self
            .leases
            .replace(&self.name, &PostParams::default(), &lease)
            .await;
        if let Err(error) = written {
            tracing::warn!(%error, lease = self.name, "failed to release the lease");
        }
    }

    /// Whether this candidate leads after one try.
    async fn try_once(&mut self) -> Result<bool, kube::Error> {
        let found = self.leases.get_opt(&self.name).await?;
        let spec = found.as_ref().and_then(|lease| lease.spec.as_ref());
        let now = Instant::now();
        if let Some(spec) = spec
            && self.seen.as_ref().is_none_or(|(seen, _)| seen != spec)
        {
            self.seen = Some((spec.clone(), now));
        }
        let silent_for = self.seen.as_ref().map_or(Duration::ZERO, |(_, at)| now - *at);
        let next = match decide(spec, &self.us, silent_for, self.timings.lease, self.clock.now()) {
            Move::Wait => return Ok(false),
            Move::Write(next) => next,
        };
        let written = match found {
            None => {
                let mut lease = Lease::default();
                lease.metadata.name = Some(self.name.clone());
                lease.spec = Some(next);
                self.leases.create(&PostParams::default(), &lease).await
            }
            Some(mut lease) => {
                lease.spec = Some(next);
                self.leases
                    .replace(&lease.name_any(), &PostParams::default(), &lease)
                    .await
            }
        };
        match written {
            Ok(lease) => {
                self.seen = lease.spec.map(|spec| (spec, now));
                Ok(true)
            }
            // Another candidate was faster.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    #[rstest]
    #[case(None, 0, Some(0))]
    #[case(Some(("", 3)), 0, Some(4))]
    #[case(Some(("other", 3)), 14, None)]
    #[case(Some(("other", 3)), 15, Some(4))]
    #[case(Some(("us", 3)), 0, Some(3))]
    fn moves(#[case] holder: Option<(&str, i32)>, #[case] silent_s: u64, #[case] transitions: Option<i32>) {
        let now = Timestamp::from_second(100).unwrap();
        let acquired = MicroTime(Timestamp::from_second(50).unwrap());
        let spec = holder.map(|(holder, transitions)| LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            acquire_time: Some(acquired.clone()),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        });
        let moved = decide(spec.as_ref(), "us", Duration::from_secs(silent_s), LEASE, now);
        let Some(transitions) = transitions else {
            assert_eq!(moved, Move::Wait);
            return;
        };
        let kept = holder.is_some_and(|(holder, _)| holder == "us");
        let expected = LeaseSpec {
            holder_identity: Some("us".to_owned()),
            lease_duration_seconds: Some(15),
            acquire_time: Some(if kept { acquired } else { MicroTime(now) }),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        assert_eq!(moved, Move::Write(expected));
    }
}
