//! Runs the probes, each at its own times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::SharedClock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Probe;
use tokio::time::Instant;

use super::ask::ask;
use super::count::{Count, State};
use super::key::{ProbeKey, all};
use super::results::{ProbeResult, Results};
use crate::api::v1alpha1::NodePodProbe;
use crate::daemon::runtime::{ContainerRuntime, PodNetwork, RunningContainer};
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, WorkQueue};

/// How long a result that does not change is not reported again (OpenKruise: 10 minutes).
const TOLD_AGAIN: Duration = Duration::from_secs(600);

/// The reconciler. Its keys are probes.
pub(super) struct Prober {
    pub(super) probes: Informer<NodePodProbe>,
    pub(super) node: ObjectKey,
    pub(super) runtime: Arc<dyn ContainerRuntime>,
    pub(super) network: Arc<dyn PodNetwork>,
    pub(super) clock: SharedClock,
    pub(super) results: Arc<Results>,
    pub(super) states: Mutex<BTreeMap<ProbeKey, Probed>>,
    pub(super) writes: Arc<WorkQueue<ObjectKey>>,
}

/// How a probe stands.
#[derive(Debug, Clone)]
pub(super) struct Probed {
    /// The probe as it was asked last.
    probe: Probe,
    /// The container that was asked last; empty before the first.
    id: String,
    count: Count,
    /// When it is asked next.
    due: Instant,
    /// The result that was reported last, and when.
    told: Option<(State, String, Instant)>,
}

impl Probed {
    fn new(probe: &Probe) -> Self {
        Self {
            probe: probe.clone(),
            id: String::new(),
            count: Count::default(),
            due: Instant::now(),
            told: None,
        }
    }

    /// Takes the probe as it is now. One that asks something else begins anew, at its usual time.
    fn take(&mut self, probe: &Probe) {
        let handler = |probe: &Probe| {
            let (exec, get, tcp) = (
                probe.exec.clone(),
                probe.http_get.clone(),
                probe.tcp_socket.clone(),
            );
            (exec, get, tcp)
        };
        if handler(&self.probe) != handler(probe) {
            self.count = Count::default();
        }
        self.probe = probe.clone();
    }

    /// Whether the result is to be reported.
    fn is_news(&self) -> bool {
        match &self.told {
            // A container of which nothing is known yet is no news.
            None => !self.id.is_empty(),
            Some((state, message, at)) => {
                (*state, message) != (self.count.state, &self.count.message) || at.elapsed() >= TOLD_AGAIN
            }
        }
    }
}

/// For how long a container has run.
fn runs_for(container: &RunningContainer, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(container.started_at)).unwrap_or_default()
}

/// A time of a probe in seconds that is at least one.
fn seconds(value: Option<i32>) -> Duration {
    let seconds = value.and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or_default().max(1))
}

impl Reconciler for Prober {
    type Key = ProbeKey;

    fn name(&self) -> &'static str {
        "podprobe"
    }

    fn watches(&self, watches: &mut Watches<ProbeKey>) {
        watches.on(&self.probes, |change, queue| {
            let (old, new) = match change {
                Change::Added(new) => (None, new),
                Change::Updated(old, new) => (Some(old), new),
                Change::Deleted(old) => (Some(old), old),
            };
            let gone = old.iter().flat_map(|old| all(&old.spec));
            for (pod, probe) in gone.chain(all(&new.spec)) {
                let key = ProbeKey::of(pod, probe);
                let before = old.and_then(|old| key.find(&old.spec)).map(|(_, probe)| probe);
                let after = key.find(&new.spec).map(|(_, probe)| probe);
                if before != after || matches!(change, Change::Deleted(_)) {
                    queue.add(key);
                }
            }
        });
    }

    async fn pass(&self, key: &ProbeKey) -> Result<Next, ActError> {
        let object = self.probes.get(&self.node);
        let found = object.as_deref().and_then(|object| key.find(&object.spec));
        let Some((pod, probe)) = found else {
            self.lock().remove(key);
            self.results.forget(key);
            self.writes.add(self.node.clone());
            return Ok(Next::Event);
        };
        let probe = &probe.probe;
        let known = self.lock().get(key).cloned();
        let mut probed = known.unwrap_or_else(|| Probed::new(probe));
        probed.take(probe);
        if probed.due <= Instant::now() {
            probed.due = Instant::now() + seconds(probe.period_seconds);
            self.tick(key, &pod.ip, &mut probed).await;
        }
        if probed.is_news() {
            self.tell(key, &mut probed);
        }
        let left = probed.due.saturating_duration_since(Instant::now());
        self.lock().insert(key.clone(), probed);
        Ok(Next::After(left))
    }
}

impl Prober {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProbeKey, Probed>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks once, if there is somebody to ask.
    async fn tick(&self, key: &ProbeKey, address: &str, probed: &mut Probed) {
        let Ok(containers) = self.runtime.containers(&key.uid).await else {
            return;
        };
        let Some(container) = containers
            .iter()
            .find(|container| container.name == key.container)
        else {
            return;
        };
        if probed.id != container.id {
            probed.id.clone_from(&container.id);
            probed.count = Count::default();
        }
        if !container.running {
            let message = format!("Container({}) is Non-running", key.container);
            probed.count.set(State::Failed, &message);
            return;
        }
        if runs_for(container, self.clock.now()) < seconds(probed.probe.initial_delay_seconds) {
            return;
        }
        let (runtime, network) = (self.runtime.as_ref(), self.network.as_ref());
        if let Some((succeeded, message)) = ask(&probed.probe, &container.id, address, runtime, network).await
        {
            probed.count.answer(&probed.probe, succeeded, &message);
        }
    }

    /// Has a result written and reported.
    fn tell(&self, key: &ProbeKey, probed: &mut Probed) {
        let (state, message) = (probed.count.state, probed.count.message.clone());
        probed.told = Some((state, message.clone(), Instant::now()));
        let at = self.clock.now();
        self.results.put(key, ProbeResult { state, message, at });
        self.writes.add(self.node.clone());
    }
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;
