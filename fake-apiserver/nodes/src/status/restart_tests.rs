//! Restarts of single containers, and of all.

use rstest::rstest;

use super::super::record::Ended;
use super::*;

/// A pod of this policy with one container `c` of a kind, its own policy and its rules, each in short: `In 1 2: Restart`.
fn pod(policy: &str, kind: Kind, own: &str, rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules
        .iter()
        .map(|short| {
            let (codes, action) = short.split_once(": ").unwrap();
            let mut words = codes.split(' ');
            let operator = words.next().unwrap();
            let values: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
            json!({"action": action, "exitCodes": {"operator": operator, "values": values}})
        })
        .collect();
    let mut container = json!({"name": "c"});
    if !own.is_empty() {
        container["restartPolicy"] = json!(own);
    }
    if !rules.is_empty() {
        container["restartPolicyRules"] = json!(rules);
    }
    json!({"spec": {"restartPolicy": policy, kind.field(): [container]}})
}

fn ended(kind: Kind, code: i32) -> PodRecord {
    let mut record = PodRecord::new(&json!({}), "".into(), "".into(), "".into());
    let mut container = ContainerRecord::new(&json!({"name": "c"}), kind);
    let ended = Ended {
        at: String::new(),
        code,
        reason: String::new(),
        message: String::new(),
    };
    container.current = Some(Instance {
        id: "containerd://1".into(),
        ended: Some(Box::new(ended)),
        ..Instance::default()
    });
    record.containers.push(container);
    record
}

#[rstest]
#[case::always("Always", Kind::Regular, "", &[], 0, "again")]
#[case::always_failed("Always", Kind::Regular, "", &[], 1, "again")]
#[case::on_failure("OnFailure", Kind::Regular, "", &[], 0, "")]
#[case::on_failure_failed("OnFailure", Kind::Regular, "", &[], 1, "again")]
#[case::never("Never", Kind::Regular, "", &[], 0, "")]
#[case::never_failed("Never", Kind::Regular, "", &[], 1, "")]
#[case::init("Always", Kind::Init, "", &[], 0, "")]
#[case::init_failed("Always", Kind::Init, "", &[], 1, "again")]
#[case::init_failed_once_only("Never", Kind::Init, "", &[], 1, "")]
#[case::init_of_its_own("Never", Kind::Init, "OnFailure", &[], 1, "again")]
#[case::init_never_of_its_own("Always", Kind::Init, "Never", &[], 1, "")]
#[case::sidecar("Never", Kind::Sidecar, "Always", &[], 0, "again")]
#[case::sidecar_failed("Never", Kind::Sidecar, "Always", &[], 1, "again")]
#[case::to_look_at_pods("Always", Kind::Ephemeral, "", &[], 1, "")]
#[case::own_always("Never", Kind::Regular, "Always", &[], 0, "again")]
#[case::own_never("Always", Kind::Regular, "Never", &[], 1, "")]
#[case::own_on_failure("Always", Kind::Regular, "OnFailure", &[], 0, "")]
#[case::own_on_failure_failed("Never", Kind::Regular, "OnFailure", &[], 1, "again")]
#[case::listed("Never", Kind::Regular, "Never", &["In 42: Restart"], 42, "again")]
#[case::listed_second("Never", Kind::Regular, "Never", &["In 41 42: Restart"], 42, "again")]
#[case::not_listed("Never", Kind::Regular, "Never", &["In 42: Restart"], 1, "")]
#[case::not_listed_goes_by_policy("Never", Kind::Regular, "OnFailure", &["In 42: Restart"], 1, "again")]
#[case::not_listed_succeeded("Always", Kind::Regular, "OnFailure", &["In 42: Restart"], 0, "")]
#[case::success_listed("Never", Kind::Regular, "Never", &["In 0: Restart"], 0, "again")]
#[case::all_but("Never", Kind::Regular, "Never", &["NotIn 0 1: Restart"], 2, "again")]
#[case::all_but_this("Never", Kind::Regular, "Never", &["NotIn 0 1: Restart"], 1, "")]
#[case::second_rule("Never", Kind::Regular, "Never", &["In 1: Restart", "In 2: Restart"], 2, "again")]
#[case::init_by_rule("Never", Kind::Init, "Never", &["In 3: Restart"], 3, "again")]
#[case::init_by_another_rule("Never", Kind::Init, "Never", &["In 3: Restart"], 1, "")]
#[case::all("Never", Kind::Regular, "Never", &["In 42: RestartAllContainers"], 42, "all")]
#[case::all_not_listed("Never", Kind::Regular, "Never", &["In 42: RestartAllContainers"], 1, "")]
#[case::all_not_listed_alone("Never", Kind::Regular, "Always", &["In 42: RestartAllContainers"], 1, "again")]
#[case::all_for_success("Always", Kind::Regular, "Always", &["In 0: RestartAllContainers"], 0, "all")]
#[case::all_by_an_init("Always", Kind::Init, "OnFailure", &["NotIn 0: RestartAllContainers"], 7, "all")]
#[case::all_by_a_sidecar("Never", Kind::Sidecar, "Always", &["In 7: RestartAllContainers"], 7, "all")]
#[case::alone_comes_first("Never", Kind::Regular, "Never", &["In 1: Restart", "NotIn 0: RestartAllContainers"], 1, "again")]
#[case::all_comes_first("Never", Kind::Regular, "Never", &["NotIn 0: RestartAllContainers", "In 1: Restart"], 1, "all")]
#[case::all_comes_second("Never", Kind::Regular, "Never", &["In 1: Restart", "NotIn 0: RestartAllContainers"], 2, "all")]
fn who_starts_again(
    #[case] policy: &str,
    #[case] kind: Kind,
    #[case] own: &str,
    #[case] rules: &[&str],
    #[case] code: i32,
    #[case] expected: &str,
) {
    let pod = pod(policy, kind, own, rules);
    let record = ended(kind, code);
    let found = match (
        restarts_all(&record, &pod),
        should_restart(&record.containers[0], &pod),
    ) {
        (true, true) => "all",
        (false, true) => "again",
        (false, false) => "",
        (true, false) => "neither",
    };
    assert_eq!(found, expected);
}

#[test]
fn what_runs_or_never_ran() {
    let pod = pod("Never", Kind::Regular, "Never", &["In 0: RestartAllContainers"]);
    let mut record = ended(Kind::Regular, 0);
    if let Some(instance) = record.containers[0].current.as_mut() {
        instance.ended = None;
    }
    assert!(!should_restart(&record.containers[0], &pod) && !restarts_all(&record, &pod));
    record.containers[0].take_away();
    assert!(should_restart(&record.containers[0], &pod) && !restarts_all(&record, &pod));
    assert_eq!(record.containers[0].restarts, 1);
    record.containers[0].take_away();
    assert_eq!(record.containers[0].restarts, 1);
    let (state, last) = states(&record, &record.containers[0], &pod);
    assert_eq!(state["waiting"]["reason"], "RestartingAllContainers");
    assert_eq!(
        last,
        json!({"terminated": {
            "exitCode": 137, "reason": "RestartingAllContainers", "startedAt": null, "finishedAt": null,
            "message": "The container is removed because RestartAllContainers in place",
        }})
    );
}
