//! Changes as watches of everything send them, one after the other: made once for all watches that are at the same place.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use machinery::keys::Revision;

use super::event::{Event, write_frame};
use super::scope::Scope;

/// About how many bytes are in a batch, if there are as many.
pub const BATCH_BYTES: usize = 128 << 10;
/// How many batches are kept, of all tables together, and how many bytes of them at most.
const KEPT_MAX: usize = 32;
const KEPT_BYTES_MAX: usize = 8 * BATCH_BYTES;

/// Changes that follow each other within a scope.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    scope: Scope,
    /// The revision of the first change, which says of which table it is.
    first: Revision,
    pub(super) last: Revision,
    pub(super) text: Bytes,
}

impl Batch {
    /// The text of the first of these changes: of as many as a batch has, and none from `end` on. `None` if there are none.
    pub(super) fn of(scope: &Scope, events: &[Arc<Event>], end: Option<Revision>) -> Option<Self> {
        let first = events.first()?.revision;
        let mut last = first;
        let mut text = Vec::with_capacity(BATCH_BYTES);
        for event in events {
            if text.len() >= BATCH_BYTES || end.is_some_and(|end| event.revision >= end) {
                break;
            }
            write_frame(&mut text, event.kind.as_str(), &event.object.bytes());
            last = event.revision;
        }
        Some(Self {
            scope: scope.clone(),
            first,
            last,
            // What is kept is as large as the text.
            text: text.into_boxed_slice().into(),
        })
    }
}

/// The batches that were made last.
#[derive(Debug, Default)]
pub(super) struct Batches(VecDeque<Batch>);

impl Batches {
    /// The one that begins with the change at a revision.
    pub(super) fn at(&self, scope: &Scope, first: Revision) -> Option<&Batch> {
        self.0
            .iter()
            .find(|batch| batch.first == first && batch.scope == *scope)
    }

    /// Where the next one of those changes begins: one that ends there brings its watch to where others are.
    pub(super) fn next(&self, scope: &Scope, events: &[Arc<Event>]) -> Option<Revision> {
        let (first, last) = (events.first()?.revision, events.last()?.revision);
        self.0
            .iter()
            .filter(|batch| batch.first > first && batch.first <= last && batch.scope == *scope)
            .map(|batch| batch.first)
            .min()
    }

    pub(super) fn keep(&mut self, batch: Batch) {
        let mut bytes = batch.text.len();
        let fits = |batch: &&Batch| {
            bytes += batch.text.len();
            bytes <= KEPT_BYTES_MAX
        };
        let fitting = self.0.iter().take(KEPT_MAX - 1).take_while(fits).count();
        self.0.truncate(fitting);
        self.0.push_front(batch);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// How many of as many batches, of so many bytes each, are kept.
    #[rstest]
    #[case::small_ones(100, 10, KEPT_MAX)]
    #[case::fewer_than_that(3, 10, 3)]
    #[case::full_ones(100, BATCH_BYTES, 8)]
    #[case::a_little_more(100, BATCH_BYTES + 1, 7)]
    #[case::one_that_is_larger_than_all(5, KEPT_BYTES_MAX + 1, 1)]
    fn the_newest_are_kept(#[case] made: u64, #[case] bytes: usize, #[case] expected: usize) {
        let mut batches = Batches::default();
        for number in 1..=made {
            batches.keep(Batch {
                scope: Scope::All,
                first: Revision(number),
                last: Revision(number),
                text: vec![0; bytes].into(),
            });
        }
        let kept: Vec<u64> = batches.0.iter().map(|batch| batch.first.0).collect();
        let newest: Vec<u64> = (1..=made).rev().take(expected).collect();
        assert_eq!(kept, newest);
    }
}
