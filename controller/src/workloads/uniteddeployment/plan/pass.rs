//! One pass of the controller over a UnitedDeployment.

use std::collections::BTreeSet;
use std::time::Duration;

use super::allocate::{Numbers, Place, allocate};
use super::build::{Wanted, patch_text};
use super::conditions::{PROVISIONED, SUBSETS_UPDATED};
use super::reserve::{Labelled, Look};
use super::times::Requeue;
use super::view::View;
use super::{adaptive, conditions, revisions, status};
use crate::api::v1alpha1::UnitedDeploymentStatus;
use crate::pods::ordinals::ordinal_of;
use crate::pods::{PodRef, Revisions, pod};
use crate::workloads::uniteddeployment::children::{Child, revision_of};
use crate::workloads::uniteddeployment::kinds::ChildKind;
use crate::workloads::uniteddeployment::observe::Observed;
use crate::workloads::uniteddeployment::settings::{critical, is_adaptive, is_reserving, partition};

/// The work of a pass.
#[derive(Debug, Clone, Default)]
pub(in crate::workloads::uniteddeployment) struct Plan {
    /// Workloads of subsets that have another one.
    pub(in crate::workloads::uniteddeployment) duplicates: Vec<Child>,
    /// The pods whose label changes.
    pub(in crate::workloads::uniteddeployment) labelled: Vec<Labelled>,
    /// Why nothing else can be done, if that is so.
    pub(in crate::workloads::uniteddeployment) failure: Option<Failure>,
    /// Workloads to make, by subset.
    pub(in crate::workloads::uniteddeployment) create: Vec<Wanted>,
    /// Workloads of subsets that are gone, by subset.
    pub(in crate::workloads::uniteddeployment) delete: Vec<Child>,
    /// Workloads of the kinds that the template had before.
    pub(in crate::workloads::uniteddeployment) others: Vec<Child>,
    /// Workloads that change, by subset.
    pub(in crate::workloads::uniteddeployment) update: Vec<(Child, Wanted)>,
    /// Pods of StatefulSets that would keep their set from going on.
    pub(in crate::workloads::uniteddeployment) stuck: Vec<PodRef>,
    /// The status after that.
    pub(in crate::workloads::uniteddeployment) status: UnitedDeploymentStatus,
    /// The names of revisions to delete.
    pub(in crate::workloads::uniteddeployment) history: Vec<String>,
    /// When to look again at the latest.
    pub(in crate::workloads::uniteddeployment) requeue: Option<Duration>,
}

/// Why a pass goes no further, and the events that say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workloads::uniteddeployment) struct Failure {
    /// The reasons and messages of events.
    pub(in crate::workloads::uniteddeployment) events: Vec<(&'static str, String)>,
    /// The error.
    pub(in crate::workloads::uniteddeployment) error: String,
}

impl Failure {
    /// The workloads could not be assigned to subsets.
    fn of_subsets(observed: &Observed, why: String) -> Self {
        let metadata = &observed.set.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let error = format!(
            "fail to get all Subsets for UnitedDeployment {}/{}: {why}",
            text(&metadata.namespace),
            text(&metadata.name)
        );
        Self {
            events: vec![("FailedFindSubsets", why), ("Failed FindSubsets", error.clone())],
            error,
        }
    }

    /// The numbers do not fit together.
    fn of_numbers(error: String) -> Self {
        let message = format!("Specified subset replicas is ineffective: {error}");
        Self {
            events: vec![("Failed SpecifySubsetReplicas", message)],
            error,
        }
    }
}

/// Plans a pass.
pub(in crate::workloads::uniteddeployment) fn plan(observed: &Observed, revisions: &Revisions) -> Plan {
    let mut view = match View::new(observed) {
        Ok(view) => view,
        Err(why) => {
            return Plan {
                failure: Some(Failure::of_subsets(observed, why)),
                ..Plan::default()
            };
        }
    };
    let mut plan = Plan {
        duplicates: view.duplicates.drain(..).cloned().collect(),
        status: status::begin(observed, revisions),
        history: revisions::beyond_limit(observed, revisions),
        ..Plan::default()
    };
    let mut requeue = Requeue::default();
    look(observed, revisions, &mut view, &mut plan, &mut requeue);
    let replicas = match allocate(&observed.set, &places(observed, &view)) {
        Ok(replicas) => replicas,
        Err(error) => {
            plan.failure = Some(Failure::of_numbers(error));
            return plan;
        }
    };
    recover(observed, &view, &replicas, &mut plan.status);
    let partitions = partitions(observed, &replicas);
    provision(observed, revisions, &view, (&replicas, &partitions), &mut plan);
    let scaled_out = |(child, wanted): &(Child, Wanted)| wanted.replicas > child.spec.replicas;
    if is_adaptive(&observed.set) && (!plan.create.is_empty() || plan.update.iter().any(scaled_out)) {
        requeue.after(critical(&observed.set));
    }
    if !(plan.create.is_empty() && plan.delete.is_empty() && plan.others.is_empty()) {
        conditions::set(
            &mut plan.status,
            PROVISIONED,
            true,
            ("", String::new()),
            observed.now,
        );
    }
    conditions::set(
        &mut plan.status,
        SUBSETS_UPDATED,
        true,
        ("", String::new()),
        observed.now,
    );
    status::finish(
        &observed.set,
        &view,
        revisions,
        (&replicas, &partitions),
        &mut plan.status,
    );
    plan.requeue = requeue.0;
    plan
}

/// Looks at the pods of subsets, where they move when they get no nodes.
fn look(
    observed: &Observed,
    revisions: &Revisions,
    view: &mut View<'_>,
    plan: &mut Plan,
    requeue: &mut Requeue,
) {
    let (set, now) = (&observed.set, observed.now);
    if !is_adaptive(set) {
        return;
    }
    let whole = plan.status.clone();
    let reserving = is_reserving(set).then(|| Look::new(set, &whole, &revisions.update.name, now));
    for (subset, child) in &view.children {
        let Some(entry) = status::of_subset(&mut plan.status, subset) else {
            continue;
        };
        let verdict = match &reserving {
            None => adaptive::look(set, child, entry, now, requeue),
            Some(look) => {
                let kept = partition(set, subset);
                look.at(child, kept, entry, &mut plan.labelled, requeue)
            }
        };
        view.verdicts.insert(subset, verdict);
    }
}

fn places<'a>(observed: &'a Observed, view: &View<'a>) -> Vec<Place<'a>> {
    let subsets = observed.set.spec.topology.subsets.iter();
    subsets
        .map(|subset| Place {
            subset,
            child: view.children.get(subset.name.as_str()).copied(),
            verdict: view.verdict(&subset.name),
        })
        .collect()
}

/// A subset that has room again and gets more pods is out of room until those have proven themselves.
fn recover(observed: &Observed, view: &View<'_>, replicas: &Numbers, status: &mut UnitedDeploymentStatus) {
    if !is_reserving(&observed.set) {
        return;
    }
    for (subset, child) in &view.children {
        let verdict = view.verdict(subset);
        let next = replicas.get(*subset).copied().unwrap_or(0);
        let grows = verdict.was_unschedulable && !verdict.is_unschedulable && next > child.spec.replicas;
        if let Some(entry) = status::of_subset(status, subset).filter(|_| grows) {
            let message = "subset just recovered scaled up".to_owned();
            conditions::set_schedulable(entry, false, ("reschedule", message), observed.now);
        }
    }
}

/// How many pods of each subset keep the old revision: no more than it has.
fn partitions(observed: &Observed, replicas: &Numbers) -> Numbers {
    let of_subset = |(subset, replicas): (&String, &i32)| {
        let partition = partition(&observed.set, subset).min(*replicas);
        (subset.clone(), partition)
    };
    replicas.iter().map(of_subset).collect()
}

/// Plans which workloads are made, deleted and changed.
fn provision(
    observed: &Observed,
    revisions: &Revisions,
    view: &View<'_>,
    (replicas, partitions): (&Numbers, &Numbers),
    plan: &mut Plan,
) {
    let subsets = observed.set.spec.topology.subsets.iter();
    let subsets: BTreeSet<(&str, String)> = subsets
        .map(|subset| (subset.name.as_str(), patch_text(subset)))
        .collect();
    for (subset, patch) in &subsets {
        let verdict = view.verdict(subset);
        let number = |numbers: &Numbers| numbers.get(*subset).copied().unwrap_or(0);
        let mut wanted = Wanted {
            subset: (*subset).to_owned(),
            revision: revisions.update.name.clone(),
            replicas: number(replicas),
            partition: number(partitions),
            max_unavailable: None,
        };
        let Some(child) = view.children.get(subset) else {
            plan.create.push(wanted);
            continue;
        };
        plan.stuck.extend(stuck(child, &wanted));
        let is_as_wanted = child.revision() == wanted.revision
            && child.spec.replicas == wanted.replicas
            && child.partition() == wanted.partition
            && child.patch == *patch;
        if is_as_wanted || child.is_ending {
            continue;
        }
        if is_reserving(&observed.set) && verdict.is_unschedulable {
            let missing = child.spec.replicas.saturating_sub(child.ready);
            wanted.max_unavailable = Some(missing.saturating_add(verdict.late));
        }
        plan.update.push(((*child).clone(), wanted));
    }
    let is_gone = |child: &&&Child| !subsets.iter().any(|(known, _)| *known == child.subset());
    let gone = view.children.values().filter(is_gone).copied();
    let stays = |child: &&Child| !child.is_ending;
    plan.delete = gone.filter(stays).cloned().collect();
    plan.others = observed.others.iter().filter(stays).cloned().collect();
}

/// Pods that keep a StatefulSet from going on: it waits for each pod to be ready before it replaces it.
fn stuck(child: &Child, wanted: &Wanted) -> Vec<PodRef> {
    if child.kind != ChildKind::StatefulSet || child.spec.on_delete {
        return Vec::new();
    }
    let pods = child.pods.iter().filter(|pod| {
        let ordinal = ordinal_of(&child.name, pod::name(pod));
        ordinal.is_some_and(|ordinal| ordinal >= wanted.partition)
            && revision_of(pod) != wanted.revision
            && !pod::is_ready(pod)
            && pod.metadata.deletion_timestamp.is_none()
    });
    pods.map(|pod| PodRef::of(pod)).collect()
}

#[cfg(test)]
#[path = "pass_tests.rs"]
pub(super) mod tests;
