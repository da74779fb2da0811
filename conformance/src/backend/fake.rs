//! The in-process cluster with our controllers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use client_kit::{AliasNames, Seed, SeededNames, SharedClock, SharedNames, TokioClock};
use controller::metrics::Metrics;
use controller::process::gates::FeatureGates;
use controller::process::install::{self, NAMESPACE};
use controller::process::install_daemon;
use controller::webhook::{Shared, Surroundings, WebhookCaches};
use controller::workloads::{ALL, Crd, Settings};
use controller::{ListOrder, Manager, Options};
use fake_apiserver::faults::{Fault, FaultHandle};
use fake_apiserver::nodes::{Containers, Image, ImageRegistry, NodeSpec, Program};
use fake_apiserver::store::Store;
use fake_apiserver::{Cluster, Webhook, WebhookKind, WebhookRule};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use tokio::task::JoinSet;

use super::collector::Collector;
use super::daemon;
use super::paced::PacedServer;
use crate::error::Error;
use crate::recording::choices::Choices;
use crate::recording::creations::CreationPace;
use crate::recording::environment::Environment;

/// How long a set rests between two passes. Here requests take no time; on a real cluster a pass takes about this long.
const PASS_REST: Duration = Duration::from_millis(10);

/// How long before a recording's first step its cluster starts.
const START: SignedDuration = SignedDuration::from_secs(5);

/// The namespace of the Secrets for the daemon.
const DAEMON_NAMESPACE: &str = "kruise-daemon-config";

/// The manager's user agent.
const MANAGER: &str = "kruise-manager";

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
    cluster: Cluster,
    names: Arc<AliasNames>,
    collector: Arc<Collector>,
    pace: Arc<CreationPace>,
    /// Aborts the manager when dropped.
    _manager: JoinSet<()>,
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

/// The clock of a cluster, once it has started.
type LateClock = Arc<OnceLock<SharedClock>>;

/// The webhooks of OpenKruise, answered by the `controller` crate in this process.
fn webhooks(
    gates: &FeatureGates,
    clock: &LateClock,
    metrics: &Arc<Metrics>,
    shared: &Shared,
) -> Vec<Webhook> {
    let caches = WebhookCaches::default();
    controller::webhook::rules()
        .map(|rule| {
            let (path, gates) = (rule.path.to_owned(), gates.clone());
            let (caches, clock) = (caches.clone(), Arc::clone(clock));
            let (metrics, shared) = (Arc::clone(metrics), shared.clone());
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Webhook {
                name: rule.name.to_owned(),
                kind: match rule.kind {
                    controller::webhook::WebhookKind::Mutating => WebhookKind::Mutating,
                    controller::webhook::WebhookKind::Validating => WebhookKind::Validating,
                },
                rules: vec![WebhookRule {
                    groups: list(rule.groups),
                    versions: list(rule.versions),
                    resources: list(rule.resources),
                    operations: list(rule.operations),
                }],
                user: Some(install::user(NAMESPACE)),
                handler: Arc::new(move |client, review| {
                    let path = path.clone();
                    let unset =
                        || -> SharedClock { Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)) };
                    let surroundings = Surroundings {
                        client: Some(client),
                        gates: gates.clone(),
                        namespace: NAMESPACE.to_owned(),
                        caches: caches.clone(),
                        clock: clock.get().cloned().unwrap_or_else(unset),
                        metrics: Arc::clone(&metrics),
                        shared: shared.clone(),
                    };
                    Box::pin(async move {
                        controller::webhook::review(&path, &review.into(), &surroundings)
                            .await
                            .into()
                    })
                }),
            }
        })
        .collect()
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
        let containers = options.environment.daemon.then(Containers::default);
        if let Some(containers) = &containers {
            builder = builder.containers(containers.clone());
        }
        let gates = gates(&options.environment.gates)?;
        for definition in controller::crds(&gates) {
            builder = builder.object(definition);
        }
        builder = builder.object(
            shared_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        );
        let of_daemon = options.environment.daemon.then_some(DAEMON_NAMESPACE);
        let access = install::access(NAMESPACE, &gates);
        let of_daemon = of_daemon.map(|secrets| install_daemon::objects(NAMESPACE, secrets));
        for object in access.into_iter().chain(of_daemon.into_iter().flatten()) {
            builder = builder.object(object);
        }
        let clock = LateClock::default();
        let (metrics, shared) = (Arc::<Metrics>::default(), Shared::default());
        for webhook in webhooks(&gates, &clock, &metrics, &shared) {
            builder = builder.webhook(webhook);
        }
        let cluster = builder.start().await.map_err(|error| Error::Backend {
            what: "start the in-process cluster".to_owned(),
            why: error.to_string(),
            help: "this is a defect of Seatrial, not of your input".to_owned(),
        })?;
        clock.get_or_init(|| cluster.clock());
        // Each node has had its list of images for long.
        let settings = Settings::from([("nodeimage-creation-delay", "0s".to_owned())]);
        let mut manager_options = Options {
            settings,
            clock: cluster.clock(),
            names: names.clone(),
            rest: PASS_REST,
            gates: gates.clone(),
            list_order: options.environment.choices.clone().map(list_order),
            metrics,
            shared,
            ..Options::default()
        };
        if let Some(tweak) = &options.tweak {
            manager_options = tweak(manager_options);
        }
        let pace = Arc::new(CreationPace::new(options.environment.creations.clone()));
        let way = PacedServer {
            // It has the rights of its role alone, so that a right that the role lacks shows.
            server: cluster
                .server()
                .named(MANAGER)
                .acting_as(&install::user(NAMESPACE)),
            pace: Arc::clone(&pace),
        };
        let manager = Manager::new(Client::new(way, "default"), manager_options);
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run(std::future::pending::<()>()));
        if let Some(containers) = &containers {
            let names: Vec<String> = (1..=nodes)
                .map(|number| node(number, &options.environment).name)
                .collect();
            let client = cluster.client_as(&install_daemon::user(NAMESPACE));
            let place = (&client, &cluster.clock());
            daemon::start(&mut tasks, place, (containers, &images), &gates, &names);
        }
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
            _manager: tasks,
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
