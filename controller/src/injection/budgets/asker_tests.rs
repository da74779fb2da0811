//! Budgets under many requests at once: a budget is never overrun, and no request is refused while there is budget.

use std::sync::Arc;

use client_kit::{Seed, TokioClock};
use futures::future::join_all;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;

use super::asker::{Asker, Wish};
use super::desk::Desk;
use super::operation::Operation;
use crate::api::v1alpha1::{PodUnavailableBudget, PodUnavailableBudgetStatus};
use crate::kit::{Informer, ObjectKey};
use crate::metrics::Metrics;
use crate::pods::CachedPod;
use crate::pods::test_pods::TestPod;
use crate::test_server::OneObject;

/// How many pods are asked for.
const PODS: usize = 32;

/// A server with a budget that allows so much.
fn server(allowed: i32) -> OneObject {
    OneObject::new(json!({
        "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
        "metadata": { "name": "pub", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 1 },
        "spec": { "maxUnavailable": allowed },
        "status": { "unavailableAllowed": allowed, "desiredAvailable": 3, "currentAvailable": 3 + allowed,
            "totalReplicas": 3 + allowed, "observedGeneration": 1 },
    }))
}

fn status(server: &OneObject) -> PodUnavailableBudgetStatus {
    server.object::<PodUnavailableBudget>().status.unwrap()
}

/// The asker of a process: its cache of budgets stays as it was at first.
fn asker(server: &OneObject, desk: &Arc<Desk>, metrics: &Arc<Metrics>) -> Asker {
    let budgets = Informer::new();
    budgets.learn(&ObjectKey::new("default", "pub"), Some(server.object()));
    Asker {
        client: server.client(),
        budgets,
        pods: Informer::new(),
        clock: Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
        metrics: Arc::clone(metrics),
        desk: Arc::clone(desk),
        tells_resizes: false,
    }
}

fn pod(number: usize) -> CachedPod {
    let pod = TestPod::new(&format!("p{number}")).annotation("kruise.io/related-pub", "pub");
    CachedPod::from(pod.build())
}

async fn ask(asker: &Asker, number: usize) -> bool {
    let wish = Wish {
        operation: Operation::Delete,
        user: "u",
        dry_run: false,
        seed: Seed(0).fork(&number.to_string()),
    };
    asker.ask(&pod(number), wish).await.is_ok()
}

/// The number that is allowed, and the number of processes.
#[rstest]
#[case::one_process(5, 1)]
#[case::one_process_nothing_allowed(0, 1)]
#[case::one_process_enough_for_all(40, 1)]
#[case::two_processes(5, 2)]
#[case::a_process_for_each(5, PODS)]
#[tokio::test(start_paused = true)]
async fn a_budget_is_never_overrun(#[case] allowed: i32, #[case] processes: usize) {
    let server = server(allowed);
    let metrics = Arc::<Metrics>::default();
    let desks: Vec<Arc<Desk>> = (0..processes).map(|_| Arc::default()).collect();
    let askers: Vec<Asker> = desks.iter().map(|desk| asker(&server, desk, &metrics)).collect();
    let answers = join_all((0..PODS).map(|number| ask(&askers[number % processes], number))).await;
    let granted = answers.iter().filter(|granted| **granted).count();
    let status = status(&server);
    let budget = usize::try_from(allowed).unwrap();
    assert!(granted <= budget.min(PODS), "{granted} of {allowed} were granted");
    assert_eq!(status.disrupted_pods.len(), granted, "each grant is recorded");
    assert_eq!(
        status.unavailable_allowed,
        allowed - i32::try_from(granted).unwrap()
    );
    // In one process all take turns, so that nothing is refused but for want of budget.
    if processes == 1 {
        assert_eq!(granted, budget.min(PODS));
    }
    let refusals = format!(
        "pod_unavailable_budget{{kind_namespace_name=\"unknown_default_p{}\",username=\"u\"}} 1",
        answers.iter().position(|granted| !granted).unwrap_or(PODS)
    );
    let counted = metrics.text([&super::asker::REFUSALS]).contains(&refusals);
    assert_eq!(counted, granted < PODS);
}

/// Row 22: a pod that was granted leave has it until its record is gone.
#[tokio::test(start_paused = true)]
async fn a_recorded_pod_costs_nothing_more() {
    let server = server(1);
    let (desk, metrics) = (Arc::<Desk>::default(), Arc::default());
    assert!(ask(&asker(&server, &desk, &metrics), 1).await);
    assert!(!ask(&asker(&server, &desk, &metrics), 2).await);
    assert!(ask(&asker(&server, &desk, &metrics), 1).await);
    assert_eq!(status(&server).unavailable_allowed, 0);
}

/// Row 28.
#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_nothing() {
    let server = server(1);
    let asker = asker(&server, &Arc::default(), &Arc::default());
    let wish = Wish {
        operation: Operation::Delete,
        user: "u",
        dry_run: true,
        seed: Seed(0),
    };
    assert!(asker.ask(&pod(1), wish).await.is_ok());
    assert_eq!(status(&server).unavailable_allowed, 1);
}
