//! A broken controller fails a scenario, with a diff that shows the error.

use std::sync::Arc;

use conformance::backend::ManagerTweak;
use controller::cloneset::{
    Action, CloneSetPlanner, Observed, Plan, Planner, PodAction, PodRef, Revisions, Update,
};
use rstest::rstest;

use crate::support::{run, scenarios};

/// The real planner, with a change of its input and output.
struct Broken {
    real: CloneSetPlanner,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    DeletesTheNewest,
    IgnoresPartition,
    ForgetsScaleUpLimited,
}

impl Planner for Broken {
    fn plan(&self, observed: &Observed, revisions: &Revisions) -> Plan {
        let mut observed = observed.clone();
        if self.how == How::IgnoresPartition {
            let set = Arc::make_mut(&mut observed.set);
            if let Some(strategy) = &mut set.spec.update_strategy {
                strategy.partition = None;
            }
        }
        let mut plan = self.real.plan(&observed, revisions);
        match self.how {
            How::DeletesTheNewest => {
                let newest = observed
                    .pods
                    .iter()
                    .max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()));
                for action in &mut plan.sync {
                    if let (Action::Pod(PodAction::DeletePod { pod, .. }), Some(newest)) = (action, newest) {
                        *pod = PodRef::of(newest);
                    }
                }
            }
            How::ForgetsScaleUpLimited => {
                plan.sync.retain(|action| {
                    !matches!(
                        action,
                        Action::Pod(PodAction::Event {
                            reason: "ScaleUpLimited",
                            ..
                        })
                    )
                });
            }
            How::IgnoresPartition => {}
        }
        plan
    }

    fn plan_unscaled(&self, observed: &Observed, revisions: &Revisions) -> Update {
        self.real.plan_unscaled(observed, revisions)
    }
}

#[rstest]
#[case::newest(How::DeletesTheNewest, "-pods deleted: cs-demo-4wz2z")]
#[case::partition(
    How::IgnoresPartition,
    "-cs-demo   4         2         2               4       4"
)]
#[case::limit(How::ForgetsScaleUpLimited, "-  Warning ScaleUpLimited")]
fn is_caught(#[case] how: How, #[case] line: &str) {
    let tweak: ManagerTweak = Arc::new(move |mut options| {
        options.planner = Some(Arc::new(Broken {
            real: CloneSetPlanner::default(),
            how,
        }));
        options
    });
    let mut options = scenarios("tutorial");
    options.tweak = Some(tweak);
    let (totals, text) = run(&options);
    assert_eq!(totals.expect("a run").failed, 1, "{how:?} is not noticed");
    assert!(text.contains(line), "the diff does not show `{line}`:\n{text}");
    if std::env::var_os("SEATRIAL_SHOW").is_some() {
        println!("##### {how:?}\n{text}");
    }
}
