//! A bounded map that forgets the least recently used entry, as the caches behind client-go's correlator do.

use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// How many keys each cache of the correlator holds (client-go: 4096).
pub(crate) const CACHE_ENTRIES_MAX: usize = 4096;

/// The digest of a text that is only ever compared: 128 bits, which tell any two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest(u64, u64);

impl Digest {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Words::default();
        words.add(text);
        words.digest()
    }
}

/// Texts, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Words(DefaultHasher, DefaultHasher);

impl Default for Words {
    fn default() -> Self {
        let mut other = DefaultHasher::new();
        other.write_u8(1);
        Self(DefaultHasher::new(), other)
    }
}

impl Words {
    pub(crate) fn add(&mut self, text: &str) {
        text.hash(&mut self.0);
        text.hash(&mut self.1);
    }

    /// The digest of those so far.
    pub(crate) fn digest(&self) -> Digest {
        Digest(self.0.finish(), self.1.finish())
    }
}

/// A map of at most `capacity` entries. It takes memory for those that there are.
#[derive(Debug)]
pub(crate) struct LruCache<V> {
    capacity: usize,
    entries: lru::LruCache<Digest, V, BuildHasherDefault<DefaultHasher>>,
}

impl<V> LruCache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            // One that is bounded would make room for all of them at once.
            entries: lru::LruCache::unbounded_with_hasher(BuildHasherDefault::default()),
        }
    }

    /// The value of `key`, made by `default` when there is none; it becomes the most recently used one.
    pub(crate) fn entry(&mut self, key: Digest, default: impl FnOnce() -> V) -> &mut V {
        if self.entries.len() >= self.capacity && !self.entries.contains(&key) {
            self.entries.pop_lru();
        }
        self.entries.get_or_insert_mut(key, default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_least_recently_used() {
        let mut cache = LruCache::new(2);
        *cache.entry(Digest::of("a"), || 0) = 1;
        *cache.entry(Digest::of("b"), || 0) = 2;
        assert_eq!(*cache.entry(Digest::of("a"), || 0), 1);
        *cache.entry(Digest::of("c"), || 0) = 3;
        assert_eq!(*cache.entry(Digest::of("a"), || 0), 1, "used after b, so kept");
        assert_eq!(*cache.entry(Digest::of("b"), || 0), 0, "forgotten");
    }

    /// Beside a plain list of keys in the order of their use.
    #[test]
    fn keeps_the_order_of_use() {
        let mut random = crate::Seed(1).random();
        let mut cache = LruCache::new(7);
        let mut used: Vec<u64> = Vec::new();
        for step in 0..2000 {
            let key = random.below(12);
            let known = used
                .iter()
                .position(|used| *used == key)
                .map(|at| used.remove(at));
            let mut made = false;
            let value = cache.entry(Digest::of(&key.to_string()), || {
                made = true;
                key
            });
            assert_eq!((*value, made), (key, known.is_none()), "step {step}");
            used.push(key);
            if used.len() > 7 {
                used.remove(0);
            }
        }
    }
}
