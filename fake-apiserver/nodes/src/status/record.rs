//! A node's record of a pod.

use shared_json::{Text, Value};

use super::containers::{items, name_of};

/// The reason of containers that were removed so that all begin anew.
const RESTARTING_ALL: &str = "RestartingAllContainers";
const TAKEN_AWAY: &str = "The container is removed because RestartAllContainers in place";

/// The kind of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container that is restarted always: it keeps running beside the others.
    Sidecar,
    Regular,
    Ephemeral,
}

impl Kind {
    /// The list of the spec that such a container is in.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Init | Self::Sidecar => "initContainers",
            Self::Regular => "containers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whole seconds, as shown.
    pub at: String,
    pub code: i32,
    pub reason: String,
    pub message: String,
}

/// One run of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Instance {
    pub id: Text,
    pub image: Text,
    pub image_id: Text,
    pub started: Text,
    pub ended: Option<Box<Ended>>,
}

/// One container of the pod, as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerRecord {
    pub name: String,
    pub kind: Kind,
    /// The last run, over or not.
    pub current: Option<Instance>,
    /// How the run before that ended.
    pub previous: Option<Box<Instance>>,
    pub restarts: u32,
    /// The image in the spec from which the last run was made.
    pub spec_image: Text,
    /// Whether its readiness probe, if any, has succeeded.
    pub ready: bool,
    /// Whether its startup probe, if any, has succeeded and its hooks are done.
    pub started: bool,
    /// Why it was not started the last time it should have been: reason and message.
    pub blocked: Option<(String, String)>,
    /// The resources that it runs with.
    pub resources: Value,
    /// The resources that the node has given it, while they are not those that the pod asks for.
    pub allocated: Option<Value>,
}

impl ContainerRecord {
    pub(crate) fn new(spec: &Value, kind: Kind) -> Self {
        Self {
            name: name_of(spec).to_owned(),
            kind,
            current: None,
            previous: None,
            restarts: 0,
            spec_image: Text::new(),
            ready: false,
            started: false,
            blocked: None,
            resources: Value::Null,
            allocated: None,
        }
    }

    /// Whether its resources may change while it runs.
    pub(crate) fn is_resizable(&self) -> bool {
        matches!(self.kind, Kind::Sidecar | Kind::Regular)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|instance| instance.ended.is_none())
    }

    /// How the last run ended, if it did.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.current
            .as_ref()
            .and_then(|instance| instance.ended.as_deref())
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        self.ended().is_some_and(|ended| ended.code == 0)
    }

    /// It is taken away so that it begins anew; nothing but that is known of its last run.
    pub(crate) fn take_away(&mut self) {
        if self.current.take().is_none() {
            return;
        }
        let ended = Ended {
            at: String::new(),
            code: 137,
            reason: RESTARTING_ALL.to_owned(),
            message: TAKEN_AWAY.to_owned(),
        };
        self.previous = Some(Box::new(Instance {
            ended: Some(Box::new(ended)),
            ..Instance::default()
        }));
        self.blocked = Some((RESTARTING_ALL.to_owned(), TAKEN_AWAY.to_owned()));
        self.restarts += 1;
        self.ready = false;
        self.started = false;
    }

    /// Whether it was taken away and has not begun anew.
    pub(crate) fn is_taken_away(&self) -> bool {
        self.current.is_none() && self.previous.is_some()
    }

    pub(crate) fn is_ready(&self) -> bool {
        match self.kind {
            Kind::Init => self.has_succeeded(),
            Kind::Sidecar | Kind::Regular => self.is_running() && self.ready && self.started,
            Kind::Ephemeral => false,
        }
    }
}

/// A node's record of a pod.
#[derive(Debug, Clone)]
pub(crate) struct PodRecord {
    /// Init containers first, in the order of the spec.
    pub containers: Vec<ContainerRecord>,
    /// The sandbox runs.
    pub sandbox: bool,
    /// There was one.
    pub had_sandbox: bool,
    /// The address is shown only once a container was looked at.
    pub shows_address: bool,
    pub start_time: Text,
    pub host_ip: Text,
    pub pod_ip: Text,
    /// The pod is to end, or has ended: nothing will be started any more.
    pub over: bool,
    /// Its containers have been stopped and are gone.
    pub stopped: bool,
    /// The phase was decided by more than its containers: an eviction, a deadline, another writer.
    pub failed: bool,
    /// Reason and message of the pod itself.
    pub failure: Option<(String, String)>,
    /// The node has not taken the pod, and reports nothing else of it.
    pub refused: bool,
    /// The node itself ended it, for this reason.
    pub disrupted: Option<String>,
    /// A resize that is wanted or under way.
    pub resizing: Option<Box<Resizing>>,
}

/// The conditions of a resize: that the node has not taken it up, and that it is under way. Both may be, of two resizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resizing {
    pub pending: Option<ResizeCondition>,
    pub progress: Option<ResizeCondition>,
}

/// One condition of a resize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResizeCondition {
    pub reason: String,
    pub message: String,
    /// The pod's generation that asked for it.
    pub generation: i64,
    /// When it was last looked at, and since when it is so.
    pub probed: String,
    pub since: String,
}

impl PodRecord {
    pub(crate) fn new(pod: &Value, start_time: Text, host_ip: Text, pod_ip: Text) -> Self {
        let mut record = Self {
            containers: Vec::new(),
            sandbox: false,
            had_sandbox: false,
            shows_address: false,
            start_time,
            host_ip,
            pod_ip,
            over: false,
            stopped: false,
            failed: false,
            failure: None,
            refused: false,
            disrupted: None,
            resizing: None,
        };
        record.add_containers(pod);
        record
    }

    /// Adds the containers that the pod has and the record does not: all at first, ephemeral ones later.
    pub(crate) fn add_containers(&mut self, pod: &Value) {
        for (field, kind) in [
            ("initContainers", Kind::Init),
            ("containers", Kind::Regular),
            ("ephemeralContainers", Kind::Ephemeral),
        ] {
            let specs = items(pod, field);
            self.containers
                .reserve_exact(specs.len().saturating_sub(self.containers.len()));
            for spec in specs {
                let always = spec.get("restartPolicy").and_then(Value::as_str) == Some("Always");
                let kind = if kind == Kind::Init && always {
                    Kind::Sidecar
                } else {
                    kind
                };
                if !self.containers.iter().any(|known| known.name == name_of(spec)) {
                    self.containers.push(ContainerRecord::new(spec, kind));
                }
            }
        }
    }

    pub(crate) fn of_kinds<'a>(&'a self, kinds: &'a [Kind]) -> impl Iterator<Item = &'a ContainerRecord> {
        self.containers
            .iter()
            .filter(|record| kinds.contains(&record.kind))
    }

    /// Whether a container without a trace counts as one that ran, once its pod has ended: regular ones if they could begin, of init
    /// containers the first and those before one that has begun.
    pub(crate) fn is_lost(&self, container: &ContainerRecord) -> bool {
        let has_begun = |record: &ContainerRecord| record.current.is_some() || record.previous.is_some();
        match container.kind {
            Kind::Ephemeral => false,
            Kind::Regular => {
                let last = self.of_kinds(&[Kind::Init, Kind::Sidecar]).last();
                last.is_none_or(|last| last.kind == Kind::Init && last.has_succeeded())
                    || self.of_kinds(&[Kind::Regular]).any(has_begun)
            }
            Kind::Init | Kind::Sidecar => {
                let first: Vec<_> = self.of_kinds(&[Kind::Init, Kind::Sidecar]).collect();
                let begun = first.iter().rposition(|record| has_begun(record)).unwrap_or(0);
                first
                    .iter()
                    .take(begun + 1)
                    .any(|record| record.name == container.name)
            }
        }
    }

    /// Whether every init container has done its work: run to its end, or started if it stays.
    pub(crate) fn is_initialized(&self) -> bool {
        let regular_began = self
            .of_kinds(&[Kind::Regular])
            .any(|record| record.current.is_some());
        regular_began
            || self
                .of_kinds(&[Kind::Init, Kind::Sidecar])
                .all(|record| match record.kind {
                    Kind::Init => record.has_succeeded(),
                    _ => record.started && record.current.is_some(),
                })
    }
}
