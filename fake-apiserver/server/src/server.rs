//! The API server's state, shared by all requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use client_kit::{Jumps, ObjectClient, Random, Seed, SharedClock, SharedNames};
use futures::future::BoxFuture;
use machinery::types::rfc3339;
use machinery::user::User;
use network::Network;
use node_access::NodeAccess;
use pki::FrontProxy;
use pod_rules::FieldError;
use shared_json::Value;
use store::Store;

use crate::aggregation::{Aggregation, Checks, Extension, check_all};
use crate::components::{Component, Running};
use crate::expiry::{Expiry, expire_events};
use crate::faults::Faults;
use crate::history::retire_history;
use crate::impersonation_mode::LastModes;
use crate::local_webhook::Webhook;
use crate::pages::{Page, Pages};
use crate::request_counts::RequestCounts;
use crate::resources::Registry;
use crate::tokens::TokenSigner;
use crate::webhook_client::Connections;

pub use crate::expiry::EVENT_LIFE;

/// An API server without a socket: a `tower::Service` from HTTP request to HTTP response. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<ServerState>,
    /// The default user agent of clients of this process.
    pub(crate) user_agent: Option<&'static str>,
    /// The user of clients of this process; an administrator without.
    pub(crate) user: Option<Arc<User>>,
}

/// The state that all requests of one server share.
pub(crate) struct ServerState {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) clock: SharedClock,
    pub(crate) names: SharedNames,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) tokens: TokenSigner,
    pub(crate) faults: Faults,
    pub(crate) running: Running,
    pub(crate) revisions: RevisionTexts,
    pub(crate) impersonations: LastModes,
    pub(crate) expiry: Arc<Expiry>,
    /// Connections to webhooks.
    pub(crate) webhook_connections: Connections,
    pub(crate) request_counts: RequestCounts,
    pub(crate) jumps: Arc<Jumps>,
    pub(crate) pages: Pages,
    pub(crate) aggregation: Arc<Aggregation>,
    /// How many watches go over sockets.
    pub(crate) remote_watches: AtomicU32,
    /// The ways to the nodes that can be reached, by name.
    nodes: Mutex<BTreeMap<String, Arc<dyn NodeAccess>>>,
    /// The network of the nodes and their pods.
    network: Arc<OnceLock<Network>>,
    random: Mutex<Random>,
}

impl Server {
    /// A server with an empty store. `clock` gives every timestamp, `seed` every uid, `names` every generated name.
    #[must_use]
    pub fn new(clock: SharedClock, seed: Seed, names: SharedNames, webhooks: Vec<Webhook>) -> Self {
        Self::with_store(Store::new(), clock, seed, names, webhooks)
    }

    /// The same with a store that may hold something.
    #[must_use]
    pub fn with_store(
        store: Store,
        clock: SharedClock,
        seed: Seed,
        names: SharedNames,
        webhooks: Vec<Webhook>,
    ) -> Self {
        let jumps: Arc<Jumps> = Arc::default();
        let state = ServerState {
            store: Arc::new(store),
            registry: Registry::default(),
            clock,
            names,
            webhooks,
            tokens: TokenSigner::new(seed),
            faults: Faults::new(seed),
            running: Running::default(),
            revisions: RevisionTexts::default(),
            impersonations: LastModes::default(),
            expiry: Arc::default(),
            webhook_connections: Connections::new(&jumps),
            request_counts: RequestCounts::default(),
            jumps,
            pages: Pages::default(),
            aggregation: Arc::default(),
            remote_watches: AtomicU32::new(0),
            nodes: Mutex::default(),
            network: Arc::default(),
            random: Mutex::new(seed.fork("uids").random()),
        };
        Self {
            state: Arc::new(state),
            user_agent: None,
            user: None,
        }
    }

    /// A client that calls this server in process. Must be called within a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// The same for a program of this name: its requests have it as their user agent, which is also the field manager of its
    /// writes, and by which [faults](Self::faults) can be meant for it.
    #[must_use]
    pub fn client_named(&self, user_agent: &'static str) -> kube::Client {
        kube::Client::new(self.named(user_agent), "default")
    }

    /// The same for single objects.
    #[must_use]
    pub fn objects_named(&self, user_agent: &'static str) -> ObjectClient {
        ObjectClient::of_service(self.named(user_agent))
    }

    /// The same server, for a caller of this name.
    #[must_use]
    pub fn named(&self, user_agent: &'static str) -> Self {
        Self {
            user_agent: Some(user_agent),
            ..self.clone()
        }
    }

    /// The same server, for a caller who is this user and has the rights of its roles alone, such as
    /// `system:serviceaccount:kube-system:operator`. The groups of service accounts follow from the name.
    #[must_use]
    pub fn acting_as(&self, user: &str) -> Self {
        Self {
            user: Some(Arc::new(User::named(user))),
            ..self.clone()
        }
    }

    /// The same server, for a caller without a name who is this user, or an administrator.
    pub(crate) fn handle_of(&self, user: Option<&str>) -> Self {
        let of_nobody = Self {
            state: Arc::clone(&self.state),
            user_agent: None,
            user: None,
        };
        user.map(|user| of_nobody.acting_as(user)).unwrap_or(of_nobody)
    }

    /// The faults that a test adds.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.state.faults
    }

    /// Makes the server say of this component that it runs, in `componentstatuses`.
    pub fn report_running(&self, component: Component) {
        self.state.running.report(component);
    }

    /// Lets the server reach a node, for logs, commands and ports of its pods. A real server finds a kubelet's port on the
    /// network; here the caller that starts a kubelet says so.
    pub fn connect_node(&self, name: &str, access: impl NodeAccess + 'static) {
        self.state.lock_nodes().insert(name.to_owned(), Arc::new(access));
    }

    /// Lets the server reach pods by their addresses, for `proxy` and for webhooks. Only the first network counts.
    pub fn connect_network(&self, network: &Network) {
        self.state.network.get_or_init(|| network.clone());
    }

    /// The network of the nodes and their pods, if there is one.
    #[must_use]
    pub fn network(&self) -> Option<&Network> {
        self.state.network()
    }

    /// The jumps of the cluster's time, where it runs otherwise.
    #[must_use]
    pub fn jumps(&self) -> &Arc<Jumps> {
        &self.state.jumps
    }

    /// The clock of every timestamp.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.state.clock
    }

    /// Answers requests for a path that Kubernetes does not have. The authorizer is asked about the path, as about any other.
    pub fn add_page(&self, path: &str, page: Page) {
        self.state.pages.add(path, page);
    }

    /// Puts an API server of this process behind a Service: an APIService that names the Service passes requests on to it. The
    /// Service need not exist. Each request has its user in the headers `X-Remote-User`, `X-Remote-Group` and `X-Remote-Extra-…`.
    pub fn add_extension(&self, namespace: &str, service: &str, extension: Extension) {
        self.state
            .aggregation
            .add_extension(namespace, service, extension);
    }

    /// Shows a certificate to the API servers that APIServices name. The first one that is given stays.
    pub fn show_to_extensions(&self, proxy: Arc<FrontProxy>) {
        self.state.aggregation.show(proxy);
    }

    /// Asks the API servers that APIServices name whether they answer, and writes that into the statuses of the APIServices, until
    /// dropped.
    #[must_use]
    pub fn check_extensions(&self) -> BoxFuture<'static, ()> {
        let state = &self.state;
        Box::pin(check_all(Checks {
            store: Arc::clone(&state.store),
            aggregation: Arc::clone(&state.aggregation),
            jumps: Arc::clone(&state.jumps),
            clock: Arc::clone(&state.clock),
            network: Arc::clone(&state.network),
            client: self.objects_named("kube-apiserver"),
        }))
    }

    /// Draws uids anew, for a server that goes on after it was stopped: those that it drew before are taken.
    pub fn reseed(&self, seed: Seed) {
        *self.state.lock_random() = seed.fork("uids").random();
    }

    /// A new uid.
    #[must_use]
    pub fn new_uid(&self) -> String {
        self.state.new_uid()
    }

    /// The time as `metav1.Time` is written.
    #[must_use]
    pub fn now(&self) -> String {
        self.state.now()
    }

    /// Serves the custom resources of a CustomResourceDefinition that the store holds.
    ///
    /// # Errors
    /// The errors in the definition.
    pub fn define(&self, definition: &Value) -> Result<(), Vec<FieldError>> {
        let revision = self.state.store.revision();
        self.state.registry.define(definition, revision)
    }

    /// Deletes events that have not been written for `life`, until dropped.
    #[must_use]
    pub fn expire_events(&self, life: Duration) -> BoxFuture<'static, ()> {
        let state = &self.state;
        let (store, expiry) = (Arc::clone(&state.store), Arc::clone(&state.expiry));
        Box::pin(expire_events(store, state.clock.clone(), expiry, life))
    }

    /// Refuses lists and watches that continue from more than five to ten minutes ago, until dropped.
    #[must_use]
    pub fn retire_history(&self) -> BoxFuture<'static, ()> {
        Box::pin(retire_history(Arc::clone(&self.state.store)))
    }

    /// The server's store, for observers and assertions.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.state.store
    }
}

/// The data of ControllerRevisions that were not written as a Go client writes them, by uid: the real server keeps their bytes,
/// and compares them. The oldest are forgotten.
#[derive(Default)]
pub(crate) struct RevisionTexts(Mutex<VecDeque<(String, String)>>);

impl RevisionTexts {
    const KEPT_MAX: usize = 256;

    pub(crate) fn keep(&self, uid: &str, data: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(Self::KEPT_MAX - 1);
        kept.push_front((uid.to_owned(), data));
    }

    pub(crate) fn data(&self, uid: &str) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter()
            .find(|(other, _)| other == uid)
            .map(|(_, data)| data.clone())
    }
}

impl ServerState {
    fn lock_random(&self) -> MutexGuard<'_, Random> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_nodes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn NodeAccess>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to a node, if it can be reached.
    pub(crate) fn node_access(&self, name: &str) -> Option<Arc<dyn NodeAccess>> {
        self.lock_nodes().get(name).cloned()
    }

    /// The network of the nodes, if there is one.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.get()
    }

    pub(crate) fn new_uid(&self) -> String {
        self.lock_random().uuid()
    }

    /// A number in `low..=high`.
    pub(crate) fn random_between(&self, low: u64, high: u64) -> u64 {
        self.lock_random().between(low, high)
    }

    /// The time as `metav1.Time` is written.
    pub(crate) fn now(&self) -> String {
        rfc3339(self.clock.now_seconds())
    }
}
