//! The deeds of the user and the weather in a history.

use std::collections::BTreeSet;

use super::errand::Errand;

/// The time after an action of the user in which the controller may still act on its former view.
pub(super) const BEHIND_MS: i64 = 50;
/// For so long after a watch of the controller was broken off it may act on an old view: it waits 0.8 s before it asks again,
/// then twice as long.
const BLIND_MS: i64 = 4000;

/// The user's actions: their times, and the pods that they touched.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// When something was asked of the set.
    pub(super) at_ms: Vec<i64>,
    /// The uids of the pods that were deleted or made to fail by hand.
    pub(super) deleted: BTreeSet<String>,
    /// The pods that were chosen to go, and when.
    pub(super) named: Vec<(i64, String)>,
    /// The requests about other objects, and when.
    pub(super) errands: Vec<(i64, Errand)>,
    /// When the weather broke off a watch of the controller.
    pub(super) blinded_at_ms: Vec<i64>,
}

impl Deeds {
    /// Whether the controller need not know yet how things are.
    pub(super) fn outrun(&self, at_ms: i64) -> bool {
        let since = |moments: &[i64], ms| moments.iter().any(|at| (0..=ms).contains(&(at_ms - at)));
        since(&self.at_ms, BEHIND_MS) || since(&self.blinded_at_ms, BLIND_MS)
    }
}
