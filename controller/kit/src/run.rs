//! The runtime: one watch for each kind, however many reconcilers read it, and the workers of all reconcilers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use tokio::task::JoinSet;

use super::caches::Caches;
use super::informer::{Cached, Informer, ListOrder};
use super::queue::WorkQueue;
use super::worker::{self, Reconciler};
use crate::metrics::Metrics;

/// How long a runtime that has to stop waits for the passes that run.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Caches and reconcilers, which begin with [`run`](Self::run).
pub struct Runtime {
    client: Client,
    namespace: Option<String>,
    metrics: Arc<Metrics>,
    caches: Caches,
    watches: Vec<BoxFuture<'static, ()>>,
    workers: Vec<BoxFuture<'static, ()>>,
    close: Vec<Box<dyn FnOnce() + Send>>,
}

impl Runtime {
    /// A runtime that speaks through `client` and looks at one namespace alone, if that is given.
    pub fn new(client: Client, namespace: Option<String>, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            namespace,
            metrics,
            caches: Caches::default(),
            watches: Vec::new(),
            workers: Vec::new(),
            close: Vec::new(),
        }
    }

    /// The same, whose caches list objects in `order`, if that is given. Must be called before the first cache is asked for.
    pub fn listing_in(mut self, order: Option<ListOrder>) -> Self {
        self.caches = Caches::in_order(order);
        self
    }

    /// The cache of a kind whose objects are in namespaces.
    pub fn cache<K: Cached + Resource<Scope = NamespaceResourceScope>>(&mut self) -> Informer<K> {
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        self.caches.of(api, watcher::Config::default())
    }

    /// The cache of a kind whose objects belong to the cluster.
    pub fn cluster_cache<K: Cached + Resource<Scope = ClusterResourceScope>>(&mut self) -> Informer<K> {
        self.caches
            .of(Api::all(self.client.clone()), watcher::Config::default())
    }

    /// The cache of a kind: those of its objects in the whole cluster that a field selector selects. All callers for the kind share the
    /// selection of the first one.
    pub fn selected_cache<K: Cached>(&mut self, fields: &str) -> Informer<K> {
        let selection = watcher::Config::default().fields(fields);
        self.caches.of(Api::all(self.client.clone()), selection)
    }

    /// The same for the objects that a label selector selects.
    pub fn labelled_cache<K: Cached + Resource<Scope = NamespaceResourceScope>>(
        &mut self,
        labels: &str,
    ) -> Informer<K> {
        let selection = watcher::Config::default().labels(labels);
        self.caches.of(Api::all(self.client.clone()), selection)
    }

    /// The cache of one object of the cluster. All callers for the kind share the object of the first one.
    pub fn named_cache<K: Cached + Resource<Scope = ClusterResourceScope>>(
        &mut self,
        name: &str,
    ) -> Informer<K> {
        let selection = watcher::Config::default().fields(&format!("metadata.name={name}"));
        self.caches.of(Api::all(self.client.clone()), selection)
    }

    /// Adds a watch of objects that no cache holds, which runs as long as the others.
    pub fn watch(&mut self, watch: BoxFuture<'static, ()>) {
        self.watches.push(watch);
    }

    /// Adds a reconciler that has this many workers.
    pub fn add<R: Reconciler>(
        &mut self,
        reconciler: &Arc<R>,
        queue: &Arc<WorkQueue<R::Key>>,
        workers: usize,
    ) {
        self.workers
            .extend(worker::workers(reconciler, queue, &self.metrics, workers));
        let queue = Arc::clone(queue);
        self.close.push(Box::new(move || queue.close()));
    }

    /// Watches and works until `shutdown` is ready; then lets the passes that run come to their end.
    pub async fn run(mut self, shutdown: impl Future) {
        let watches = self.caches.take_watches().into_iter().chain(self.watches);
        let _watches: JoinSet<()> = watches.collect();
        let mut work: JoinSet<()> = self.workers.into_iter().collect();
        shutdown.await;
        for close in self.close {
            close();
        }
        let all_done = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, all_done).await.is_err() {
            tracing::warn!("stopped in the middle of a pass");
        }
    }
}
