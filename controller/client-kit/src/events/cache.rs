//! A bounded map that forgets what was used least recently, as the caches behind client-go's correlator do.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How many keys each cache of the correlator holds (client-go: 4096).
pub(crate) const CACHE_ENTRIES_MAX: usize = 4096;

/// A map of at most `capacity` entries.
#[derive(Debug)]
pub(crate) struct LruCache<V> {
    capacity: usize,
    tick: u64,
    entries: BTreeMap<Arc<str>, (u64, V)>,
    by_use: BTreeMap<u64, Arc<str>>,
}

impl<V> LruCache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            tick: 0,
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// The value of `key`, made by `default` when there is none; it becomes the most recently used one.
    pub(crate) fn entry(&mut self, key: &str, default: impl FnOnce() -> V) -> &mut V {
        self.tick += 1;
        let tick = self.tick;
        let known = self.entries.get_key_value(key).map(|(key, _)| Arc::clone(key));
        if known.is_none()
            && self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        let key = known.unwrap_or_else(|| Arc::from(key));
        let entry = self.entries.entry(Arc::clone(&key));
        let (used, value) = entry.or_insert_with(|| (tick, default()));
        self.by_use.remove(used);
        *used = tick;
        self.by_use.insert(tick, key);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_least_recently_used() {
        let mut cache = LruCache::new(2);
        *cache.entry("a", || 0) = 1;
        *cache.entry("b", || 0) = 2;
        assert_eq!(*cache.entry("a", || 0), 1);
        *cache.entry("c", || 0) = 3;
        assert_eq!(*cache.entry("a", || 0), 1, "used after b, so kept");
        assert_eq!(*cache.entry("b", || 0), 0, "forgotten");
    }
}
