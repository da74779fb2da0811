//! The registration of a kind: everything that the manager and the process around it read of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::EventRecorder;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::Options;
use crate::api::v1beta1::ImagePullJob;
use crate::gates::FeatureGates;
use crate::go_values::{integer, truth};
use crate::injection::budgets::{self, Asker};
use crate::kit::admission::Webhook;
use crate::kit::conversion::Conversion;
use crate::kit::{Informer, Runtime, WorkQueue};
use crate::metrics::Family;
use crate::pods::actor::{Actor, Words};
use crate::pods::leave::Leave;

/// A kind of OpenKruise: its controller, and the facts that the process around it needs.
pub struct Workload {
    /// The kind's name: that of its folder.
    pub name: &'static str,
    /// The controller's name in events, metrics and logs.
    pub controller: &'static str,
    /// The feature gate without which the controller does not start, if there is one.
    pub gate: Option<&'static str>,
    /// The definitions to install.
    pub crds: &'static [Crd],
    /// The rights that the controller and the webhooks need.
    pub rbac: &'static [Right],
    /// The conversions between versions, of the kinds whose versions differ in more than their names.
    pub conversions: &'static [Conversion],
    /// The webhooks.
    pub webhooks: &'static [Webhook],
    /// The flag for how many objects are worked on at a time; empty where there is none.
    pub workers_flag: &'static str,
    /// The kind's other flags.
    pub flags: &'static [Flag],
    /// The metrics of the kind alone.
    pub metrics: &'static [Family],
    /// Adds the controller to a runtime.
    pub(crate) start: fn(&mut Start<'_>),
}

/// A definition: a CustomResourceDefinition of OpenKruise 1.9.0.
pub struct Crd {
    /// The object, as JSON.
    pub json: &'static str,
    /// The gate with which it is installed; always for `None`.
    pub gate: Option<&'static str>,
    /// The gates that are switched off on an API server that does not serve it.
    pub needed_by: &'static [&'static str],
}

/// A right of the manager's role.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The gate with which it is granted; always for `None`.
    pub gate: Option<&'static str>,
}

/// All verbs of a controller that owns objects.
pub(crate) const OWN: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// The verbs of a cache.
pub(crate) const READ: &[&str] = &["get", "list", "watch"];
/// The verbs of a client that writes a status.
pub(crate) const STATUS: &[&str] = &["get", "patch", "update"];

/// The gate of changes of CPU and memory in place, which need the right to resize pods.
pub(crate) const VERTICAL_SCALING: &str = "InPlaceWorkloadVerticalScaling";

impl Right {
    /// A right that is always granted.
    pub(crate) const fn new(
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            group,
            resource,
            verbs,
            gate: None,
        }
    }

    /// The same right, granted with a gate alone.
    pub(crate) const fn with(self, gate: &'static str) -> Self {
        Self {
            gate: Some(gate),
            ..self
        }
    }
}

/// The values that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// `true` or `false`; alone, the flag means `true`.
    Truth,
    /// A whole number of 64 bits.
    Number,
    /// A whole number of 64 bits that is not negative.
    Unsigned,
    /// A log level: a decimal number of 31 bits.
    Level,
    /// `1h30m`, `1.5s`, `5ms`.
    Duration,
    /// Any text.
    Text,
    /// `text` or `json`.
    Format,
    /// `Name=true,Other=false`. A flag that is repeated adds to its earlier value.
    Gates,
    /// A value of one of klog's own types. klog is not here, so the value is not read.
    Unread,
}

/// A flag: its name, the values that it takes, its default, its purpose.
pub type Flag = (&'static str, Takes, &'static str, &'static str);

/// How many objects of a kind are worked on at the same time, unless said otherwise (OpenKruise: 3).
pub(crate) const DEFAULT_WORKERS: &str = "3";

/// Values of the kinds' flags, by name, as they were written. A flag that is not here has its default.
pub type Settings = BTreeMap<&'static str, String>;

impl Workload {
    /// All flags of the kind.
    pub(crate) fn all_flags(&self) -> impl Iterator<Item = Flag> {
        let workers = (
            self.workers_flag,
            Takes::Number,
            DEFAULT_WORKERS,
            "how many objects of the kind are worked on at a time",
        );
        let workers = (!self.workers_flag.is_empty()).then_some(workers);
        workers.into_iter().chain(self.flags.iter().copied())
    }

    /// The value of one of the kind's flags; empty for a flag that it has not.
    fn setting<'a>(&self, settings: &'a Settings, name: &str) -> &'a str {
        let default = || self.all_flags().find(|(known, _, _, _)| *known == name);
        match settings.get(name) {
            Some(value) => value,
            None => default().map_or("", |(_, _, default, _)| default),
        }
    }

    /// How many workers the settings give the controller: at least one.
    #[must_use]
    pub fn workers(&self, settings: &Settings) -> usize {
        let number = integer(self.setting(settings, self.workers_flag)).unwrap_or_default();
        usize::try_from(number).unwrap_or_default().max(1)
    }

    /// Whether the controller starts with these gates.
    #[must_use]
    pub fn is_on(&self, gates: &FeatureGates) -> bool {
        self.gate.is_none_or(|gate| gates.is_on(gate))
    }
}

impl Crd {
    /// The object.
    #[must_use]
    pub fn object(&self) -> Value {
        serde_json::from_str(self.json).unwrap_or_default()
    }

    /// The definition's name.
    pub(crate) fn name(&self) -> String {
        let (version, plural) = self.resource();
        let group = version.split('/').next().unwrap_or_default();
        format!("{plural}.{group}")
    }

    /// Whether it is installed with these gates.
    #[must_use]
    pub fn is_installed(&self, gates: &FeatureGates) -> bool {
        self.gate.is_none_or(|gate| gates.is_on(gate))
    }

    /// The group and version that are stored (`apps.kruise.io/v1alpha1`), and the kind.
    #[must_use]
    pub fn kind(&self) -> (String, String) {
        self.stored(|names| names.kind)
    }

    /// The group and version that are stored, and the plural.
    #[must_use]
    pub fn resource(&self) -> (String, String) {
        self.stored(|names| names.plural)
    }

    /// Whether it defines a kind.
    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        let (version, known) = self.kind();
        known == kind && version.split('/').next() == Some(group)
    }

    /// The names of its versions, in the order of the definition.
    pub(crate) fn versions(&self) -> Vec<String> {
        let versions = self.outline().versions.into_iter();
        versions.map(|version| version.name).collect()
    }

    /// Whether it has a version, such as `apps.kruise.io/v1beta1`.
    pub(crate) fn serves(&self, api_version: &str) -> bool {
        let Outline { group, versions, .. } = self.outline();
        api_version
            .split_once('/')
            .is_some_and(|(of, wanted)| of == group && versions.iter().any(|version| version.name == wanted))
    }

    /// The group and version that are stored, and one of the names.
    fn stored(&self, name: fn(OutlineNames) -> String) -> (String, String) {
        let outline = self.outline();
        let stored = outline.versions.into_iter().find(|version| version.storage);
        let version = stored.map(|version| version.name).unwrap_or_default();
        (format!("{}/{version}", outline.group), name(outline.names))
    }

    /// The definition without its schemas, which are large.
    fn outline(&self) -> Outline {
        let definition: Option<OutlineOf> = serde_json::from_str(self.json).ok();
        definition.map(|definition| definition.spec).unwrap_or_default()
    }
}

/// A definition without its schemas.
#[derive(Deserialize)]
struct OutlineOf {
    spec: Outline,
}

#[derive(Default, Deserialize)]
struct Outline {
    group: String,
    names: OutlineNames,
    versions: Vec<OutlineVersion>,
}

#[derive(Default, Deserialize)]
struct OutlineNames {
    kind: String,
    plural: String,
}

#[derive(Deserialize)]
struct OutlineVersion {
    name: String,
    storage: bool,
}

/// The context in which a controller starts.
pub(crate) struct Start<'a> {
    /// Where it is added.
    pub(crate) runtime: &'a mut Runtime,
    /// The connection of the manager.
    pub(crate) client: &'a Client,
    /// The options of the manager.
    pub(crate) options: &'a Options,
    /// The kind that starts.
    pub(crate) workload: &'static Workload,
}

impl Start<'_> {
    /// A queue with the manager's delays.
    pub(crate) fn queue<K: Ord + Clone>(&self) -> Arc<WorkQueue<K>> {
        Arc::new(WorkQueue::with_rest(self.options.rest).with_retry(self.options.retry))
    }

    /// How many workers the controller has.
    pub(crate) fn workers(&self) -> usize {
        self.workload.workers(&self.options.settings)
    }

    /// The value of one of the kind's flags.
    pub(crate) fn setting(&self, flag: &str) -> &str {
        self.workload.setting(&self.options.settings, flag)
    }

    /// Whether one of the kind's flags is set.
    pub(crate) fn is_set(&self, flag: &str) -> bool {
        truth(self.setting(flag)).unwrap_or(false)
    }

    /// The actor of the controller, with its words for events.
    pub(crate) fn actor(&self, words: &'static Words) -> Actor {
        Actor {
            client: self.client.clone(),
            recorder: self.recorder(),
            expectations: Arc::default(),
            names: Arc::clone(&self.options.names),
            clock: Arc::clone(&self.options.clock),
            words,
            leave: None,
            refusals: Arc::default(),
        }
    }

    /// The source of leave for pods to go out of service for updates, if its gate is on.
    pub(crate) fn leave(&mut self) -> Option<Arc<dyn Leave>> {
        let options = self.options;
        if !options.gates.is_on(budgets::UPDATE_GATE) {
            return None;
        }
        Some(Arc::new(Asker {
            client: self.client.clone(),
            budgets: self.runtime.cache(),
            pods: self.runtime.cache(),
            clock: Arc::clone(&options.clock),
            metrics: Arc::clone(&options.metrics),
            desk: options.shared.of(),
            tells_resizes: options.gates.is_on(budgets::RESIZE_GATE),
        }))
    }

    /// The cache of ImagePullJobs, which stays empty where none are made.
    pub(crate) fn pull_jobs(&mut self, are_made: bool) -> Informer<ImagePullJob> {
        match are_made {
            true => self.runtime.cache(),
            false => Informer::new(),
        }
    }

    /// Records events under the controller's name.
    pub(crate) fn recorder(&self) -> EventRecorder {
        let clock = Arc::clone(&self.options.clock);
        EventRecorder::new(self.client.clone(), self.workload.controller, None, clock).with_reporting(true)
    }
}
