//! Rows: the revision of the template, and the revisions that go.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use rstest::rstest;

use super::super::test_world::set;
use super::*;
use crate::pods::revision_plan::RevisionAction;
use crate::workloads::uniteddeployment::kinds::ChildKind;

fn observed(revisions: Vec<ControllerRevision>, limit: Option<i32>, status: Value) -> Observed {
    let mut set = set("");
    set.spec.revision_history_limit = limit;
    set.metadata.annotations = Some([("n".to_owned(), "1".to_owned())].into());
    set.status = serde_json::from_value(status).unwrap();
    Observed {
        set: Arc::new(set),
        kind: ChildKind::CloneSet,
        children: Vec::new(),
        others: Vec::new(),
        revisions: revisions.into_iter().map(Arc::new).collect(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn old(number: i64) -> ControllerRevision {
    let object = json!({ "metadata": { "name": format!("u-{number}"), "namespace": "default" }, "revision": number,
        "data": { "spec": { "template": number } } });
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_new_revision_has_the_labels_of_the_template() {
    let plan = plan(
        &observed(
            vec![old(3)],
            None,
            json!({ "currentRevision": "u-3", "replicas": 0, "updatedReplicas": 0 }),
        ),
        0,
    );
    let plan = plan.unwrap();
    let Some(RevisionAction::Create(new)) = plan.action else {
        panic!("{:?}", plan.action);
    };
    assert_eq!(new.revision, 4);
    assert_eq!(new.labels()["app"], "x");
    assert_eq!(new.labels().len(), 2);
    assert_eq!(new.annotations()["n"], "1");
    let data = data_of(&new).unwrap();
    assert_eq!(data["spec"]["template"]["$patch"], "replace");
    assert!(data["spec"]["template"]["cloneSetTemplate"]["spec"]["scaleStrategy"].is_object());
    assert_eq!(
        (plan.revisions.current.name.as_str(), &plan.revisions.update.name),
        ("u-3", &new.name_any())
    );
}

/// The limit, the current and the update revision by the status, and the revisions that go. There are four old ones.
#[rstest]
#[case(None, "u-4", "u-4", "")]
#[case(Some(3), "u-4", "u-4", "u-1 u-2")]
#[case::those_in_use_count_but_stay(Some(2), "u-1", "u-3", "u-2")]
#[case::all(Some(0), "u-4", "u-4", "u-1 u-2 u-3")]
#[case::negative_is_none(Some(-1), "u-4", "u-4", "u-1 u-2 u-3")]
fn histories(#[case] limit: Option<i32>, #[case] current: &str, #[case] update: &str, #[case] gone: &str) {
    let status = json!({ "currentRevision": current, "updateStatus": { "updatedRevision": update }, "replicas": 0,
        "updatedReplicas": 0 });
    let observed = observed((1..=4).map(old).collect(), limit, status);
    let plan = plan(&observed, 0).unwrap();
    assert_eq!(beyond_limit(&observed, &plan.revisions).join(" "), gone);
}
