//! How the containers of a request stand.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::api::labels::REQUEST_STATUSES;
use crate::api::v1alpha1::{
    ContainerRecreateRequest, ContainerRecreateState, RecreateStrategy, RecreatedContainer, SyncedContainer,
};
use crate::daemon::runtime::RunningContainer;

/// The phases of a container.
pub(super) mod phase {
    /// It is still to be stopped.
    pub(crate) const PENDING: &str = "Pending";
    /// It was stopped, and does not run well again yet.
    pub(crate) const RECREATING: &str = "Recreating";
    /// It runs again.
    pub(crate) const SUCCEEDED: &str = "Succeeded";
    /// It could not be stopped.
    pub(crate) const FAILED: &str = "Failed";
}

/// The message of a container that the node does not have.
pub(super) const NOT_FOUND: &str = "not found container on Node";

/// The containers of a request, by those on the node and by the manager's annotation about them.
pub(super) fn states(
    request: &ContainerRecreateRequest,
    found: &[RunningContainer],
    now: Timestamp,
) -> Vec<ContainerRecreateState> {
    let text = request.annotations().get(REQUEST_STATUSES).map(String::as_str);
    let synced: Vec<SyncedContainer> = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let strategy = request.spec.strategy.clone().unwrap_or_default();
    let known = request
        .status
        .iter()
        .flat_map(|status| &status.container_recreate_states);
    let known: Vec<&ContainerRecreateState> = known.collect();
    let containers = request.spec.containers.iter();
    containers
        .map(|container| {
            let name = &container.name;
            let facts = Facts {
                before: known.iter().find(|state| state.name == *name).copied(),
                found: found.iter().find(|found| found.name == *name),
                synced: synced.iter().find(|synced| synced.name == *name),
                now,
            };
            state(container, &strategy, &facts)
        })
        .collect()
}

/// The facts about a container.
struct Facts<'a> {
    before: Option<&'a ContainerRecreateState>,
    found: Option<&'a RunningContainer>,
    synced: Option<&'a SyncedContainer>,
    now: Timestamp,
}

fn state(
    container: &RecreatedContainer,
    strategy: &RecreateStrategy,
    facts: &Facts<'_>,
) -> ContainerRecreateState {
    if let Some(before) = facts
        .before
        .filter(|before| [phase::SUCCEEDED, phase::FAILED].contains(&&*before.phase))
    {
        return before.clone();
    }
    let is_killed = facts.before.is_some_and(|before| before.is_killed);
    let state = |phase: &str| ContainerRecreateState {
        name: container.name.clone(),
        phase: phase.to_owned(),
        message: String::new(),
        is_killed,
    };
    let Some(found) = facts.found else {
        return ContainerRecreateState {
            message: NOT_FOUND.to_owned(),
            ..state(phase::PENDING)
        };
    };
    if !found.running {
        return state(phase::RECREATING);
    }
    let is_new = container.status_context.as_ref().is_some_and(|context| {
        context.container_id != found.id || found.restart_count > context.restart_count
    });
    if !is_new || strategy.force_recreate == Some(true) && !is_killed {
        return state(phase::PENDING);
    }
    let min_started = u64::try_from(strategy.min_started_seconds.unwrap_or_default()).unwrap_or_default();
    let runs_for = Duration::try_from(facts.now.duration_since(found.started_at)).unwrap_or_default();
    let is_ready = facts
        .synced
        .is_some_and(|synced| synced.container_id == found.id && synced.ready);
    match is_ready && runs_for >= Duration::from_secs(min_started) {
        true => state(phase::SUCCEEDED),
        false => state(phase::RECREATING),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The newest container: its id, restart count and whether it runs. It was started two seconds ago.
    type Newest = Option<(&'static str, i32, bool)>;

    const A: Newest = Some(("A", 0, true));
    const A_EXITED: Newest = Some(("A", 0, false));
    const B: Newest = Some(("B", 1, true));

    /// The container `main`, which was `A` without a restart. `synced` is the id in the annotation, with `!` if it is not ready;
    /// `before` the state before, with `*` if it was killed. The same form is expected.
    fn check(newest: Newest, synced: &str, before: &str, strategy: Value, expect: &str) {
        let id = |name: &str| format!("containerd://{name}");
        let annotation: Vec<Value> = [synced]
            .iter()
            .filter(|synced| !synced.is_empty())
            .map(|synced| {
                json!({ "name": "main", "ready": !synced.ends_with('!'), "restartCount": 1,
                "containerID": id(synced.trim_end_matches('!')) })
            })
            .collect();
        let states: Vec<Value> = [before].iter().filter(|before| !before.is_empty()).map(|before| {
            json!({ "name": "main", "phase": before.trim_end_matches('*'), "isKilled": before.ends_with('*') })
        }).collect();
        let request: ContainerRecreateRequest = serde_json::from_value(json!({
            "metadata": { "name": "r", "annotations": { REQUEST_STATUSES: Value::from(annotation).to_string() } },
            "spec": { "podName": "p", "strategy": strategy, "containers": [{ "name": "main",
                "statusContext": { "containerID": id("A"), "restartCount": 0 } }] },
            "status": { "phase": "Recreating", "containerRecreateStates": states },
        })).unwrap();
        let found = newest.map(|(name, restart_count, running)| RunningContainer {
            name: "main".to_owned(),
            id: id(name),
            restart_count,
            hash: 0,
            started_at: Timestamp::from_second(8).unwrap(),
            pre_stop: None,
            running,
        });
        let found: Vec<RunningContainer> = found.into_iter().collect();
        let got = super::states(&request, &found, Timestamp::from_second(10).unwrap()).remove(0);
        let killed = if got.is_killed { "*" } else { "" };
        assert_eq!(
            format!("{}{killed} {}", got.phase, got.message).trim_end(),
            expect
        );
    }

    #[rstest]
    #[case::to_be_killed(A, "", "", json!({}), "Pending")]
    #[case::still_to_be_killed(A, "", "Pending", json!({}), "Pending")]
    #[case::has_ended(A_EXITED, "", "Recreating*", json!({}), "Recreating*")]
    #[case::has_ended_by_itself(A_EXITED, "", "", json!({}), "Recreating")]
    #[case::has_ended_by_itself_forced(A_EXITED, "", "", json!({ "forceRecreate": true }), "Recreating")]
    #[case::runs_again(B, "", "Recreating*", json!({}), "Recreating*")]
    #[case::is_ready(B, "B", "Recreating*", json!({}), "Succeeded*")]
    #[case::is_not_ready(B, "B!", "Recreating*", json!({}), "Recreating*")]
    #[case::the_one_before_was_ready(B, "A", "Recreating*", json!({}), "Recreating*")]
    #[case::too_young(B, "B", "Recreating*", json!({ "minStartedSeconds": 3 }), "Recreating*")]
    #[case::old_enough(B, "B", "Recreating*", json!({ "minStartedSeconds": 2 }), "Succeeded*")]
    #[case::negative(B, "B", "Recreating*", json!({ "minStartedSeconds": -1 }), "Succeeded*")]
    #[case::restarted_by_itself(B, "B", "", json!({}), "Succeeded")]
    #[case::restarted_by_itself_forced(B, "B", "", json!({ "forceRecreate": true }), "Pending")]
    #[case::killed_forced(B, "B", "Recreating*", json!({ "forceRecreate": true }), "Succeeded*")]
    #[case::restarted_under_its_id(Some(("A", 1, true)), "A", "", json!({}), "Succeeded")]
    #[case::not_there(None, "B", "", json!({}), "Pending not found container on Node")]
    #[case::failed_stays(B, "B", "Failed", json!({}), "Failed")]
    #[case::succeeded_stays(A_EXITED, "", "Succeeded*", json!({}), "Succeeded*")]
    fn rows(
        #[case] newest: Newest,
        #[case] synced: &str,
        #[case] before: &str,
        #[case] strategy: Value,
        #[case] expect: &str,
    ) {
        check(newest, synced, before, strategy, expect);
    }
}
