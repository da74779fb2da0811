//! A bounded map that forgets what was used least recently, as the caches behind client-go's correlator do.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// How many keys each cache of the correlator holds (client-go: 4096).
pub(crate) const CACHE_ENTRIES_MAX: usize = 4096;

/// What is kept of a text that is only ever compared: 128 bits, which tell any two apart.
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

/// A map of at most `capacity` entries, which are in a row by when they were used.
#[derive(Debug)]
pub(crate) struct LruCache<V> {
    capacity: usize,
    places: HashMap<Digest, u32, BuildHasherDefault<Spread>>,
    entries: Vec<Entry<V>>,
    /// The entries used last and first.
    newest: u32,
    oldest: u32,
}

#[derive(Debug)]
struct Entry<V> {
    key: Digest,
    newer: u32,
    older: u32,
    value: V,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// A digest is spread already.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(8) ^ word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

impl<V> LruCache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            places: HashMap::default(),
            entries: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// The value of `key`, made by `default` when there is none; it becomes the most recently used one.
    pub(crate) fn entry(&mut self, key: Digest, default: impl FnOnce() -> V) -> &mut V {
        let place = match self.places.get(&key) {
            Some(place) => {
                let place = *place;
                self.take_out(place);
                place
            }
            None => self.make(key, default()),
        };
        self.put_first(place);
        &mut self.entries[index(place)].value
    }

    /// A new entry, which is not in the row.
    fn make(&mut self, key: Digest, value: V) -> u32 {
        let entry = Entry {
            key,
            newer: NONE,
            older: NONE,
            value,
        };
        let place = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
        } else {
            let place = self.oldest;
            self.take_out(place);
            let before = std::mem::replace(&mut self.entries[index(place)], entry);
            self.places.remove(&before.key);
            place
        };
        self.places.insert(key, place);
        place
    }

    fn take_out(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[index(place)];
        match self.entries.get_mut(index(newer)) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(index(older)) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn put_first(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        match self.entries.get_mut(index(before)) {
            Some(entry) => entry.newer = place,
            None => self.oldest = place,
        }
        let entry = &mut self.entries[index(place)];
        (entry.newer, entry.older) = (NONE, before);
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
