//! The caches of kinds: one watch for each kind, however many read it.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use kube::Api;
use kube::runtime::watcher;
use tokio::task::JoinSet;

use super::informer::{Cached, Informer, ListOrder};

/// An [`Informer`] for each kind that is read, and the watches that fill them.
#[derive(Default)]
pub(super) struct Caches {
    held: Vec<(TypeId, Box<dyn Any + Send>)>,
    watches: Vec<BoxFuture<'static, ()>>,
    order: Option<ListOrder>,
}

impl Caches {
    /// Caches that list their objects in an order of the caller's choice.
    pub(super) fn in_order(order: Option<ListOrder>) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// The cache of a kind, if there is one.
    fn known<K: Cached>(&self) -> Option<Informer<K>> {
        let kind = TypeId::of::<K>();
        let (_, cache) = self.held.iter().find(|(known, _)| *known == kind)?;
        cache.downcast_ref::<Informer<K>>().cloned()
    }

    /// The cache of a kind. The selected objects of `api` are watched, unless the kind is watched already.
    pub(super) fn of<K: Cached>(&mut self, api: Api<K>, selection: watcher::Config) -> Informer<K> {
        if let Some(cache) = self.known() {
            return cache;
        }
        let cache = Informer::in_order(self.order.clone());
        self.hold(cache.clone());
        self.watches.push(Box::pin(cache.clone().run(api, selection)));
        cache
    }

    fn hold<K: Cached>(&mut self, cache: Informer<K>) {
        self.held.push((TypeId::of::<K>(), Box::new(cache)));
    }

    /// The watches that have not been taken yet.
    pub(super) fn take_watches(&mut self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.watches)
    }
}

/// The caches of webhooks. A kind is watched from the first request on that reads it, until the last clone is dropped: as with
/// OpenKruise, managers that do not lead answer requests, too.
#[derive(Clone, Default)]
pub struct WebhookCaches(Arc<Mutex<(Caches, JoinSet<()>)>>);

impl WebhookCaches {
    /// The cache of a kind.
    pub(super) fn of<K: Cached>(&self, api: Api<K>) -> Informer<K> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (caches, running) = &mut *guard;
        let cache = caches.of(api, watcher::Config::default());
        for watch in caches.take_watches() {
            running.spawn(watch);
        }
        cache
    }

    /// Whether the kind is watched.
    pub(super) fn has<K: Cached>(&self) -> bool {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.0.known::<K>().is_some()
    }

    /// The cache of a kind that was put here; an empty one if there is none.
    pub(super) fn held<K: Cached>(&self) -> Informer<K> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.0.known().unwrap_or_default()
    }

    /// Caches with these objects, which nothing watches.
    #[doc(hidden)]
    #[must_use]
    pub fn with<K: Cached>(self, objects: Vec<K>) -> Self {
        let cache = Informer::new();
        for object in objects {
            cache.learn(&super::ObjectKey::of(&object), Some(object));
        }
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .hold(cache);
        self
    }
}
