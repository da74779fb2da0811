//! Brings pods to the update revision with a new one beside each old one.

use super::change::Change;
use super::view::{Pair, Place, View, is_preparing_delete, unless_held};

/// Plans as many new pods as there may be beside old ones: on nodes whose old pod does not serve in any case, and on as many
/// others as the surge allows. An old pod goes when the new one is available.
pub(super) fn plan<'v>(view: &View<'_>, listed: &[(&'v Place<'v>, Option<Pair<'v>>)]) -> Change<'v> {
    let mut surging = 0_usize;
    let (mut change, mut candidates) = (Change::default(), Vec::new());
    for (place, pair) in listed {
        let Some(pair) = pair else {
            surging += 1;
            continue;
        };
        let Some(old) = unless_held(pair.old) else {
            continue;
        };
        let node = place.node.name();
        match pair.new {
            None if view.is_available(old) => candidates.push(node),
            None => change.create.push(node),
            Some(new) if !view.is_available(new) || is_preparing_delete(new) => surging += 1,
            Some(_) => change.delete.push(old),
        }
    }
    let room = view.settings.max_surge.saturating_sub(surging);
    change.create.extend(candidates.into_iter().take(room));
    change
}
