//! Caches of earlier results.
//!
//! Sets of owned fields are shared, so the result for two sets is the result for the same two sets of the next write.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::field_set::FieldSet;
use super::path::mix;

/// So many results are remembered anew before those are forgotten that have not been met since.
const KNOWN_MAX: usize = 512;
/// For so many keys it is remembered that they were met once.
const DOORS: usize = 1024;

/// Entries of two spans of time: an entry that is met again moves into the present span, and the former span is dropped when the
/// present one is full.
pub(super) struct Spans<K, V> {
    now: Option<Table<K, V>>,
    before: Option<Table<K, V>>,
    /// Numbers of keys that were met and have nothing yet.
    doors: Vec<u64>,
    most: usize,
}

type Table<K, V> = HashMap<K, V, BuildHasherDefault<Words>>;

impl<K: Hash + Eq + Copy, V> Spans<K, V> {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            now: None,
            before: None,
            doors: Vec::new(),
            most,
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        let now = self.now.get_or_insert_default();
        if !now.contains_key(key) {
            let (key, value) = self.before.as_mut()?.remove_entry(key)?;
            self.put(key, value);
        }
        self.now.as_ref()?.get(key)
    }

    /// Whether a key was met before. A key that is met only once need not be cached.
    pub(super) fn is_met_again(&mut self, key: &K) -> bool {
        let mut number = Words::default();
        key.hash(&mut number);
        let number = number.finish() | 1;
        self.doors.resize(DOORS, 0);
        let place = usize::try_from(number >> 1).unwrap_or_default() % DOORS;
        let last = self.doors.get_mut(place);
        last.is_some_and(|last| std::mem::replace(last, number) == number)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        let now = self.now.get_or_insert_default();
        if now.len() >= self.most {
            self.before = Some(std::mem::take(now));
        }
        now.insert(key, value);
    }
}

/// A number for words.
#[derive(Default)]
pub(super) struct Words(u64);

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(u64::try_from(word).unwrap_or_default());
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

pub(super) fn number_of(words: &[u64]) -> u64 {
    words.iter().fold(0, |number, word| mix(number, *word))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Union,
    Difference,
    RecursiveDifference,
}

/// Two sets and the result for them. While the entry is cached, the sets keep their addresses.
struct Done {
    _of: (FieldSet, FieldSet),
    result: FieldSet,
}

thread_local! {
    static KNOWN: RefCell<Spans<(u8, usize, usize), Done>> = const { RefCell::new(Spans::new(KNOWN_MAX)) };
}

fn remember(what: What, one: FieldSet, other: &FieldSet) -> FieldSet {
    let (Some(here), Some(there)) = (one.address(), other.address()) else {
        return work_out(what, one, other);
    };
    let key = (what as u8, here, there);
    let known = KNOWN.with_borrow_mut(|known| known.get(&key).map(|done| done.result.clone()));
    known.unwrap_or_else(|| {
        if !KNOWN.with_borrow_mut(|known| known.is_met_again(&key)) {
            return work_out(what, one, other);
        }
        let result = work_out(what, one.clone(), other);
        let done = Done {
            _of: (one, other.clone()),
            result: result.clone(),
        };
        KNOWN.with_borrow_mut(|known| known.put(key, done));
        result
    })
}

fn work_out(what: What, one: FieldSet, other: &FieldSet) -> FieldSet {
    match what {
        What::Union => one.union(other.clone()),
        What::Difference => one.difference(other),
        What::RecursiveDifference => one.recursive_difference(other),
    }
}

/// [`FieldSet::union`].
pub(super) fn union(one: FieldSet, other: &FieldSet) -> FieldSet {
    remember(What::Union, one, other)
}

/// [`FieldSet::difference`].
pub(super) fn difference(one: FieldSet, other: &FieldSet) -> FieldSet {
    remember(What::Difference, one, other)
}

/// [`FieldSet::recursive_difference`].
pub(super) fn recursive_difference(one: FieldSet, other: &FieldSet) -> FieldSet {
    remember(What::RecursiveDifference, one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_again_stays_and_the_rest_is_forgotten() {
        let mut spans = Spans::new(2);
        for number in 0..4 {
            spans.put(number, number);
            assert_eq!(spans.get(&0), Some(&0), "{number}");
        }
        assert_eq!(spans.get(&3), Some(&3));
        assert_eq!(spans.get(&1), None);
        assert!(!spans.is_met_again(&7));
        assert!(spans.is_met_again(&7));
    }

    #[test]
    fn sets_are_the_same_memory_when_they_are_made_again() {
        let set = |fields: &[&[&str]]| FieldSet::of(fields);
        let (one, other) = (set(&[&["a", "b"], &["c"]]), set(&[&["a"]]));
        for (done, result) in [
            (
                union as fn(FieldSet, &FieldSet) -> FieldSet,
                set(&[&["a"], &["a", "b"], &["c"]]),
            ),
            (difference, one.clone()),
            (recursive_difference, set(&[&["c"]])),
        ] {
            assert_eq!(done(one.clone(), &other), result);
            let second = done(one.clone(), &other);
            assert_eq!(second, result);
            assert_eq!(done(one.clone(), &other).address(), second.address());
        }
        assert_eq!(union(FieldSet::default(), &other), other);
        assert_eq!(difference(one.clone(), &FieldSet::default()), one);
    }
}
