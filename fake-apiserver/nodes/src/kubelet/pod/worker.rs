//! The life of a pod on its node, from its admission to its removal, and the causes that wake its worker.
//!
//! As in the kubelet, the containers are brought to where they should be in passes. A pass begins when the pod changes,
//! when the node's list of containers, made every second, shows a change, and again ten to fifteen seconds after one
//! that failed. Two changes in one list give two passes, the second after the next list: that is why some events are
//! counted twice so soon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::Random;
use futures::StreamExt as _;
// Most programs never end: tokio's channels take room for 32 that do.
use futures::channel::mpsc;
use http::header::{CONTENT_TYPE, USER_AGENT};
use jiff::Timestamp;
use shared_json::{Map, Value, json};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::probes::Probes;
use crate::admission::{Refusal, forbidden_sysctl, other_system};
use crate::by_name::ByName;
use crate::critical_pods::MIRROR;
use crate::kubelet::Kubelet;
use crate::mail::{Inbox, Mail};
use crate::pressure;
use crate::programs::{Exit, Process, Volume};
use crate::status::{self, PodRecord, condition_of};
use crate::timing::{RunTiming, Timing, vary};
use client_kit::timer;
use machinery::meta::{ObjectMeta, at, string_map};
use machinery::types::rfc3339;

/// How often a node writes the statuses that it could not write before (the kubelet's status manager: ten seconds).
const REWRITE_PERIOD_MS: u128 = 10_000;
/// The period of the removal of things that are no longer needed (the kubelet's housekeeping: two seconds).
const TIDY_PERIOD_MS: u128 = 2000;
/// How long it waits at most for a container that has ended too often, and up to half as much more (the kubelet's resync).
const RESYNC_PERIOD: Duration = Duration::from_secs(60);

/// A container that is known to have waited for less than this did not wait.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The longest wait of a pod that is ready before the time that its readiness is to name.
const READY_EARLY_MAX: Duration = Duration::from_secs(2);

/// A container's run, as its program's end names it.
pub(super) type Run = (String, u32);

/// The channel for the ends of programs.
type Exits = (
    mpsc::UnboundedSender<(Run, Exit)>,
    mpsc::UnboundedReceiver<(Run, Exit)>,
);

pub(crate) struct PodWorker {
    pub(super) kubelet: Arc<Kubelet>,
    /// How long things take for this pod, if that differs from the node's.
    timing: Option<Arc<Timing>>,
    pub(super) inbox: Inbox,
    pub(super) pod: Arc<Value>,
    pub(super) record: PodRecord,
    pub(super) random: Random,
    pub(super) processes: ByName<Box<Process>>,
    pub(super) exits: Exits,
    /// When each container last ended.
    pub(super) ended_at: ByName<Instant>,
    pub(super) restarts: Backoff,
    pub(super) pulls: Backoff,
    /// Why the last pulls of images have failed.
    pub(super) pull_failures: BTreeMap<String, String>,
    pub(super) probes: Probes,
    /// The volumes that the pod's containers share, by name.
    pub(super) volumes: ByName<Volume>,
    /// The PersistentVolumes behind the pod's volumes, by the volume's name.
    pub(super) claimed: BTreeMap<String, String>,
    pub(super) mounted: bool,
    pub(super) mount_tries: u32,
    /// Containers to kill in the next pass, and why.
    pub(super) condemned: BTreeMap<String, String>,
    /// Changes of containers that the node's list has not shown yet.
    pub(super) changes: u32,
    pending: bool,
    /// When the pod's spec last changed, and how often containers had to be restarted for that.
    pub(super) redefined_at: Instant,
    pub(super) redefinitions: usize,
    /// How often its readiness gates have opened again, and when the node takes note of that, if it is known.
    reopenings: usize,
    notes_gates_at: Option<Instant>,
    /// Whether the pod has been ready.
    was_ready: bool,
    /// When a container last began, and when the node takes note of the last one's end, if it is known.
    pub(super) began_at: Instant,
    pub(super) notes_exit_at: Option<Instant>,
    /// Since when a container waits that has ended too often.
    pub(super) waits_since: Option<Instant>,
    /// Whether the node has listed its containers since the last pass.
    listed: bool,
    synced_at: Instant,
    pub(super) retry_at: Option<Instant>,
    /// When a status that could not be written is tried again.
    rewrite_at: Option<Instant>,
    /// Why the node wants to be rid of it, if it does.
    eviction: Option<Arc<pressure::Eviction>>,
    deadline: Option<Instant>,
    /// Since when the node has had it.
    active_since: Instant,
    /// When a resize that the node had no room for is looked at again, at the latest.
    pub(super) resize_at: Option<Instant>,
    /// When the contents of volumes from other objects are updated.
    pub(super) refresh_at: Option<Instant>,
    /// How often the node has asked to look again.
    resize_asked: u32,
    /// Whether the node has said that it stops the pod.
    pub(super) announced: bool,
}

/// Whether one of the pod's readiness gates says no; one that says nothing yet does not count.
fn has_closed_gate(pod: &Value) -> bool {
    let gates = at(pod, "spec.readinessGates").and_then(Value::as_array);
    gates.into_iter().flatten().any(|gate| {
        let kind = gate
            .get("conditionType")
            .and_then(Value::as_str)
            .unwrap_or_default();
        condition_of(pod, kind)
            .is_some_and(|condition| condition.get("status") == Some(&Value::from("False")))
    })
}

/// The pod is gone from the API: its worker stops.
pub(super) struct Gone;

impl PodWorker {
    pub(crate) fn new(
        kubelet: Arc<Kubelet>,
        inbox: Inbox,
        pod_ip: String,
        random: Random,
        timing: Option<Arc<Timing>>,
    ) -> Self {
        let pod = inbox.pod();
        let shown = at(&pod, "status.startTime").and_then(Value::as_str);
        let start_time = shown.map_or_else(|| rfc3339(kubelet.clock.now_seconds()), str::to_owned);
        let host_ip = kubelet.spec.address.as_str().into();
        let record = PodRecord::new(&pod, start_time.into(), host_ip, pod_ip.into());
        let now = Instant::now();
        Self {
            kubelet,
            timing,
            inbox,
            pod,
            record,
            random,
            processes: ByName::default(),
            exits: mpsc::unbounded(),
            ended_at: ByName::default(),
            restarts: Backoff::default(),
            pulls: Backoff::default(),
            pull_failures: BTreeMap::new(),
            probes: Probes::default(),
            volumes: ByName::default(),
            claimed: BTreeMap::new(),
            mounted: false,
            mount_tries: 0,
            condemned: BTreeMap::new(),
            changes: 0,
            pending: true,
            redefined_at: now,
            redefinitions: 0,
            reopenings: 0,
            notes_gates_at: None,
            was_ready: false,
            began_at: now,
            notes_exit_at: None,
            waits_since: None,
            listed: true,
            synced_at: now,
            retry_at: None,
            rewrite_at: None,
            eviction: None,
            deadline: None,
            active_since: now,
            resize_at: None,
            refresh_at: None,
            resize_asked: 0,
            announced: false,
        }
    }

    /// Runs the pod until it is removed. (In a box: a future holds its arguments twice.)
    pub(crate) async fn run(mut self: Box<Self>) {
        if is_over(&self.pod) {
            // Nothing runs any more; it only has to be let go when it is deleted.
            self.record.over = true;
        }
        // Ending is no failure: the pod is gone from the API.
        let _gone = self.live().await;
        if !self.announced {
            // It was deleted without grace: what still runs of it ends now.
            let running = self.running_names(|_| true);
            self.announce_stop(&running);
        }
        self.kubelet.note_wait(&self.pod, None);
        self.kubelet.resized(self.pod.uid());
        self.processes.clear();
        self.kubelet.access.forget(self.pod.uid());
    }

    /// Takes the pod, or refuses it.
    async fn admit(&mut self) -> Result<(), Gone> {
        self.pause(self.timing().admit).await?;
        if let Some((reason, message)) = self.refusal().await {
            self.refuse(&reason, message).await;
        }
        Ok(())
    }

    /// A pod waits for most of its life: rare work has memory of its own only while it is done.
    async fn live(&mut self) -> Result<(), Gone> {
        if string_map(&self.pod, "annotations").contains_key(MIRROR) {
            return Box::pin(self.dismiss()).await;
        }
        if !self.record.over {
            Box::pin(self.admit()).await?;
            self.active_since = Instant::now();
            self.note_deadline();
        }
        loop {
            if self.is_terminating() {
                return Box::pin(self.terminate()).await;
            }
            if let Some(eviction) = self.eviction.take().filter(|_| !self.record.failed) {
                Box::pin(self.evict(&eviction)).await?;
            } else if self.record.over {
                self.kubelet.note_wait(&self.pod, self.rewrite_at);
                match self.rewrite_at {
                    Some(at) => self.until(at).await?,
                    None => self.inbox.changed().await.map_err(|_| Gone)?,
                }
                self.refresh()?;
                if self.rewrite_at.is_some_and(|at| at <= Instant::now()) {
                    Box::pin(self.write_status()).await;
                }
            } else if self.pending && self.may_sync_at() <= Instant::now() {
                Box::pin(self.pass()).await?;
            } else {
                self.wait().await?;
            }
        }
    }

    /// For how long the pod may be active.
    fn note_deadline(&mut self) {
        let seconds = at(&self.pod, "spec.activeDeadlineSeconds").and_then(Value::as_u64);
        self.deadline = seconds.map(|seconds| self.active_since + Duration::from_secs(seconds));
    }

    /// Whether it has been active for longer than it may be.
    pub(super) fn is_overdue(&self) -> bool {
        self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// A pod that stands for one of the node's own, which has none: it is never run, and goes when the node tidies up.
    async fn dismiss(&mut self) -> Result<(), Gone> {
        loop {
            tokio::time::sleep_until(self.next_beat(TIDY_PERIOD_MS, Instant::now())).await;
            self.refresh()?;
            if self.remove().await {
                return self.wait_gone().await;
            }
        }
    }

    /// Why the node does not take the pod, if it does not. A pod from the scheduler fits.
    async fn refusal(&self) -> Option<Refusal> {
        if let Some(message) = pressure::refusal(&self.pod, &self.kubelet.pressures()) {
            return Some((pressure::REASON.to_owned(), message));
        }
        if let Some(refusal) = forbidden_sysctl(&self.pod).or_else(|| other_system(&self.pod)) {
            return Some(refusal);
        }
        if condition_of(&self.pod, "PodScheduled").is_some() {
            return None;
        }
        self.kubelet.misfit(&self.pod).await
    }

    /// How long things take on this node for this pod.
    pub(super) fn timing(&self) -> &Timing {
        self.timing.as_deref().unwrap_or_else(|| self.kubelet.timing())
    }

    /// The present run of the pod's only container, if it is known how long that is to take.
    pub(super) fn run_timing(&self) -> Option<RunTiming> {
        let [container] = self.record.containers.as_slice() else {
            return None;
        };
        let restarts = usize::try_from(container.restarts).ok()?;
        self.timing().runs.get(restarts).copied()
    }

    /// From the creation of a container to the status that shows that it runs.
    fn start_time(&self) -> Duration {
        let timing = self.timing();
        timing.create + timing.start + timing.observe
    }

    /// Whether the pod's only container, which has ended too often, has waited for as long as it is known to have.
    pub(super) fn has_waited_as_known(&mut self, now: Instant) -> bool {
        let Some(waited) = self.run_timing().and_then(|run| run.waited) else {
            return false;
        };
        let since = *self.waits_since.get_or_insert(now);
        waited < AT_ONCE || now + self.start_time() >= since + waited
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.pod.is_terminating()
    }

    /// Whether it is to go: then nothing new is begun.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_terminating() || (self.eviction.is_some() && !self.record.failed)
    }

    async fn pass(&mut self) -> Result<(), Gone> {
        self.pending = false;
        self.listed = false;
        self.notes_gates_at = None;
        self.sync().await?;
        self.synced_at = Instant::now();
        Ok(())
    }

    /// The node has just listed its containers.
    pub(super) fn relisted(&mut self) {
        self.changes = 0;
        self.listed = true;
    }

    /// The pass itself took in the list that followed its actions: the next pass needs a newer one.
    pub(super) fn listed_before_this_pass(&mut self) {
        self.listed = false;
    }

    /// When the next list is made, which is at the same point of every second on a node.
    fn next_list(&self, after: Instant) -> Instant {
        self.next_beat(self.timing().relist.as_millis(), after)
    }

    /// The time of the next try to write a status that could not be written.
    pub(super) fn next_rewrite(&self) -> Instant {
        self.next_beat(REWRITE_PERIOD_MS, Instant::now())
    }

    /// Waits until then, or until the pod changes.
    pub(super) async fn until(&mut self, at: Instant) -> Result<(), Gone> {
        tokio::select! {
            biased;
            changed = self.inbox.changed() => changed.map_err(|_| Gone),
            () = tokio::time::sleep_until(at) => Ok(()),
        }
    }

    /// When something that the node does every `period_ms` milliseconds comes next.
    fn next_beat(&self, period_ms: u128, after: Instant) -> Instant {
        let since = after.saturating_duration_since(self.kubelet.started).as_millis();
        let period_ms = period_ms.max(1);
        let left = period_ms - since % period_ms;
        after + Duration::from_millis(u64::try_from(left).unwrap_or(1))
    }

    /// A pass must see a list that is newer than the last pass.
    fn may_sync_at(&self) -> Instant {
        if let Some(at) = self.notes_gates_at {
            at
        } else if self.listed {
            self.synced_at
        } else {
            self.next_list(self.synced_at)
        }
    }

    /// Waits for the first event, and notes the work that it asks for.
    async fn wait(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let list = (self.changes > 0).then(|| self.notes_exit_at.unwrap_or_else(|| self.next_list(now)));
        let times = [
            self.pending.then(|| self.may_sync_at()),
            list,
            self.retry_at,
            self.rewrite_at,
            self.probes.next_due(),
            self.deadline,
            self.resize_at,
            self.refresh_at,
        ];
        let due = times.into_iter().flatten().min();
        self.kubelet.note_wait(&self.pod, due);
        tokio::select! {
            biased;
            changed = self.inbox.changed() => {
                changed.map_err(|_| Gone)?;
                self.take_update()?;
            }
            Some((run, exit)) = self.exits.1.next() => self.note_exit(&run, exit),
            () = timer::until(due) => Box::pin(self.on_time(list)).await?,
        }
        Ok(())
    }

    async fn on_time(&mut self, list: Option<Instant>) -> Result<(), Gone> {
        let now = Instant::now();
        if self.is_overdue() {
            self.deadline = None;
            return self.exceed_deadline().await;
        }
        if list.is_some_and(|at| at <= now) {
            let changes = std::mem::take(&mut self.changes);
            self.notes_exit_at = None;
            // The first change begins a pass; a second one waits for the next list.
            if changes > 1 || self.pending {
                self.pass().await?;
            } else {
                self.listed = true;
            }
            self.pending = true;
            return Ok(());
        }
        if self.rewrite_at.is_some_and(|at| at <= now) {
            self.write_status().await;
            return Ok(());
        }
        if self.resize_at.is_some_and(|at| at <= now) {
            self.consider_resize();
            return Ok(());
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.pending = true;
            self.listed = true;
            return Ok(());
        }
        if self.refresh_at.is_some_and(|at| at <= now) {
            self.refresh_volumes().await;
            return Ok(());
        }
        if self.pending && self.may_sync_at() <= now {
            return Ok(());
        }
        self.probe().await
    }

    /// A pass sees everything up to its beginning.
    pub(super) fn begin_pass(&mut self) {
        self.pending = false;
    }

    /// A pass has failed: the next one comes by itself, when a container may begin again that has ended too often if there is one.
    pub(super) fn retry_later(&mut self, waits_until: Option<Instant>) {
        let now = Instant::now();
        let left = waits_until.map_or(self.timing().retry, |until| {
            until.saturating_duration_since(now).min(RESYNC_PERIOD)
        });
        if let Some(waited) = self.run_timing().and_then(|run| run.waited)
            && waits_until.is_some()
        {
            let start = self.start_time() + self.timing().observe;
            let since = *self.waits_since.get_or_insert(now);
            self.retry_at = Some(since + waited.saturating_sub(start));
            return;
        }
        let extra = self
            .random
            .below(u64::try_from(left.as_millis() / 2).unwrap_or_default().max(1));
        self.retry_at = Some(now + left + Duration::from_millis(extra));
    }

    /// Asks for a pass, once there is a list that is newer than the last pass (as the kubelet's pod workers wait for its cache).
    pub(super) fn sync_next(&mut self) {
        self.pending = true;
    }

    /// Asks for a pass now, whatever the node has listed.
    pub(super) fn sync_now(&mut self) {
        self.pending = true;
        self.listed = true;
    }

    /// Takes the newest pod and notes the work that its change asks for.
    pub(super) fn take_update(&mut self) -> Result<(), Gone> {
        let old = Arc::clone(&self.pod);
        self.refresh()?;
        let metadata = |field: &str| {
            let of = |pod: &Value| pod.metadata().and_then(|meta| meta.get(field)).cloned();
            of(&old) != of(&self.pod)
        };
        let changed = old.get("spec") != self.pod.get("spec")
            || [
                "labels",
                "annotations",
                "generation",
                "finalizers",
                "ownerReferences",
            ]
            .into_iter()
            .any(metadata);
        if has_closed_gate(&old) && !has_closed_gate(&self.pod) && self.readiness_differs() {
            let known = self.timing().reopenings.get(self.reopenings).copied().flatten();
            self.notes_gates_at =
                known.map(|after| Instant::now() + after.saturating_sub(self.timing().observe));
            self.reopenings += 1;
        }
        if is_over(&self.pod) && !is_over(&old) {
            // Another writer has decided that the pod is over.
            self.record.failed = at(&self.pod, "status.phase").and_then(Value::as_str) == Some("Failed");
            self.condemned.insert(String::new(), String::new());
            self.sync_now();
        }
        if old.get("spec") != self.pod.get("spec") {
            self.redefined_at = Instant::now();
        }
        let deadline = |pod: &Value| at(pod, "spec.activeDeadlineSeconds").cloned();
        if deadline(&old) != deadline(&self.pod) {
            self.note_deadline();
        }
        self.note_resize(&old);
        if changed {
            self.record.add_containers(&self.pod);
            self.pending = true;
        } else if ready_status(&old) != ready_status(&self.pod) {
            // Someone else wrote it, such as the controller that took this node for lost.
            self.pending = true;
        } else if self.readiness_differs() {
            self.pending = true;
        }
        Ok(())
    }

    /// Whether the pod's readiness gates ask for another condition `Ready` than the pod shows.
    fn readiness_differs(&self) -> bool {
        if at(&self.pod, "spec.readinessGates").is_none() {
            return false;
        }
        let Some(shown) = condition_of(&self.pod, "Ready") else {
            return false;
        };
        let wanted = status::status(&self.record, &self.pod, "");
        let wanted = wanted.get("conditions").and_then(Value::as_array);
        wanted.into_iter().flatten().any(|condition| {
            condition.get("type") == shown.get("type")
                && (condition.get("status") != shown.get("status")
                    || condition.get("message") != shown.get("message"))
        })
    }

    /// Takes the newest pod; an error once it is gone.
    pub(super) fn refresh(&mut self) -> Result<(), Gone> {
        if self.inbox.has_changed().is_err() {
            return Err(Gone);
        }
        let Mail {
            pod: newest,
            eviction,
            resize_asked,
            arrival: _,
        } = self.inbox.read();
        self.eviction = eviction;
        if std::mem::replace(&mut self.resize_asked, resize_asked) != resize_asked {
            self.resize_at = Some(Instant::now());
        }
        // The answer to our own write may be newer than what the watch has brought so far.
        if newest.revision() >= self.pod.revision() {
            self.pod = newest;
        }
        Ok(())
    }

    /// Lets time pass, with some jitter; events in the meantime are seen afterwards.
    pub(super) async fn pause(&mut self, duration: Duration) -> Result<(), Gone> {
        let varies = self.timing().varies;
        let duration = if varies {
            vary(duration, &mut self.random)
        } else {
            duration
        };
        tokio::time::sleep(duration).await;
        if self.inbox.has_changed().is_err() {
            return Err(Gone);
        }
        if self.inbox.has_changed().unwrap_or_default() {
            self.take_update()?;
        }
        Ok(())
    }

    /// Waits until the pod is gone.
    pub(super) async fn wait_gone(&mut self) -> Result<(), Gone> {
        loop {
            self.inbox.changed().await.map_err(|_| Gone)?;
            self.refresh()?;
        }
    }

    pub(super) fn path(&self) -> String {
        format!(
            "/api/v1/namespaces/{}/pods/{}",
            self.pod.namespace(),
            self.pod.name()
        )
    }

    /// Writes the pod's status where it differs from the pod's present one.
    pub(super) async fn write_status(&mut self) {
        if self.refresh().is_err() {
            return;
        }
        self.rewrite_at = None;
        let mut status = self.status();
        if !self.was_ready && status::is_ready(&status) {
            self.was_ready = true;
            if let Some(since) = self.ready_since() {
                let early = Duration::try_from(since.duration_since(self.kubelet.clock.now()));
                tokio::time::sleep(early.unwrap_or_default().min(READY_EARLY_MAX)).await;
                status = self.status();
                status::backdate_ready(&mut status, &rfc3339(since));
            }
        }
        let Some(patch) = status::patch(&self.pod, &status) else {
            return;
        };
        let request = http::Request::patch(format!("{}/status", self.path()))
            .header(CONTENT_TYPE, "application/strategic-merge-patch+json")
            .header(USER_AGENT, "kubelet")
            .body(patch)
            .map_err(kube::Error::HttpError);
        let patched = match request {
            Ok(request) => self.kubelet.objects.request(request).await,
            Err(error) => Err(error),
        };
        match patched {
            // Our own write comes back through the watch too; what follows must not wait for it.
            Ok(pod) => {
                let changed = pod.generation() != self.pod.generation()
                    || pod.pointer("/metadata/labels") != self.pod.pointer("/metadata/labels");
                self.pending |= changed;
                self.pod = pod;
            }
            Err(error) => {
                tracing::debug!(%error, pod = %self.pod.name(), "write a pod's status");
                let gone = matches!(&error, kube::Error::Api(status) if status.is_not_found());
                self.rewrite_at = (!gone).then(|| self.next_rewrite());
            }
        }
    }

    /// The status that the pod is to show now.
    fn status(&self) -> Map {
        let now = rfc3339(self.kubelet.clock.now_seconds());
        status::status(&self.record, &self.pod, &now)
    }

    /// The time that the pod's first readiness is to name, if that is given.
    fn ready_since(&self) -> Option<Timestamp> {
        let created: Timestamp = self.pod.meta_text("creationTimestamp").parse().ok()?;
        created.checked_add(self.timing().ready_after?).ok()
    }

    /// Takes the object out of the API, as the kubelet does when nothing of the pod is left. Gives whether that is done.
    pub(super) async fn remove(&mut self) -> bool {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": self.pod.uid()}});
        let request = http::Request::delete(self.path())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "kubelet")
            .body(options)
            .map_err(kube::Error::HttpError);
        let deleted = match request {
            Ok(request) => self.kubelet.objects.send(request).await,
            Err(error) => Err(error),
        };
        match deleted {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, pod = %self.pod.name(), "let a pod go");
                matches!(&error, kube::Error::Api(status) if status.is_not_found())
            }
        }
    }
}

fn ready_status(pod: &Value) -> Option<&Value> {
    condition_of(pod, "Ready")?.get("status")
}

/// Whether the pod shows a phase that it never leaves.
fn is_over(pod: &Value) -> bool {
    matches!(
        at(pod, "status.phase").and_then(Value::as_str),
        Some("Succeeded" | "Failed")
    )
}
