//! How many pods each subset is to have.

use std::collections::BTreeMap;

use super::elastic;
use super::verdict::Verdict;
use crate::api::v1alpha1::{Subset, UnitedDeployment};
use crate::workloads::uniteddeployment::amounts::parse;
use crate::workloads::uniteddeployment::children::Child;
use crate::workloads::uniteddeployment::settings::{is_adaptive, is_reserving};

/// Numbers by subset.
pub(super) type Numbers = BTreeMap<String, i32>;

/// A subset with its workload, if there is one, and how that stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The subset.
    pub(super) subset: &'a Subset,
    /// Its workload.
    pub(super) child: Option<&'a Child>,
    /// How it stands.
    pub(super) verdict: Verdict,
}

/// How many pods each subset is to have. The places are in the order of the spec.
///
/// # Errors
/// Why the numbers of the spec do not fit together.
pub(super) fn allocate(set: &UnitedDeployment, places: &[Place<'_>]) -> Result<Numbers, String> {
    let replicas = set.spec.replicas;
    let is_elastic = |place: &Place<'_>| {
        let subset = place.subset;
        subset.min_replicas.is_some() || subset.max_replicas.is_some()
    };
    if is_reserving(set) {
        elastic::reserving(replicas, places)
    } else if is_adaptive(set) {
        elastic::adaptive(replicas, places)
    } else if places.iter().any(is_elastic) {
        elastic::fixed(replicas, places)
    } else {
        specific(replicas, places)
    }
}

/// Numbers that the subsets say themselves. The others share the rest; of the remainder the subsets with most pods get one each,
/// of equal ones the last by name.
fn specific(replicas: Option<i32>, places: &[Place<'_>]) -> Result<Numbers, String> {
    let said = |place: &Place<'_>| {
        let value = place.subset.replicas.as_ref()?;
        parse(value, replicas).ok()
    };
    let mut numbers = Numbers::new();
    let mut rest: Vec<(i32, &str)> = Vec::new();
    for place in places {
        let name = place.subset.name.as_str();
        match said(place) {
            Some(number) => drop(numbers.insert(name.to_owned(), number)),
            None => rest.push((place.child.map_or(0, |child| child.spec.replicas), name)),
        }
    }
    let sum: i64 = numbers.values().copied().map(i64::from).sum();
    let Some(replicas) = replicas else {
        return match rest.is_empty() {
            true => Ok(numbers),
            false => {
                Err("all subsets must be specified when UnitedDeployment replica is unspecified".to_owned())
            }
        };
    };
    let replicas = i64::from(replicas);
    let differs = |how: &str| {
        Err(format!(
            "specified subsets' replica ({sum}) is {how} than UnitedDeployment replica ({replicas})"
        ))
    };
    if sum > replicas {
        return differs("greater");
    }
    if sum < replicas && rest.is_empty() {
        return differs("less");
    }
    rest.sort_unstable();
    let count = i64::try_from(rest.len()).unwrap_or(i64::MAX).max(1);
    let (each, mut more) = ((replicas - sum) / count, (replicas - sum) % count);
    for (_, name) in rest.into_iter().rev() {
        let own = each + i64::from(more > 0);
        more -= 1;
        numbers.insert(name.to_owned(), i32::try_from(own).unwrap_or(i32::MAX));
    }
    Ok(numbers)
}

#[cfg(test)]
#[path = "allocate_tests.rs"]
mod tests;
