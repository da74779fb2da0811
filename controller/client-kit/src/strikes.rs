//! Rules that strike now and then: how often, from when on, and by which chance.
//!
//! Faults are such rules. Chance is drawn from a seed, so the same run is struck at the same places.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::Random;

/// Chances are counted in millionths, so that no floating point number is compared.
const PPM: u32 = 1_000_000;
/// So many strikes are remembered with their moments.
const MOMENTS_KEPT: usize = 1024;

/// How often a rule strikes among the cases that it concerns: always, unless something else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency {
    /// The first so many go well.
    pub skip: u32,
    /// It strikes no more often than this; without it, for ever.
    pub times: Option<u32>,
    /// The chance, in millionths.
    chance_ppm: u32,
}

impl Default for Frequency {
    fn default() -> Self {
        Self {
            skip: 0,
            times: None,
            chance_ppm: PPM,
        }
    }
}

impl Frequency {
    /// Sets the chance, from 0 to 1. It is rounded to a millionth, and a number beyond these is taken for the nearest of them.
    pub fn set_chance(&mut self, chance: f64) {
        // Between 0 and a million, so that nothing is cut off.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let ppm = (chance.clamp(0.0, 1.0) * f64::from(PPM)).round() as u32;
        self.chance_ppm = ppm;
    }

    /// The frequency that a file gives.
    ///
    /// # Errors
    /// For a chance that is not between 0 and 1.
    pub fn written(skip: u32, times: Option<u32>, chance: Option<f64>) -> Result<Self, String> {
        let chance = chance.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&chance) {
            return Err("chance: must be between 0 and 1".to_owned());
        }
        let mut frequency = Self {
            skip,
            times,
            ..Self::default()
        };
        frequency.set_chance(chance);
        Ok(frequency)
    }
}

/// A rule.
pub trait Strikes {
    /// How often it strikes.
    fn frequency(&self) -> Frequency;
}

/// Rules, in the order in which they were added. Clones are the same.
pub struct Rules<R>(Arc<Shared<R>>);

struct Shared<R> {
    /// Where there are none, as nearly always, a caller pays for nothing but a look at this.
    count: AtomicUsize,
    inner: Mutex<Inner<R>>,
}

struct Inner<R> {
    random: Random,
    next: u64,
    rules: BTreeMap<u64, Counted<R>>,
}

struct Counted<R> {
    rule: R,
    /// How often it was concerned.
    seen: u32,
    /// How often it has struck.
    struck: u32,
    /// When it struck, for the newest of them.
    moments: VecDeque<Instant>,
}

/// A rule that was added: says how often it has struck, and lifts it. Dropping the handle does not lift it.
pub struct RuleHandle<R> {
    rules: Rules<R>,
    number: u64,
}

impl<R> Clone for Rules<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Clone for RuleHandle<R> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            number: self.number,
        }
    }
}

impl<R: Strikes> Rules<R> {
    /// None yet.
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self(Arc::new(Shared {
            count: AtomicUsize::new(0),
            inner: Mutex::new(Inner {
                random,
                next: 0,
                rules: BTreeMap::new(),
            }),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule.
    pub fn add(&self, rule: R) -> RuleHandle<R> {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        let counted = Counted {
            rule,
            seen: 0,
            struck: 0,
            moments: VecDeque::new(),
        };
        inner.rules.insert(number, counted);
        self.0.count.store(inner.rules.len(), Ordering::Release);
        RuleHandle {
            rules: self.clone(),
            number,
        }
    }

    /// Lifts all of them.
    pub fn clear(&self) {
        self.lock().rules.clear();
        self.0.count.store(0, Ordering::Release);
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.count.load(Ordering::Acquire) == 0
    }

    /// Calls `act` with each rule that is concerned and strikes, in order, until it breaks.
    pub fn strike(&self, concerned: impl Fn(&R) -> bool, mut act: impl FnMut(&R) -> ControlFlow<()>) {
        if self.is_empty() {
            return;
        }
        let mut inner = self.lock();
        let Inner { random, rules, .. } = &mut *inner;
        for counted in rules.values_mut() {
            if concerned(&counted.rule) && counted.strikes(random) && act(&counted.rule).is_break() {
                return;
            }
        }
    }
}

impl<R: Strikes> Counted<R> {
    fn strikes(&mut self, random: &mut Random) -> bool {
        let Frequency {
            skip,
            times,
            chance_ppm,
        } = self.rule.frequency();
        if times.is_some_and(|times| self.struck >= times) {
            return false;
        }
        self.seen = self.seen.saturating_add(1);
        if self.seen <= skip {
            return false;
        }
        if chance_ppm < PPM && random.below(u64::from(PPM)) >= u64::from(chance_ppm) {
            return false;
        }
        self.struck = self.struck.saturating_add(1);
        if self.moments.len() == MOMENTS_KEPT {
            self.moments.pop_front();
        }
        self.moments.push_back(Instant::now());
        true
    }
}

impl<R: Strikes> RuleHandle<R> {
    /// How often it has struck; 0 once it is lifted.
    #[must_use]
    pub fn strikes(&self) -> u32 {
        let inner = self.rules.lock();
        inner.rules.get(&self.number).map_or(0, |counted| counted.struck)
    }

    /// When it struck, for the newest 1,024 strikes: in a simulation, moments of virtual time. Nothing once it is lifted.
    #[must_use]
    pub fn struck_at(&self) -> Vec<Instant> {
        let inner = self.rules.lock();
        let counted = inner.rules.get(&self.number);
        counted
            .map(|counted| counted.moments.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Lifts the rule.
    pub fn lift(&self) {
        let mut inner = self.rules.lock();
        inner.rules.remove(&self.number);
        self.rules.0.count.store(inner.rules.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::Seed;

    impl Strikes for Frequency {
        fn frequency(&self) -> Frequency {
            *self
        }
    }

    fn rule(skip: u32, times: Option<u32>, chance: f64) -> Frequency {
        let mut rule = Frequency {
            skip,
            times,
            ..Frequency::default()
        };
        rule.set_chance(chance);
        rule
    }

    #[rstest]
    #[case::always(rule(0, None, 1.0), "xxxxxx")]
    #[case::never(rule(0, None, 0.0), "......")]
    #[case::later(rule(2, None, 1.0), "..xxxx")]
    #[case::so_often(rule(1, Some(2), 1.0), ".xx...")]
    #[case::beyond_one(rule(0, None, 7.5), "xxxxxx")]
    fn a_rule_strikes(#[case] rule: Frequency, #[case] expected: &str) {
        let rules = Rules::new(Seed(1).random());
        assert!(rules.is_empty());
        let handle = rules.add(rule);
        let mut got = String::new();
        for _ in 0..6 {
            let mut struck = false;
            rules.strike(
                |_| true,
                |_| {
                    struck = true;
                    ControlFlow::Continue(())
                },
            );
            got.push(if struck { 'x' } else { '.' });
        }
        assert_eq!(got, expected);
        let strikes = expected.matches('x').count();
        assert_eq!(handle.strikes() as usize, strikes);
        assert_eq!(handle.struck_at().len(), strikes);
        handle.lift();
        assert!(rules.is_empty() && handle.strikes() == 0);
    }

    #[test]
    fn chance_is_that_of_the_seed() {
        let struck = |seed| {
            let rules = Rules::new(Seed(seed).random());
            let handle = rules.add(rule(0, None, 0.25));
            for _ in 0..1000 {
                rules.strike(|_| true, |_| ControlFlow::Continue(()));
            }
            handle.strikes()
        };
        assert_eq!(struck(1), struck(1));
        assert!((200..300).contains(&struck(1)), "{}", struck(1));
    }

    #[test]
    fn the_first_that_breaks_is_the_last() {
        let rules = Rules::new(Seed(1).random());
        let handles = [1, 2, 3].map(|skip| rules.add(rule(skip - 1, None, 1.0)));
        for _ in 0..3 {
            rules.strike(|_| true, |_| ControlFlow::Break(()));
        }
        // The second and third are never reached: the first strikes each time.
        assert_eq!(handles.map(|handle| handle.strikes()), [3, 0, 0]);
        rules.clear();
        assert!(rules.is_empty());
    }
}
