//! The jobs that are over and too many.

use std::collections::BTreeMap;

use crate::api::v1beta1::AdvancedCronJob;
use crate::workloads::advancedcronjob::jobs::{Child, State};

/// The oldest jobs beyond the limits of `cron`. Those that never began are the oldest. No limit keeps all.
pub(super) fn beyond<'c>(cron: &AdvancedCronJob, children: &'c [Child]) -> Vec<&'c Child> {
    let spec = &cron.spec;
    let limits = [
        (State::Failed, spec.failed_jobs_history_limit),
        (State::Successful, spec.successful_jobs_history_limit),
    ];
    let mut beyond = Vec::new();
    for (state, limit) in limits {
        let Some(limit) = limit else { continue };
        let over = children.iter().filter(|child| child.state == state);
        let by_age: BTreeMap<_, &Child> = over
            .map(|child| ((child.start, child.kind, &child.reference.name), child))
            .collect();
        let too_many = by_age.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        beyond.extend(by_age.into_values().take(too_many));
    }
    beyond
}
