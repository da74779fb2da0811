//! A pod as the caches hold it, with the facts that a pass needs of every pod.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_api::labels;
use kube::Resource;
use serde::Deserialize;

use super::inplace::complete;
use super::inplace::state::{Change, UpdateState, update_state, waiting_change};
use super::lifecycle;
use super::pod::{self, Pod};

/// A pod as the caches hold it, with the facts that every pass over its set needs, read off once.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Pod")]
pub struct CachedPod {
    facts: OnceLock<Facts>,
    /// None for a pod without an update in place, or with one that is over: its annotation stays, but nothing follows from it.
    in_place: OnceLock<Option<Box<InPlace>>>,
    pod: Pod,
}

/// The facts that every pass needs of every pod.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Whether it neither ended nor terminates.
    pub active: bool,
    /// Running and ready, and no update in place in the way.
    pub update_ready: bool,
    /// Whether its label says that it is to be deleted.
    pub marked: bool,
    /// Its lifecycle state; empty when it has none.
    pub state: Box<str>,
    /// The revision that its label names, in either form; empty when it has none.
    pub revision: Box<str>,
}

/// The annotations of a pod about its update in place. Where a text cannot be read it is the error's.
#[derive(Debug, Clone)]
pub struct InPlace {
    /// How far it is, if there is one.
    pub state: Option<Result<UpdateState, String>>,
    /// Whether its last batch has arrived.
    pub arrived: bool,
    /// The change that waits for the grace period.
    pub waiting: Option<Result<Change, String>>,
}

impl CachedPod {
    /// The facts that every pass needs of it.
    pub fn facts(&self) -> &Facts {
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
    pub fn in_place(&self) -> &InPlace {
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
