//! A bounded map that forgets what was used least recently, as the caches behind client-go's correlator do.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many keys each cache of the correlator holds (client-go: 4096).
pub(crate) const CACHE_ENTRIES_MAX: usize = 4096;

/// What is kept of a text that is only ever compared: 128 bits, which tell any two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest(u64, u64);

impl Digest {
    pub(crate) fn of(text: &str) -> Self {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, text).hash(&mut hasher);
            hasher.finish()
        };
        Self(half(0), half(1))
    }
}

/// A map of at most `capacity` entries.
#[derive(Debug)]
pub(crate) struct LruCache<V> {
    capacity: usize,
    tick: u64,
    entries: BTreeMap<Digest, (u64, V)>,
    by_use: BTreeMap<u64, Digest>,
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
        let key = Digest::of(key);
        if !self.entries.contains_key(&key)
            && self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        let entry = self.entries.entry(key);
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
