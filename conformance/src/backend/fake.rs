//! The in-process cluster with our controllers.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{AliasNames, Seed, SeededNames, SharedClock, SharedNames};
use controller::process::gates::FeatureGates;
use controller::workloads::{ALL, Crd};
use controller::{ListOrder, Options};
use fake_apiserver::Cluster;
use fake_apiserver::faults::{Fault, FaultHandle};
use fake_apiserver::nodes::{Image, ImageRegistry, NodeSpec, Program};
use fake_apiserver::store::Store;
use jiff::SignedDuration;
use kruise_cluster::{KruiseCluster, OpenKruise};
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};

use super::collector::Collector;
use super::paced::PacedServer;
use crate::error::Error;
use crate::recording::choices::Choices;
use crate::recording::creations::CreationPace;
use crate::recording::environment::Environment;

/// How long before a recording's first step its cluster starts.
const START: SignedDuration = SignedDuration::from_secs(5);

/// Kinds of OpenKruise whose plural Kubernetes has, too. Recordings tell them apart by the suffix `.kruise`.
const BUILTIN_TOO: [&str; 2] = ["daemonsets", "statefulsets"];

/// How many nodes there are unless said otherwise.
const NODES: u32 = 3;

/// A change of a manager's options: a test's way to break it.
pub type ManagerTweak = Arc<dyn Fn(Options) -> Options + Send + Sync>;

/// The options of an in-process cluster.
#[derive(Clone, Default)]
pub struct FakeOptions {
    /// The number that the run is a function of.
    pub seed: u64,
    /// Whether every commit is kept for [`FakeCluster::trace`].
    pub trace: bool,
    /// Images and names of a recording's test bed.
    pub environment: Environment,
    /// Whether no changes are recorded: for benchmarks.
    pub unrecorded: bool,
    /// How many nodes there are; three unless given.
    pub nodes: Option<u32>,
    /// A change of the manager.
    pub tweak: Option<ManagerTweak>,
}

/// An in-process cluster, its manager, and the collector of its changes.
pub struct FakeCluster {
    cluster: KruiseCluster,
    names: Arc<AliasNames>,
    collector: Arc<Collector>,
    pace: Arc<CreationPace>,
}

/// Reads feature gates.
fn gates(text: &str) -> Result<FeatureGates, Error> {
    FeatureGates::parse(text).map_err(|error| Error::Backend {
        what: "read the feature gates".to_owned(),
        why: error.to_string(),
        help: "give them as the flag --feature-gates takes them".to_owned(),
    })
}

/// The order in which the manager lists pods: that of the recorded choices.
fn list_order(choices: Arc<Choices>) -> ListOrder {
    Arc::new(move |pod| choices.place(pod))
}

/// The node of this number in a recording's test bed.
fn node(number: u32, environment: &Environment) -> NodeSpec {
    let usual = NodeSpec::numbered(number);
    NodeSpec {
        cpu: environment.cpus.unwrap_or(usual.cpu),
        ..usual
    }
}

/// The kinds whose history scenarios look at, under the names that recordings give them: those of OpenKruise that the gates
/// switch on, and the objects that they make.
pub(super) fn watched_kinds(gates: &FeatureGates) -> Vec<(String, ApiResource)> {
    let mut kinds = vec![
        ("apps/v1", "ControllerRevision"),
        ("batch/v1", "Job"),
        ("v1", "Event"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "Pod"),
    ];
    if gates.is_on("ResourceDistributionGate") {
        kinds.extend([("v1", "ConfigMap"), ("v1", "Namespace"), ("v1", "Secret")]);
    }
    let kinds = kinds
        .into_iter()
        .map(|(version, kind)| (version.to_owned(), kind.to_owned()));
    let own = ALL.iter().filter(|workload| workload.is_on(gates));
    let own = own
        .flat_map(|workload| workload.crds)
        .filter(|crd| crd.is_installed(gates))
        .map(Crd::kind);
    own.chain(kinds)
        .map(|(version, kind)| {
            let (group, version) = version.split_once('/').unwrap_or(("", &version));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
            let builtin = BUILTIN_TOO.contains(&resource.plural.as_str());
            let name = match builtin && !resource.group.is_empty() {
                true => format!("{}.kruise", resource.plural),
                false => resource.plural.clone(),
            };
            (name, resource)
        })
        .collect()
}

impl FakeCluster {
    /// Starts a cluster with OpenKruise's definitions, webhooks and controllers.
    ///
    /// # Errors
    /// If the cluster refuses its initial objects.
    pub async fn start(options: FakeOptions) -> Result<Self, Error> {
        let seed = Seed(options.seed);
        let rest: SharedNames = Arc::new(SeededNames::new(seed.fork("names")));
        let names = Arc::new(AliasNames::new(BTreeMap::new(), rest));
        let images = ImageRegistry::default();
        for (reference, digest) in &options.environment.images {
            let mut image = Image::preloaded(reference).with_digest(digest);
            if let Some(pages) = options.environment.pages.get(reference) {
                image = image.with_program(Program {
                    pages: pages.clone(),
                    ..Program::default()
                });
            }
            images.set(reference, image);
        }
        for (reference, pull) in &options.environment.pulls {
            images.set(reference, Image::remote(reference, *pull));
        }
        for reference in &options.environment.missing {
            images.set(reference, Image::missing(reference));
        }
        for (prefix, suffixes) in &options.environment.names {
            names.push(prefix, suffixes.iter().cloned());
        }
        let mut builder = Cluster::builder()
            .seed(options.seed)
            .names(names.clone())
            .images(images.clone())
            .placements(options.environment.placements.clone())
            .pod_timings(options.environment.paces.clone())
            .trace(options.trace);
        if let Some(began) = options.environment.began {
            builder = builder.start_time(began.checked_sub(START).unwrap_or(began));
        }
        let nodes = options.nodes.unwrap_or(NODES);
        builder = builder.node_specs(
            (1..=nodes)
                .map(|number| node(number, &options.environment))
                .collect(),
        );
        let gates = gates(&options.environment.gates)?;
        let pace = Arc::new(CreationPace::new(options.environment.creations.clone()));
        let paced = Arc::clone(&pace);
        let list_order = options.environment.choices.clone().map(list_order);
        let tweak = options.tweak.clone();
        let kruise = OpenKruise::default()
            .gates(gates.clone())
            .daemons(options.environment.daemon)
            .names(names.clone())
            .connect(move |server| Client::new(PacedServer { server, pace: paced }, "default"))
            .options(move |usual| {
                let options = Options { list_order, ..usual };
                match tweak {
                    Some(tweak) => tweak(options),
                    None => options,
                }
            });
        let cluster = kruise.start(builder).await.map_err(|error| Error::Backend {
            what: "start the in-process cluster".to_owned(),
            why: error.to_string(),
            help: "this is a defect of Seatrial, not of your input".to_owned(),
        })?;
        let collector = {
            let kinds = if options.unrecorded {
                Vec::new()
            } else {
                watched_kinds(&gates)
            };
            let choices = options.environment.choices.as_ref();
            Collector::start(&cluster.client(), &cluster.clock(), kinds, choices)
        };
        cluster.settle().await;
        Ok(Self {
            cluster,
            names,
            collector,
            pace,
        })
    }

    /// The cluster's API server.
    pub(crate) fn server(&self) -> fake_apiserver::Server {
        self.cluster.server().clone()
    }

    /// The store behind the cluster's API server.
    pub(crate) fn store(&self) -> &Arc<Store> {
        self.cluster.server().store()
    }

    /// A client of the cluster.
    #[must_use]
    pub fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The cluster's clock.
    #[must_use]
    pub fn clock(&self) -> SharedClock {
        self.cluster.clock()
    }

    /// Every commit so far, if that was asked for.
    #[must_use]
    pub fn trace(&self) -> String {
        self.cluster
            .trace()
            .map(fake_apiserver::Trace::text)
            .unwrap_or_default()
    }

    pub(super) fn add_fault(&self, fault: Fault) -> FaultHandle {
        self.cluster.faults().add(fault)
    }

    pub(super) fn names(&self) -> &AliasNames {
        &self.names
    }

    pub(super) fn pace(&self) -> &CreationPace {
        &self.pace
    }

    pub(super) fn collector(&self) -> &Arc<Collector> {
        &self.collector
    }
}
