//! How many pods subsets get that have a minimum or a maximum.

use super::allocate::{Numbers, Place};
use crate::workloads::uniteddeployment::amounts::parse;

/// How many pods a subset gets at least and at most.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    min: i32,
    max: i32,
}

/// The bounds of the spec. An amount that is none counts as 0.
///
/// # Errors
/// That a minimum is above its maximum.
fn bounds(replicas: i32, places: &[Place<'_>]) -> Result<Vec<Bounds>, String> {
    let mut out = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        let amount = |value| parse(value, Some(replicas)).unwrap_or(0);
        let min = place.subset.min_replicas.as_ref().map_or(0, amount);
        let max = place.subset.max_replicas.as_ref().map_or(i32::MAX, amount);
        if min > max {
            return Err(format!(
                "subset[{at}].maxReplicas({max}) must be more than or equal to minReplicas({min})"
            ));
        }
        out.push(Bounds { min, max });
    }
    Ok(out)
}

/// Each subset gets its minimum, as far as there are replicas; then each is filled up to its maximum, both in the order of the spec.
fn fill(replicas: i32, places: &[Place<'_>], bounds: &[Bounds]) -> Numbers {
    let mut rest = replicas.max(0);
    let mut numbers = vec![0; places.len()];
    let mut give = |number: &mut i32, wanted: i32| {
        let given = wanted.clamp(0, rest);
        *number += given;
        rest -= given;
    };
    for (number, bounds) in numbers.iter_mut().zip(bounds) {
        give(number, bounds.min);
    }
    for (number, bounds) in numbers.iter_mut().zip(bounds) {
        give(number, bounds.max.saturating_sub(bounds.min));
    }
    named(places, numbers)
}

fn named(places: &[Place<'_>], numbers: Vec<i32>) -> Numbers {
    let names = places.iter().map(|place| place.subset.name.clone());
    names.zip(numbers).collect()
}

/// The numbers by the bounds of the spec alone.
pub(super) fn fixed(replicas: Option<i32>, places: &[Place<'_>]) -> Result<Numbers, String> {
    let replicas = replicas.unwrap_or(0);
    Ok(fill(replicas, places, &bounds(replicas, places)?))
}

/// The numbers where pods that get no node move on: a subset without room keeps its ready pods, one with room keeps those at least.
pub(super) fn adaptive(replicas: Option<i32>, places: &[Place<'_>]) -> Result<Numbers, String> {
    let replicas = replicas.unwrap_or(0);
    let mut bounds = bounds(replicas, places)?;
    for (bounds, place) in bounds.iter_mut().zip(places) {
        let Some(child) = place.child else { continue };
        if place.verdict.is_unschedulable {
            bounds.min = bounds.min.max(child.ready);
            bounds.max = bounds.max.min(child.ready);
        } else if child.ready > bounds.min {
            bounds.min = child.ready.min(bounds.max);
        }
    }
    Ok(fill(replicas, places, &bounds))
}

/// How many pods a subset has been given, and how many more of its pods can count.
struct Share {
    given: i32,
    /// None for any number.
    room: Option<i32>,
}

impl Share {
    fn of(place: &Place<'_>) -> Self {
        let verdict = place.verdict;
        let is_limited = verdict.is_unschedulable || verdict.was_unschedulable;
        let child = place.child.filter(|_| is_limited);
        Self {
            given: 0,
            room: child.map(|child| child.spec.replicas.saturating_sub(verdict.reserved)),
        }
    }

    /// Brings the subset to a number of pods, of `rest` at most. Gives how many of them count: reserved ones do not.
    fn bring(&mut self, to: i32, rest: i32) -> i32 {
        let more = to.saturating_sub(self.given).min(rest);
        self.given += more;
        let Some(room) = &mut self.room else { return more };
        *room = room.saturating_sub(more);
        match *room {
            room if room >= 0 => more,
            missing => more.saturating_add(missing).max(0),
        }
    }
}

/// The numbers where pods that get no node stay, and others stand in for them elsewhere.
pub(super) fn reserving(replicas: Option<i32>, places: &[Place<'_>]) -> Result<Numbers, String> {
    let mut rest = replicas.unwrap_or(0);
    let bounds = bounds(rest, places)?;
    let mut shares: Vec<Share> = places.iter().map(Share::of).collect();
    let most = |place: &Place<'_>, bounds: &Bounds| match place.child {
        Some(child) if place.verdict.is_unschedulable => child.spec.replicas,
        _ => bounds.max,
    };
    let minima: Vec<i32> = bounds.iter().map(|bounds| bounds.min).collect();
    let maxima = places
        .iter()
        .zip(&bounds)
        .map(|(place, bounds)| most(place, bounds));
    'rounds: for round in [minima, maxima.collect()] {
        for (share, to) in shares.iter_mut().zip(round) {
            rest -= share.bring(to, rest);
            if rest <= 0 {
                break 'rounds;
            }
        }
    }
    let given = shares.into_iter().map(|share| share.given.max(0)).collect();
    Ok(named(places, given))
}
