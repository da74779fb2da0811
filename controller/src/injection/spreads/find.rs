//! Finds the spread of a pod, and the number of pods that its workload is to have.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::sync::OnceCell;

use super::room;
use super::white_list::{KEY, WhiteList};
use crate::api::v1alpha1::{TargetReference, WorkloadSpread};
use crate::kit::admission::Surroundings;
use crate::kit::selector;
use crate::targets::{Lookup, Target, is_same};

/// How many owners stand above a pod at most.
const OWNERS_MAX: usize = 16;

/// The list of the process, which is read once.
pub(super) async fn white_list(surroundings: &Surroundings) -> WhiteList {
    let cell = surroundings.shared.of::<OnceCell<WhiteList>>();
    let read = || async {
        let list = surroundings.setting(KEY).await?;
        Ok::<_, String>(WhiteList::of(list.as_deref()))
    };
    cell.get_or_try_init(read).await.cloned().unwrap_or_default()
}

/// The owners above a pod, looked up as far as they are asked for.
struct Owners<'a> {
    lookup: Option<&'a Lookup>,
    namespace: &'a str,
    list: &'a WhiteList,
    known: Vec<OwnerReference>,
    is_complete: bool,
}

/// Why an owner could not be looked at.
enum Failure {
    /// It is not there.
    Missing(String),
    /// The request failed.
    Failed,
}

impl Owners<'_> {
    /// The owner at this height, if there is one.
    async fn at(&mut self, height: usize) -> Result<Option<TargetReference>, Failure> {
        while self.known.len() <= height && !self.is_complete && self.known.len() < OWNERS_MAX {
            self.climb().await?;
        }
        Ok(self.known.get(height).map(TargetReference::from))
    }

    /// Looks up the controller of the highest owner.
    async fn climb(&mut self) -> Result<(), Failure> {
        let highest = self
            .known
            .last()
            .filter(|owner| self.list.knows(&owner.api_version, &owner.kind));
        let (Some(highest), Some(lookup)) = (highest, self.lookup) else {
            self.is_complete = true;
            return Ok(());
        };
        let found = lookup
            .get(self.namespace, &highest.into())
            .await
            .map_err(|_| Failure::Failed)?;
        let Some(found) = found else {
            return Err(Failure::Missing(format!(
                "{} {:?} not found",
                highest.kind, highest.name
            )));
        };
        match found.controller() {
            Some(above) => self.known.push(above.clone()),
            None => self.is_complete = true,
        }
        Ok(())
    }

    /// Whether the pod is one of a workload.
    async fn has(&mut self, target: &TargetReference) -> Result<bool, Failure> {
        let mut height = 0;
        while let Some(owner) = self.at(height).await? {
            if is_same(&owner, target) {
                return Ok(true);
            }
            height += 1;
        }
        Ok(false)
    }
}

/// The first spread of a pod with this controller and these labels.
///
/// # Errors
/// That one of the owners is not there.
pub(super) async fn spread<'a>(
    spreads: &'a [Arc<WorkloadSpread>],
    (owner, labels): (&OwnerReference, &std::collections::BTreeMap<String, String>),
    (namespace, list, lookup): (&str, &WhiteList, Option<&Lookup>),
) -> Result<Option<&'a WorkloadSpread>, String> {
    let mut owners = Owners {
        lookup,
        namespace,
        list,
        known: vec![owner.clone()],
        is_complete: false,
    };
    for spread in spreads
        .iter()
        .filter(|spread| spread.metadata.deletion_timestamp.is_none())
    {
        let Some(target) = &spread.spec.target_ref else {
            continue;
        };
        match owners.has(target).await {
            Ok(true) => {}
            Err(Failure::Missing(message)) => return Err(message),
            Ok(false) | Err(Failure::Failed) => continue,
        }
        let filter = spread.spec.target_filter.as_ref();
        let counts = filter.is_none_or(|filter| {
            let selector = filter.selector.as_ref();
            selector.is_some_and(|selector| selector::selects(selector, labels) == Ok(true))
        });
        if counts {
            return Ok(Some(spread));
        }
    }
    Ok(None)
}

/// How many pods the workload of a spread is to have. One that is not there is to have none.
///
/// # Errors
/// Those of the requests, and of a path that leads to no number.
pub(super) async fn replicas(
    spread: &WorkloadSpread,
    (namespace, list, lookup): (&str, &WhiteList, Option<&Lookup>),
) -> Result<i32, String> {
    let (Some(reference), Some(lookup)) = (&spread.spec.target_ref, lookup) else {
        return Ok(0);
    };
    let found = lookup
        .get(namespace, reference)
        .await
        .map_err(|error| error.message)?;
    let Some(target) = found else { return Ok(0) };
    if let Some(replicas) = given(spread, list, &target)? {
        return Ok(replicas);
    }
    let number = target
        .at("/spec/replicas")
        .or_else(|| target.at("/spec/parallelism"));
    let number = number.and_then(serde_json::Value::as_i64).unwrap_or(1);
    Ok(i32::try_from(number).unwrap_or(i32::MAX))
}

/// The number at the paths that the spread, or the white list, names.
///
/// # Errors
/// That of a path that leads to no number.
fn given(spread: &WorkloadSpread, list: &WhiteList, target: &Target) -> Result<Option<i32>, String> {
    let at = |pointer: &str| target.at(pointer).cloned();
    let paths = spread
        .spec
        .target_filter
        .as_ref()
        .and_then(|filter| filter.replicas_path_list.as_ref());
    if let Some(paths) = paths.filter(|paths| !paths.is_empty()) {
        return room::sum(at, paths.iter().map(String::as_str)).map(Some);
    }
    let path = spread
        .spec
        .target_ref
        .as_ref()
        .and_then(|reference| list.replicas_path(reference));
    path.map(|path| room::sum(at, std::iter::once(path))).transpose()
}
