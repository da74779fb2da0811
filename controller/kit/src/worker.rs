//! The trait of every controller, and the one loop that works on its queue.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tracing::Instrument as _;

use super::error::ActError;
use super::informer::{Cached, Change, Informer, ObjectKey};
use super::queue::WorkQueue;
use crate::metrics::Metrics;

/// A controller: the objects it watches, and one pass over a key.
pub trait Reconciler: Send + Sync + 'static {
    /// The keys of its queue.
    type Key: Subject;

    /// The controller's name in metrics and logs.
    fn name(&self) -> &'static str;

    /// Says which caches wake it, and by which keys.
    fn watches(&self, watches: &mut Watches<Self::Key>);

    /// One pass.
    ///
    /// # Errors
    /// The reason why the pass failed. The key comes back after a delay that grows with each failure.
    fn pass(&self, key: &Self::Key) -> impl Future<Output = Result<Next, ActError>> + Send;
}

/// A key of a queue, named by the object that it is about.
pub trait Subject: Ord + Clone + Send + Sync + 'static {
    /// The object's namespace; empty for one of the cluster.
    fn namespace(&self) -> &str;
    /// The object's name.
    fn name(&self) -> &str;
}

impl Subject for ObjectKey {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// When to work on a key again after a pass that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something happens.
    Event,
    /// After this time at the latest.
    After(Duration),
}

impl From<Option<Duration>> for Next {
    fn from(delay: Option<Duration>) -> Self {
        delay.map_or(Self::Event, Self::After)
    }
}

/// The caches that a reconciler hangs on.
pub struct Watches<K> {
    queue: Arc<WorkQueue<K>>,
    synced: Vec<BoxFuture<'static, ()>>,
}

impl<K: Subject> Watches<K> {
    /// No pass begins before `cache` has seen all objects that exist, and `wake` gets each of its changes.
    pub fn on<O: Cached>(
        &mut self,
        cache: &Informer<O>,
        mut wake: impl FnMut(&Change<'_, O>, &WorkQueue<K>) + Send + 'static,
    ) {
        self.wait_for(cache);
        let queue = Arc::clone(&self.queue);
        cache.listen(move |change| wake(change, &queue));
    }

    /// No pass begins before `cache` has seen all objects that exist.
    pub fn wait_for<O: Cached>(&mut self, cache: &Informer<O>) {
        let cache = cache.clone();
        self.synced
            .push(Box::pin(async move { cache.wait_synced().await }));
    }
}

/// Has `reconciler` watch, and gives the loops of its workers.
pub(super) fn workers<R: Reconciler>(
    reconciler: &Arc<R>,
    queue: &Arc<WorkQueue<R::Key>>,
    metrics: &Arc<Metrics>,
    count: usize,
) -> Vec<BoxFuture<'static, ()>> {
    let mut watches = Watches {
        queue: Arc::clone(queue),
        synced: Vec::new(),
    };
    reconciler.watches(&mut watches);
    let synced = join_all(watches.synced).map(|_| ()).shared();
    (0..count.max(1))
        .map(|_| -> BoxFuture<'static, ()> {
            let work = work(Arc::clone(reconciler), Arc::clone(queue), Arc::clone(metrics));
            let synced = synced.clone();
            Box::pin(async move {
                synced.await;
                work.await;
            })
        })
        .collect()
}

/// Works on the keys of a queue, one after the other, until the queue is closed.
async fn work<R: Reconciler>(reconciler: Arc<R>, queue: Arc<WorkQueue<R::Key>>, metrics: Arc<Metrics>) {
    let controller = reconciler.name();
    let active = |change| {
        let labels = [("controller", controller)];
        metrics.add("controller_runtime_active_workers", &labels, change);
    };
    while let Some(key) = queue.next().await {
        active(1.0);
        let began = tokio::time::Instant::now();
        let (namespace, name) = (key.namespace(), key.name());
        let span = tracing::debug_span!("reconcile", controller, namespace, name);
        let result = reconciler.pass(&key).instrument(span).await;
        let outcome = match &result {
            Ok(Next::Event) => "success",
            Ok(Next::After(_)) => "requeue_after",
            Err(_) => "error",
        };
        metrics.reconciled(controller, outcome, began.elapsed());
        active(-1.0);
        match result {
            Ok(next) => {
                queue.forget(&key);
                if let Next::After(delay) = next {
                    queue.add_after(key.clone(), delay);
                }
            }
            Err(error) => {
                tracing::warn!(controller, namespace, name, %error, "failed to reconcile");
                metrics.add("workqueue_retries_total", &[("name", controller)], 1.0);
                queue.add_failed(key.clone());
            }
        }
        queue.done(&key);
    }
}
