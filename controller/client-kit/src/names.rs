//! Random parts of names.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::seed::{Random, Seed};

/// The characters of Kubernetes' random names: no vowels and nothing that looks like one, so that no words come out.
pub const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Maps each byte of a decimal number into [`NAME_ALPHABET`], as `rand.SafeEncodeString` of apimachinery does.
///
/// ```
/// assert_eq!(client_kit::safe_encode("3063463911").len(), 10);
/// ```
#[must_use]
pub fn safe_encode(text: &str) -> String {
    text.bytes()
        .map(|b| char::from(NAME_ALPHABET[usize::from(b) % NAME_ALPHABET.len()]))
        .collect()
}

/// A source of the random suffixes of names (`4wz2z` in `cs-demo-4wz2z`).
pub trait Names: Send + Sync + 'static {
    /// The next suffix, five characters of [`NAME_ALPHABET`], for a name that begins with `prefix` (such as `cs-demo-`).
    fn suffix(&self, prefix: &str) -> String;
}

/// A source of names that many owners share.
pub type SharedNames = Arc<dyn Names>;

/// Suffixes from a seeded generator.
#[derive(Debug)]
pub struct SeededNames(Mutex<Random>);

impl SeededNames {
    /// The names of `seed`.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self(Mutex::new(seed.random()))
    }
}

impl Names for SeededNames {
    fn suffix(&self, _prefix: &str) -> String {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..5)
            .map(|_| char::from(NAME_ALPHABET[random.below(27) as usize]))
            .collect()
    }
}

/// Hands out chosen suffixes first, per prefix and in order; then those of another source.
pub struct AliasNames {
    chosen: Mutex<BTreeMap<String, VecDeque<String>>>,
    rest: SharedNames,
}

impl AliasNames {
    /// `chosen` maps a prefix (`cs-demo-`) to the suffixes it gets first.
    #[must_use]
    pub fn new(chosen: BTreeMap<String, VecDeque<String>>, rest: SharedNames) -> Self {
        Self {
            chosen: Mutex::new(chosen),
            rest,
        }
    }

    /// Adds suffixes at the end of the queue of `prefix`.
    pub fn push(&self, prefix: &str, suffixes: impl IntoIterator<Item = String>) {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        chosen.entry(prefix.to_owned()).or_default().extend(suffixes);
    }
}

impl Names for AliasNames {
    fn suffix(&self, prefix: &str) -> String {
        let next = {
            let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
            chosen.get_mut(prefix).and_then(VecDeque::pop_front)
        };
        next.unwrap_or_else(|| self.rest.suffix(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_names_come_first() {
        let rest = Arc::new(SeededNames::new(Seed(1)));
        let names = AliasNames::new(BTreeMap::new(), rest);
        names.push("cs-demo-", ["4wz2z".to_owned()]);
        assert_eq!(names.suffix("cs-demo-"), "4wz2z");
        let next = names.suffix("cs-demo-");
        assert_eq!(next.len(), 5);
        assert!(next.bytes().all(|b| NAME_ALPHABET.contains(&b)));
    }
}
