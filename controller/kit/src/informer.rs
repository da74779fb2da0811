//! A watch and the objects it has seen.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::controller_of;

/// How many objects are listed at a time: a page is in memory as a whole, as text beside the objects made from it.
const PAGE: u32 = 100;
/// The delay after the first failure of a watch (client-go: 0.8 s), doubled by each further one …
const RETRY_DELAY_MIN: Duration = Duration::from_millis(800);
/// … up to this (client-go: 30 s).
const RETRY_DELAY_MAX: Duration = Duration::from_secs(30);

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its namespace; empty for an object of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespace and a name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// An object's key.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }
}

/// A change of an object.
pub enum Change<'a, K> {
    /// It appeared.
    Added(&'a Arc<K>),
    /// It changed, from the first to the second.
    Updated(&'a Arc<K>, &'a Arc<K>),
    /// It is gone; its last known state.
    Deleted(&'a Arc<K>),
}

/// A kind that an [`Informer`] can hold.
pub trait Cached:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Cached for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// Gets each change of a kind's objects, after the store has it.
type Listener<K> = Box<dyn FnMut(&Change<'_, K>) + Send>;

/// The objects of one kind as far as the watch has got. Clones share them.
pub struct Informer<K> {
    store: Arc<Mutex<Store<K>>>,
    listeners: Arc<Mutex<Vec<Listener<K>>>>,
    synced: watch::Sender<bool>,
    order: Option<ListOrder>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            listeners: Arc::clone(&self.listeners),
            synced: self.synced.clone(),
            order: self.order.clone(),
        }
    }
}

struct Store<K> {
    objects: BTreeMap<ObjectKey, Held<K>>,
    /// By the uid of the controller; those without one under the empty text.
    by_owner: BTreeMap<String, InOrder<K>>,
}

/// Objects in the order in which they appeared, by a number that counts up.
///
/// client-go's caches are Go maps and promise no order, but recordings of OpenKruise show this one wherever pods are equal
/// in every criterion.
type InOrder<K> = BTreeMap<usize, Arc<K>>;

/// The order in which objects are listed that are equal in every criterion: those with a lower number of their name first. Objects of
/// equal numbers stay in the order of [`InOrder`].
pub type ListOrder = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// An object, and its place among those of its owner.
struct Held<K> {
    object: Arc<K>,
    place: usize,
}

impl<K: Cached> Default for Informer<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Cached> Informer<K> {
    /// A cache that holds nothing yet.
    pub fn new() -> Self {
        let store = Store {
            objects: BTreeMap::new(),
            by_owner: BTreeMap::new(),
        };
        Self {
            store: Arc::new(Mutex::new(store)),
            listeners: Arc::default(),
            synced: watch::Sender::new(false),
            order: None,
        }
    }

    /// The same, whose objects are listed in an order of the caller's choice.
    pub fn in_order(order: Option<ListOrder>) -> Self {
        Self { order, ..Self::new() }
    }

    /// Puts objects into the chosen order.
    fn ordered(&self, mut objects: Vec<Arc<K>>) -> Vec<Arc<K>> {
        if let Some(order) = &self.order {
            objects.sort_by_cached_key(|object| order(object.meta().name.as_deref().unwrap_or_default()));
        }
        objects
    }

    /// The object, if the watch has seen it.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.lock().objects.get(key).map(|held| Arc::clone(&held.object))
    }

    /// All objects, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        let store = self.lock();
        let objects = store.objects.values().map(|held| Arc::clone(&held.object));
        let objects = objects.collect();
        drop(store);
        self.ordered(objects)
    }

    /// The objects of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let store = self.lock();
        let of_namespace = store.objects.range(ObjectKey::new(namespace, "")..);
        of_namespace
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, held)| Arc::clone(&held.object))
            .collect()
    }

    /// The objects controlled by the object with that uid, in the order of [`InOrder`].
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let store = self.lock();
        let owned = store.by_owner.get(uid).map(BTreeMap::values);
        let owned = owned.into_iter().flatten().cloned().collect();
        drop(store);
        self.ordered(owned)
    }

    /// The objects of a namespace that no controller owns, in the order of [`InOrder`].
    pub fn orphans(&self, namespace: &str) -> Vec<Arc<K>> {
        self.owned_by("")
            .into_iter()
            .filter(|object| object.namespace().as_deref() == Some(namespace))
            .collect()
    }

    /// Waits until all objects that exist have been seen.
    pub async fn wait_synced(&self) {
        // An error would mean that the sender is gone, but `self` has one.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Has `listener` get each change, after those that listen already. Must be called before [`run`](Self::run).
    pub fn listen(&self, listener: impl FnMut(&Change<'_, K>) + Send + 'static) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(listener));
    }

    /// Watches the selected objects for ever.
    pub async fn run(self, api: Api<K>, selection: watcher::Config) {
        let mut listeners = {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *listeners)
        };
        let mut handler = |change: Change<'_, K>| {
            for listener in &mut listeners {
                listener(&change);
            }
        };
        let selection = selection.page_size(PAGE);
        let mut events = pin!(watcher(api, selection));
        let mut listing: BTreeMap<ObjectKey, Arc<K>> = BTreeMap::new();
        let mut delay = RETRY_DELAY_MIN;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // Each attempt to list begins with `Init`, before any answer: only the rest says that the server answers.
                    if !matches!(event, Event::Init) {
                        delay = RETRY_DELAY_MIN;
                    }
                    self.handle(event, &mut listing, &mut handler);
                }
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&()), %error, "failed to watch");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(RETRY_DELAY_MAX);
                }
            }
        }
    }

    fn handle(
        &self,
        event: Event<K>,
        listing: &mut BTreeMap<ObjectKey, Arc<K>>,
        handler: &mut impl FnMut(Change<'_, K>),
    ) {
        match event {
            Event::Init => listing.clear(),
            Event::InitApply(object) => {
                listing.insert(ObjectKey::of(&object), Arc::new(object));
            }
            Event::InitDone => {
                let gone: Vec<ObjectKey> = self
                    .lock()
                    .objects
                    .keys()
                    .filter(|key| !listing.contains_key(key))
                    .cloned()
                    .collect();
                for key in gone {
                    self.delete(&key, handler);
                }
                for (key, object) in std::mem::take(listing) {
                    self.apply(key, object, handler);
                }
                self.synced.send_replace(true);
            }
            Event::Apply(object) => self.apply(ObjectKey::of(&object), Arc::new(object), handler),
            Event::Delete(object) => self.delete(&ObjectKey::of(&object), handler),
        }
    }

    fn apply(&self, key: ObjectKey, object: Arc<K>, handler: &mut impl FnMut(Change<'_, K>)) {
        let old = self.lock().put(key, Arc::clone(&object));
        match old {
            None => handler(Change::Added(&object)),
            // Another object of the same name: the end of the old one was missed.
            Some(old) if old.uid() != object.uid() => {
                handler(Change::Deleted(&old));
                handler(Change::Added(&object));
            }
            Some(old) if old.resource_version() != object.resource_version() => {
                handler(Change::Updated(&old, &object));
            }
            Some(_) => {}
        }
    }

    fn delete(&self, key: &ObjectKey, handler: &mut impl FnMut(Change<'_, K>)) {
        let old = self.lock().take(key);
        if let Some(old) = old {
            handler(Change::Deleted(&old));
        }
    }

    /// Takes in the server's answer about an object, where the watch has not shown it. No listener gets the change: only the asker
    /// knows of it.
    pub fn learn(&self, key: &ObjectKey, object: Option<K>) {
        let mut store = self.lock();
        match object {
            Some(object) => drop(store.put(key.clone(), Arc::new(object))),
            None => drop(store.take(key)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Store<K>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Store<K> {
    /// Takes in an object, and gives the one of that name that was there. It keeps its place while it keeps its owner.
    fn put(&mut self, key: ObjectKey, object: Arc<K>) -> Option<Arc<K>> {
        let owner = owner_uid(object.as_ref());
        let known = self.objects.get(&key);
        let stays = known.filter(|held| owner_uid(held.object.as_ref()) == owner);
        let (old, place) = match stays {
            Some(held) => (Some(Arc::clone(&held.object)), Some(held.place)),
            None => (self.take(&key), None),
        };
        let owned = self.by_owner.entry(owner).or_default();
        let place = place.unwrap_or_else(|| owned.last_key_value().map_or(0, |(last, _)| last + 1));
        owned.insert(place, Arc::clone(&object));
        self.objects.insert(key, Held { object, place });
        old
    }

    fn take(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let held = self.objects.remove(key)?;
        let owner = owner_uid(held.object.as_ref());
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.remove(&held.place);
            if owned.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(held.object)
    }
}

fn owner_uid(object: &impl Resource) -> String {
    controller_of(object.meta())
        .map(|owner| owner.uid.clone())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::Pod;
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, owner: &str, version: u32) -> (ObjectKey, Arc<Pod>) {
        let object = serde_json::from_value(json!({ "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": version.to_string(),
            "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": owner, "uid": owner, "controller": true }],
        } }));
        (ObjectKey::new("default", name), Arc::new(object.unwrap()))
    }

    /// The server does not know the kind: lists are asked for after 0.8, 1.6, 3.2, … seconds, and at last every 30 seconds.
    #[rstest::rstest]
    #[case(0, 1)]
    #[case(1, 2)]
    #[case(25, 6)]
    #[case(60, 7)]
    #[case(360, 17)]
    #[tokio::test(start_paused = true)]
    async fn lists_that_fail_are_asked_for_less_and_less_often(
        #[case] seconds: u64,
        #[case] expected: usize,
    ) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let service = tower::service_fn(move |_: hyper::Request<Body>| {
            counter.fetch_add(1, Ordering::Relaxed);
            let answer = hyper::Response::builder().status(404);
            std::future::ready(answer.body(Body::from(b"404 page not found".to_vec())))
        });
        let api: Api<Pod> = Api::all(Client::new(service, "default"));
        let watch = tokio::spawn(Informer::new().run(api, watcher::Config::default()));
        tokio::time::sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
        watch.abort();
        assert_eq!(asked.load(Ordering::Relaxed), expected);
    }

    // Each word: a pod's name and its owner; `-x` takes x away.
    #[rstest::rstest]
    #[case("c1 a1 b1", "c a b")]
    #[case("a1 b1 c1 -a d1 b1", "b c d")]
    #[case("a1 b1 a2 a1", "b a")]
    #[case("a1 -a b1 a1", "b a")]
    fn owned_objects_come_in_the_order_of_their_appearance(#[case] steps: &str, #[case] expected: &str) {
        let mut store = Store {
            objects: BTreeMap::new(),
            by_owner: BTreeMap::new(),
        };
        for (version, step) in (1..).zip(steps.split(' ')) {
            if let Some(name) = step.strip_prefix('-') {
                assert!(store.take(&ObjectKey::new("default", name)).is_some());
            } else {
                let (key, pod) = pod(&step[..1], &step[1..], version);
                store.put(key, pod);
            }
        }
        let owned = store.by_owner["1"].values();
        let names: Vec<String> = owned.map(|pod| pod.name_any()).collect();
        assert_eq!(names.join(" "), expected);
    }
}
