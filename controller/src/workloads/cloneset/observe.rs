//! What the planner sees: one moment of a CloneSet and what belongs to it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;

use super::inplace::complete;
use super::inplace::state::{Change, UpdateState, update_state, waiting_change};
use super::lifecycle;
use crate::api::labels;
use crate::api::v1alpha1::{CloneSet, ImagePullJob};
use crate::pod::{self, Pod};

/// A pod as the caches hold it, with what every pass over its set asks of it, read off once.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Pod")]
pub struct CachedPod {
    facts: OnceLock<Facts>,
    /// None for a pod without an update in place, or with one that is over: its annotation stays, but nothing follows from it.
    in_place: OnceLock<Option<Box<InPlace>>>,
    pod: Pod,
}

/// What a pass asks of every pod, whatever it is about.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Whether it neither ended nor terminates.
    pub(crate) active: bool,
    /// Running and ready, and no update in place in the way.
    pub(crate) update_ready: bool,
    /// Whether its label says that it is to be deleted.
    pub(crate) marked: bool,
    /// Its lifecycle state; empty when it has none.
    pub(crate) state: Box<str>,
    /// The revision that its label names, in either form; empty when it has none.
    pub(crate) revision: Box<str>,
}

/// What a pod says of its update in place. Where a text cannot be read it is the error's.
#[derive(Debug, Clone)]
pub(crate) struct InPlace {
    /// How far it is, if there is one.
    pub(crate) state: Option<Result<UpdateState, String>>,
    /// Whether its last batch has arrived.
    pub(crate) arrived: bool,
    /// What waits for the grace period.
    pub(crate) waiting: Option<Result<Change, String>>,
}

impl CachedPod {
    /// What every pass asks of it.
    pub(crate) fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| Facts {
            active: pod::is_active(&self.pod),
            update_ready: pod::is_update_ready(&self.pod),
            marked: pod::label(&self.pod, labels::SPECIFIED_DELETE).is_some(),
            state: lifecycle::state_of(&self.pod).into(),
            revision: pod::label(&self.pod, labels::REVISION_HASH)
                .unwrap_or_default()
                .into(),
        })
    }

    /// Its update in place; one that is over counts as none.
    pub(crate) fn in_place(&self) -> &InPlace {
        static NONE: InPlace = InPlace {
            state: None,
            arrived: false,
            waiting: None,
        };
        let in_place = self.in_place.get_or_init(|| {
            let (state, waiting) = (update_state(&self.pod), waiting_change(&self.pod));
            let arrived = matches!(&state, Some(Ok(state)) if complete::check(&self.pod, state).is_ok());
            let over = match &state {
                None => true,
                Some(Ok(state)) => arrived && !state.has_next(),
                Some(Err(_)) => false,
            };
            (!over || waiting.is_some()).then(|| {
                Box::new(InPlace {
                    state,
                    arrived,
                    waiting,
                })
            })
        });
        in_place.as_deref().unwrap_or(&NONE)
    }
}

impl From<Pod> for CachedPod {
    fn from(pod: Pod) -> Self {
        Self {
            facts: OnceLock::new(),
            in_place: OnceLock::new(),
            pod,
        }
    }
}

impl Deref for CachedPod {
    type Target = Pod;

    fn deref(&self) -> &Pod {
        &self.pod
    }
}

impl Resource for CachedPod {
    type DynamicType = ();
    type Scope = <Pod as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.pod.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.facts = OnceLock::new();
        self.in_place = OnceLock::new();
        &mut self.pod.metadata
    }
}

/// One moment of a CloneSet.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The set.
    pub set: Arc<CloneSet>,
    /// The pods it owns, whatever their phase.
    pub pods: Vec<Arc<CachedPod>>,
    /// The claims it owns that do not terminate.
    pub claims: Vec<Arc<PersistentVolumeClaim>>,
    /// Its revisions, those without an owner included.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The jobs that pull its images; none are looked at unless their feature gate is on.
    pub jobs: Vec<Arc<ImagePullJob>>,
    /// The labels of nodes, by name; only what the ranking for deletion needs, so often empty.
    pub nodes: BTreeMap<String, BTreeMap<String, String>>,
    /// When.
    pub now: Timestamp,
}

/// A revision of the template.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// `<set>-<hash>`.
    pub name: String,
    /// The pod template.
    pub template: Value,
    /// The hash of the claim templates that came with it, if the revision says one.
    pub claims: Option<String>,
}

impl Revision {
    /// Whether its claim templates are those of another revision. One that does not say, as those before OpenKruise 1.7, has the same.
    pub(crate) fn has_claims_of(&self, other: &Self) -> bool {
        match (&self.claims, &other.claims) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        }
    }
}

/// The revisions a pass works with.
#[derive(Debug, Clone, PartialEq)]
pub struct Revisions {
    /// The one of the spec.
    pub update: Revision,
    /// The one before it; the same while nothing is rolled out.
    pub current: Revision,
    /// All of them, oldest first.
    pub all: Vec<Revision>,
    /// How often a name was taken.
    pub collision_count: i32,
}
