//! The objects as the watches and our own writes show them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use machinery::meta::ObjectMeta as _;
use shared_json::{Text, Value};

use super::pods::claim_object;
use super::resource::{Key, Res};
use super::tally::{Alike, Tallies};
use super::{controller_of, list, text};

/// The objects of all kinds that are watched.
#[derive(Default)]
pub(crate) struct Cache {
    objects: BTreeMap<Res, BTreeMap<Key, Arc<Value>>>,
    /// By the uid of the controller; an empty one has those without any.
    owned: BTreeMap<(Res, String), BTreeMap<Key, Arc<Value>>>,
    by_uid: BTreeMap<Text, (Res, Key)>,
    /// By a claim of devices: the pods that use it.
    users: BTreeMap<Key, BTreeSet<Key>>,
    tallies: Tallies,
    /// Uids of objects that we have deleted and whose deletion the watch has not delivered yet.
    buried: BTreeSet<String>,
    /// By uid: the version from before our own writes that the watch has not delivered yet.
    before: BTreeMap<String, Arc<Value>>,
}

/// The uid of the object's controller; empty if it has none.
fn owner_uid(object: &Value) -> &str {
    controller_of(object).map_or("", |owner| text(owner, "uid"))
}

/// The claims of devices that a pod uses.
fn claims(pod: &Value) -> Vec<Key> {
    let claims = list(pod, "spec.resourceClaims").iter();
    let names = claims.filter_map(|claim| claim_object(pod, claim));
    names.map(|name| Key::new(pod.namespace(), name)).collect()
}

impl Cache {
    pub(crate) fn get(&self, res: Res, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&res)?.get(&Key::new(namespace, name))
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) fn all(&self, res: Res) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.get(&res).into_iter().flat_map(BTreeMap::values)
    }

    /// How many objects of a kind there are.
    pub(crate) fn count(&self, res: Res) -> usize {
        self.objects.get(&res).map_or(0, BTreeMap::len)
    }

    /// The objects of a namespace, by name.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        res: Res,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        self.objects
            .get(&res)
            .into_iter()
            .flat_map(move |objects| objects.range(Key::new(namespace, "")..))
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// The objects that the object with that uid controls, by name.
    pub(crate) fn owned(&self, res: Res, uid: &str) -> Vec<Arc<Value>> {
        let owned = self.owned.get(&(res, uid.to_owned()));
        owned.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// The objects of a namespace that have no controller, by name.
    pub(crate) fn orphans(&self, res: Res, namespace: &str) -> Vec<Arc<Value>> {
        let orphans = self.owned.get(&(res, String::new())).into_iter();
        orphans
            .flat_map(|orphans| orphans.range(Key::new(namespace, "")..))
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// How many pods the object with that uid controls, by their labels.
    pub(crate) fn owned_numbers(&self, uid: &str) -> impl Iterator<Item = &Alike> {
        self.tallies.owned(uid)
    }

    /// The number of a namespace's pods without a controller, by their labels.
    pub(crate) fn orphan_numbers(&self, namespace: &str) -> impl Iterator<Item = &Alike> {
        self.tallies.orphans(namespace)
    }

    /// The pods that use a claim of devices, by name.
    pub(crate) fn users(&self, claim: &Key) -> impl Iterator<Item = &Key> {
        self.users.get(claim).into_iter().flatten()
    }

    fn use_claims(&mut self, key: &Key, pod: &Value) {
        for claim in claims(pod) {
            self.users.entry(claim).or_default().insert(key.clone());
        }
    }

    fn use_no_claims(&mut self, key: &Key, pod: &Value) {
        for claim in claims(pod) {
            if let Some(users) = self.users.get_mut(&claim) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&claim);
                }
            }
        }
    }

    /// Takes in our own write.
    pub(crate) fn keep(&mut self, res: Res, object: Value) {
        let known = self
            .objects
            .get(&res)
            .and_then(|objects| objects.get(&Key::of(&object)));
        if let Some(known) =
            known.filter(|known| known.uid() == object.uid() && known.revision() < object.revision())
        {
            self.before
                .entry(object.uid().to_owned())
                .or_insert_with(|| Arc::clone(known));
        }
        self.put(res, object);
    }

    /// Takes in an object from a watch. Returns the former version, also from before our own writes; does nothing if a
    /// newer one is known.
    pub(crate) fn told(&mut self, res: Res, object: Arc<Value>) -> Option<(Arc<Value>, Option<Arc<Value>>)> {
        let (object, known) = self.put(res, object)?;
        let before = self.before.remove(object.uid());
        Some((object, before.or(known)))
    }

    /// Takes in an object's present version. Returns the former one; does nothing if a newer one is known.
    pub(crate) fn put(
        &mut self,
        res: Res,
        object: impl Into<Arc<Value>>,
    ) -> Option<(Arc<Value>, Option<Arc<Value>>)> {
        let object = object.into();
        let key = Key::of(&object);
        if self.buried.contains(object.uid()) {
            return None;
        }
        let known = match self.objects.entry(res).or_default().get_mut(&key) {
            Some(known) if known.uid() == object.uid() => {
                if known.revision() > object.revision() {
                    return None;
                }
                if owner_uid(known) == owner_uid(&object) {
                    let known = std::mem::replace(known, Arc::clone(&object));
                    let owned = self.owned.get_mut(&(res, owner_uid(&object).to_owned()));
                    if let Some(place) = owned.and_then(|owned| owned.get_mut(&key)) {
                        *place = Arc::clone(&object);
                    }
                    if res == Res::Pods {
                        self.tallies.change(Some(&known), Some(&object));
                        self.use_no_claims(&key, &known);
                        self.use_claims(&key, &object);
                    }
                    return Some((object, Some(known)));
                }
                Some(Arc::clone(known))
            }
            other => other.cloned(),
        };
        if let Some(known) = &known {
            self.unlink(res, &key, known);
        }
        self.owned
            .entry((res, owner_uid(&object).to_owned()))
            .or_default()
            .insert(key.clone(), Arc::clone(&object));
        if res == Res::Pods {
            self.tallies.change(None, Some(&object));
            self.use_claims(&key, &object);
        }
        self.by_uid.insert(object.meta_text("uid"), (res, key.clone()));
        self.objects
            .entry(res)
            .or_default()
            .insert(key, Arc::clone(&object));
        Some((object, known))
    }

    fn unlink(&mut self, res: Res, key: &Key, object: &Value) {
        self.by_uid.remove(object.uid());
        if res == Res::Pods {
            self.tallies.change(Some(object), None);
            self.use_no_claims(key, object);
        }
        let place = (res, owner_uid(object).to_owned());
        if let Some(owned) = self.owned.get_mut(&place) {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(&place);
            }
        }
    }

    /// The watch has delivered an object's deletion; returns its last known version.
    pub(crate) fn gone(&mut self, uid: &str) -> Option<Arc<Value>> {
        self.buried.remove(uid);
        self.before.remove(uid);
        let (res, key) = self.by_uid.get(uid).cloned()?;
        self.take(res, &key)
    }

    /// We have deleted an object, and it is gone; the watch will deliver the deletion, too.
    pub(crate) fn bury(&mut self, res: Res, key: &Key) {
        if let Some(object) = self.take(res, key) {
            self.before.remove(object.uid());
            self.buried.insert(object.uid().to_owned());
        }
    }

    fn take(&mut self, res: Res, key: &Key) -> Option<Arc<Value>> {
        let object = self.objects.get_mut(&res)?.remove(key)?;
        self.unlink(res, key, &object);
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    fn pod(name: &str, uid: &str, version: u32, owner: &str) -> Value {
        json!({"metadata": {
            "namespace": "d", "name": name, "uid": uid, "resourceVersion": version.to_string(),
            "ownerReferences": [{"uid": owner, "controller": true}],
        }})
    }

    #[test]
    fn what_is_newer_stays() {
        let mut cache = Cache::default();
        assert!(cache.put(Res::Pods, pod("a", "1", 5, "o")).is_some());
        assert!(cache.put(Res::Pods, pod("a", "1", 4, "x")).is_none());
        assert_eq!(cache.owned(Res::Pods, "o").len(), 1);
        assert!(cache.put(Res::Pods, pod("a", "1", 6, "x")).is_some());
        assert!(cache.owned(Res::Pods, "o").is_empty());
        assert_eq!(cache.owned(Res::Pods, "x").len(), 1);
    }

    #[test]
    fn those_without_a_controller() {
        let mut cache = Cache::default();
        let alone = |namespace: &str, name: &str, version: u32| {
            json!({"metadata": {
                "namespace": namespace, "name": name, "uid": name, "resourceVersion": version.to_string(),
            }})
        };
        let orphans = |cache: &Cache| -> Vec<String> {
            let pods = cache.orphans(Res::Pods, "d");
            pods.iter().map(|pod| pod.name().to_owned()).collect()
        };
        cache.put(Res::Pods, pod("a", "a", 1, "o"));
        cache.put(Res::Pods, alone("d", "b", 2));
        cache.put(Res::Pods, alone("c", "c", 3));
        cache.put(Res::Pods, alone("e", "e", 4));
        assert_eq!(orphans(&cache), ["b"]);
        cache.put(Res::Pods, pod("b", "b", 5, "o"));
        cache.put(Res::Pods, alone("d", "a", 6));
        assert_eq!(orphans(&cache), ["a"]);
        cache.gone("a");
        assert!(orphans(&cache).is_empty());
    }

    #[test]
    fn users_of_a_claim() {
        let mut cache = Cache::default();
        let using = |name: &str, version: u32, claim: Value, status: Value| {
            let mut pod = pod(name, name, version, "o");
            pod["spec"]["resourceClaims"] = json!([claim]);
            pod["status"]["resourceClaimStatuses"] = status;
            pod
        };
        let users = |cache: &Cache| -> Vec<String> {
            let claim = Key::new("d", "c");
            let users = cache.users(&claim);
            users.map(|key| key.name.to_string()).collect()
        };
        let (named, made) = (
            json!({"name": "x", "resourceClaimName": "c"}),
            json!({"name": "x", "resourceClaimTemplateName": "t"}),
        );
        cache.put(Res::Pods, using("a", 1, named.clone(), json!([])));
        cache.put(Res::Pods, using("b", 2, made.clone(), json!([])));
        cache.put(Res::Pods, pod("n", "n", 3, "o"));
        assert_eq!(users(&cache), ["a"]);
        let status = json!([{"name": "x", "resourceClaimName": "c"}]);
        cache.put(Res::Pods, using("b", 4, made, status));
        assert_eq!(users(&cache), ["a", "b"]);
        cache.put(
            Res::Pods,
            using(
                "a",
                5,
                json!({"name": "x", "resourceClaimName": "other"}),
                json!([]),
            ),
        );
        assert_eq!(users(&cache), ["b"]);
        cache.gone("b");
        assert!(users(&cache).is_empty());
        cache.put(Res::Pods, using("a", 6, named, json!([])));
        cache.bury(Res::Pods, &Key::new("d", "a"));
        assert!(users(&cache).is_empty());
    }

    #[test]
    fn what_we_wrote_is_a_change_to_others() {
        let mut cache = Cache::default();
        let of = |told: Option<(Arc<Value>, Option<Arc<Value>>)>| {
            told.map(|(_, old)| old.map(|old| old.resource_version().to_owned()))
        };
        assert_eq!(
            of(cache.told(Res::Pods, Arc::new(pod("a", "1", 5, "o")))),
            Some(None)
        );
        cache.keep(Res::Pods, pod("a", "1", 6, "o"));
        cache.keep(Res::Pods, pod("a", "1", 7, "o"));
        assert_eq!(of(cache.told(Res::Pods, Arc::new(pod("a", "1", 6, "o")))), None);
        assert_eq!(
            of(cache.told(Res::Pods, Arc::new(pod("a", "1", 7, "o")))),
            Some(Some("5".to_owned()))
        );
        assert_eq!(
            of(cache.told(Res::Pods, Arc::new(pod("a", "1", 8, "o")))),
            Some(Some("7".to_owned()))
        );
    }

    #[test]
    fn what_we_deleted_does_not_come_back() {
        let mut cache = Cache::default();
        cache.put(Res::Pods, pod("a", "1", 5, "o"));
        cache.bury(Res::Pods, &Key::new("d", "a"));
        assert!(cache.put(Res::Pods, pod("a", "1", 6, "o")).is_none());
        assert!(cache.gone("1").is_none());
        assert!(cache.put(Res::Pods, pod("a", "2", 7, "o")).is_some());
        assert_eq!(cache.in_namespace(Res::Pods, "d").count(), 1);
        assert_eq!(cache.in_namespace(Res::Pods, "e").count(), 0);
        assert!(cache.gone("2").is_some());
        assert_eq!(cache.all(Res::Pods).count(), 0);
    }
}
