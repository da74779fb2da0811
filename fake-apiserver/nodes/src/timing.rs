//! Durations on a simulated node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client_kit::Random;

/// The durations of a node's work.
///
/// The defaults are those of a kubelet 1.36 with containerd in the recordings, rounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// From noticing a pod to telling so in its status.
    pub admit: Duration,
    /// To make a pod's sandbox: network, volumes.
    pub sandbox: Duration,
    /// To create a container from an image that is there.
    pub create: Duration,
    /// To start a created container.
    pub start: Duration,
    /// To notice that a container runs, or that a readiness gate has opened.
    pub observe: Duration,
    /// For a container to end after it was asked to.
    pub stop: Duration,
    /// From the last container's own end to the pod's final phase.
    pub wind_down: Duration,
    /// From the last container's end to the pod's removal.
    pub remove: Duration,
    /// How often the node lists its containers (the kubelet's PLEG): readiness gates that open are seen then.
    pub relist: Duration,
    /// Before the kubelet looks again at a pod that lacks something, and up to half as much more: an object that a container's
    /// variables name.
    pub retry: Duration,
    /// The longest wait before the kubelet tries again to mount the volumes of a pod.
    pub mount_retry_max: Duration,
    /// Whether each use varies by up to a fifth, by the seed.
    pub varies: bool,
    /// How long it took, each time, from the change of a running container's definition until its pod's status showed the new
    /// one. Without them, or where it is not known, it is the time for stopping, creating and starting.
    pub redefinitions: Vec<Option<Duration>>,
    /// How long it took, each time, from the reopening of a pod's readiness gates until the pod was ready. Without them, or where
    /// it is not known, that waits for the node's next list of containers.
    pub reopenings: Vec<Option<Duration>>,
    /// From a pod's creation to the time that its `Ready` condition names when the pod first becomes ready, in whole seconds. On a busy
    /// machine the kubelet's write follows seconds after that time. Without it the condition names the time of the write.
    pub ready_after: Option<Duration>,
    /// The runs of the pod's only container, by the number of restarts before each. Without them, or where one is not known, the
    /// program's own time and the node's delays decide.
    pub runs: Vec<RunTiming>,
}

/// How long a container ran, and how long the node then waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTiming {
    /// From the status that shows that it runs to the one that shows that it has ended by itself.
    pub lasted: Option<Duration>,
    /// From that status to the one that shows it running again.
    pub waited: Option<Duration>,
}

/// How long things take for pods of certain names, where that differs from their nodes: for the first pod of a name, the second, and
/// so on. Further pods of the name have the last one's; none stands for the node's.
#[derive(Debug, Default)]
pub struct PodTimings {
    lives: BTreeMap<String, Vec<Option<Arc<Timing>>>>,
    /// How many pods of each name have begun.
    begun: Mutex<BTreeMap<String, usize>>,
}

impl PodTimings {
    /// These timings, by the pods' name.
    #[must_use]
    pub fn new(lives: BTreeMap<String, Vec<Option<Timing>>>) -> Self {
        let shared = |lives: Vec<Option<Timing>>| lives.into_iter().map(|life| life.map(Arc::new)).collect();
        Self {
            lives: lives
                .into_iter()
                .map(|(name, lives)| (name, shared(lives)))
                .collect(),
            begun: Mutex::default(),
        }
    }

    /// The timing of the next pod of this name.
    pub(crate) fn next(&self, pod: &str) -> Option<Arc<Timing>> {
        let lives = self.lives.get(pod)?;
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let count = begun.entry(pod.to_owned()).or_default();
        let life = lives.get(*count).or(lives.last())?.clone();
        *count += 1;
        life
    }
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            admit: ms(30),
            sandbox: ms(450),
            create: ms(50),
            start: ms(60),
            observe: ms(40),
            stop: ms(150),
            wind_down: ms(900),
            remove: ms(400),
            relist: ms(1000),
            retry: ms(10_000),
            mount_retry_max: ms(122_000),
            varies: true,
            redefinitions: Vec::new(),
            reopenings: Vec::new(),
            ready_after: None,
            runs: Vec::new(),
        }
    }
}

impl Timing {
    /// A node that waits only for a pod's own times (probes, grace periods, commands): for a cluster in real
    /// time, which is to be as quick as the machine. Every step takes a millisecond, and what is missing is looked for again within
    /// a second. A container that ends too often waits as long as ever, for that is what its pod shows.
    #[must_use]
    pub fn quick() -> Self {
        let moment = Duration::from_millis(1);
        Self {
            admit: moment,
            sandbox: moment,
            create: moment,
            start: moment,
            observe: moment,
            stop: moment,
            wind_down: moment,
            remove: moment,
            relist: Duration::from_millis(10),
            retry: Duration::from_millis(400),
            mount_retry_max: Duration::from_millis(500),
            ..Self::default()
        }
    }
}

/// `duration`, give or take a fifth, in whole milliseconds.
pub(super) fn vary(duration: Duration, random: &mut Random) -> Duration {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fifth = ms / 5;
    Duration::from_millis(random.between(ms.saturating_sub(fifth), ms.saturating_add(fifth)))
}
