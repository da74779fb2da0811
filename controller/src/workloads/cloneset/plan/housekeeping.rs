//! The repairs before anything is counted: pods that are no longer the set's, and claims that lost their pod.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::core::Selector;

use crate::api::labels;
use crate::kit::Owner;
use crate::pods::adoption;
use crate::pods::pod;
use crate::pods::{PodAction, PodRef};
use crate::workloads::cloneset::observe::Observed;

/// Releases pods that do not match the selector any more, and with `disablePVCReuse` gives claims of pods that are
/// going to these pods, and deletes those whose pod is gone.
pub(crate) fn plan(observed: &Observed) -> Vec<PodAction> {
    let mut actions = release(observed);
    let strategy = observed.set.spec.scale_strategy.as_ref();
    if strategy.is_some_and(|strategy| strategy.disable_pvc_reuse == Some(true)) {
        actions.extend(claims(observed));
    }
    actions
}

fn release(observed: &Observed) -> Vec<PodAction> {
    let Ok(selector) = Selector::try_from(observed.set.spec.selector.clone()) else {
        return Vec::new();
    };
    adoption::release(&Owner::of(observed.set.as_ref()), &selector, &observed.pods)
}

fn claims(observed: &Observed) -> Vec<PodAction> {
    let pods: BTreeMap<&str, _> = observed
        .pods
        .iter()
        .filter_map(|pod| Some((pod::label(pod, labels::INSTANCE_ID)?, pod)))
        .collect();
    let mut actions = Vec::new();
    for claim in &observed.claims {
        let name = claim.name_any();
        let Some(id) = claim.labels().get(labels::INSTANCE_ID) else {
            continue;
        };
        match pods.get(id.as_str()) {
            Some(pod) if pod::is_active(pod) => {}
            Some(pod) => actions.push(PodAction::GiveClaim {
                claim: name,
                pod: PodRef::of(pod),
            }),
            None => actions.push(PodAction::DeleteClaim { claim: name }),
        }
    }
    actions
}
