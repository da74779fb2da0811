//! The options of a manager.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{Clock as _, Seed, SeededNames, SharedClock, SharedNames, SystemClock};

use super::ALL;
use super::cloneset::Planner;
use super::workload::{Settings, Workload};
use crate::gates::FeatureGates;
use crate::images::SECRETS_NAMESPACE;
use crate::kit::{ListOrder, RetryDelays, Shared};
use crate::metrics::Metrics;

/// OpenKruise's own namespace, unless said otherwise.
const OWN_NAMESPACE: &str = "kruise-system";

/// The options of a manager.
#[derive(Clone)]
pub struct Options {
    /// Where the time comes from.
    pub clock: SharedClock,
    /// Where the ids of new pods come from.
    pub names: SharedNames,
    /// How long an object rests between two passes: events that come meanwhile are answered together. Zero on a real
    /// cluster, where requests take time of their own; a simulation, in which they take none, should say some
    /// milliseconds, or every event of a large set costs a pass over all its pods.
    pub rest: Duration,
    /// The rules of CloneSets, if they are not those of the gates. Tests put a broken one here to see that it is caught.
    pub planner: Option<Arc<dyn Planner>>,
    /// Where passes are counted.
    pub metrics: Arc<Metrics>,
    /// The feature gates.
    pub gates: FeatureGates,
    /// The values of the kinds' flags.
    pub settings: Settings,
    /// The only namespace that is looked at; all of them if there is none.
    pub namespace: Option<String>,
    /// The manager's own namespace, in which it keeps revisions of objects of the cluster.
    pub own_namespace: String,
    /// The namespace of the Secrets that the daemon may read.
    pub secrets_namespace: String,
    /// How long an object waits after failures.
    pub retry: RetryDelays,
    /// The order in which pods come that are equal in every criterion, by name, lowest first. Go's caches promise none; a replay of a
    /// recording takes the recorded one. Without it they come in the order in which they appeared.
    pub list_order: Option<ListOrder>,
    /// The names of kinds whose controllers do not start, because the API server does not serve them.
    pub left_out: Vec<&'static str>,
    /// State that is shared with the webhooks of the same process.
    pub shared: Shared,
}

impl Options {
    /// The kinds whose controllers start.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        ALL.iter()
            .copied()
            .filter(|workload| workload.is_on(&self.gates) && !self.left_out.contains(&workload.name))
    }
}

impl Default for Options {
    /// The system's clock, the gates and flags of OpenKruise 1.9, and names from a seed of the moment and the process:
    /// two managers never give the same.
    fn default() -> Self {
        let moment =
            u64::try_from(SystemClock.now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or_default();
        let seed = Seed(moment).fork(&std::process::id().to_string());
        Self {
            clock: Arc::new(SystemClock),
            names: Arc::new(SeededNames::new(seed)),
            rest: Duration::ZERO,
            planner: None,
            metrics: Arc::default(),
            gates: FeatureGates::default(),
            settings: Settings::new(),
            namespace: None,
            own_namespace: OWN_NAMESPACE.to_owned(),
            secrets_namespace: SECRETS_NAMESPACE.to_owned(),
            retry: RetryDelays::default(),
            list_order: None,
            left_out: Vec::new(),
            shared: Shared::default(),
        }
    }
}
