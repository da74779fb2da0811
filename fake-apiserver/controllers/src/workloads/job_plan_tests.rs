//! Plans of jobs: pods in short, and the plan in short.

use rstest::rstest;
use shared_json::json;

use super::super::job_indexes::INDEX;
use super::*;

/// A pod in short: name, phase, and more: an index, `c` if it was counted, `t` if it is being deleted on its
/// node, an exit code behind `!` (and the second of its end behind `@`), failures before it behind `~`, restarts of its containers behind `x`, of
/// its init containers behind `i`.
fn pod(short: &str) -> Arc<Value> {
    let mut parts = short.split(' ');
    let (name, phase) = (parts.next().unwrap(), parts.next().unwrap());
    let mut pod = json!({"metadata": {"name": name, "namespace": "d", "finalizers": [FINALIZER]}, "status": {"phase": phase}});
    for part in parts {
        if part == "c" {
            pod["metadata"]["finalizers"] = json!([]);
        } else if part == "t" {
            pod["spec"]["nodeName"] = json!("n");
            pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:04:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(300);
        } else if let Some(code) = part.strip_prefix('!') {
            let (code, at) = code.split_once('@').unwrap_or((code, "0"));
            let (code, at): (i64, i64) = (code.parse().unwrap(), at.parse().unwrap());
            let at = Timestamp::from_second(at).unwrap().to_string();
            pod["status"]["containerStatuses"] =
                json!([{"name": "m", "state": {"terminated": {"exitCode": code, "finishedAt": at}}}]);
        } else if let Some(restarts) = part.strip_prefix('x') {
            let restarts: i64 = restarts.parse().unwrap();
            pod["status"]["containerStatuses"] = json!([{"name": "m", "restartCount": restarts}]);
        } else if let Some(restarts) = part.strip_prefix('i') {
            let restarts: i64 = restarts.parse().unwrap();
            pod["status"]["initContainerStatuses"] = json!([{"name": "i", "restartCount": restarts}]);
        } else if let Some(failures) = part.strip_prefix('~') {
            pod["metadata"]["annotations"][FAILURES] = json!(failures);
        } else {
            pod["metadata"]["annotations"][INDEX] = json!(part);
        }
    }
    Arc::new(pod)
}

fn shown(plan: &Plan) -> String {
    let mut out: Vec<String> = plan
        .create
        .iter()
        .map(|index| index.map_or("+".to_owned(), |index| format!("+{index}")))
        .collect();
    out.extend(plan.delete.iter().map(|name| format!("-{name}")));
    out.extend(plan.count.iter().map(|name| format!("#{name}")));
    if plan.waits {
        out.push(format!("waits {}", plan.next.map_or(0, |next| next.as_secs())));
    }
    out.extend(plan.end.iter().map(|end| match end {
        End::Complete { reason, .. } => format!("ok {reason}"),
        End::Failed { reason, .. } => format!("bad {reason}"),
    }));
    out.join(" ")
}

#[rstest]
#[case(json!({"completions": 1, "parallelism": 1}), json!({}), &[], "+")]
#[case(json!({"completions": 5, "parallelism": 2}), json!({}), &["a Running"], "+")]
#[case(json!({"completions": 5, "parallelism": 3}), json!({"succeeded": 4}), &[], "+")]
#[case(json!({"completions": 1, "parallelism": 1}), json!({}), &["a Running"], "")]
#[case(json!({"completions": 1, "parallelism": 1}), json!({}), &["a Succeeded"], "#a ok CompletionsReached")]
#[case(json!({"completions": 2, "parallelism": 1}), json!({}), &["a Succeeded"], "+ #a")]
#[case(json!({"completions": 1, "parallelism": 1, "backoffLimit": 0}), json!({}), &["a Failed !1"], "#a bad BackoffLimitExceeded")]
#[case(json!({"completions": 1, "parallelism": 1, "backoffLimit": 1}), json!({}), &["a Failed !1"], "+ #a")]
#[case(json!({"completions": 1, "parallelism": 1, "backoffLimit": 1}), json!({"failed": 1}), &["a Failed !1 c", "b Failed !1"], "#b bad BackoffLimitExceeded")]
#[case(json!({"parallelism": 2}), json!({}), &[], "+ +")]
#[case(json!({"parallelism": 2}), json!({}), &["a Succeeded", "b Running"], "#a")]
#[case(json!({"parallelism": 2}), json!({}), &["a Succeeded", "b Succeeded"], "#a #b ok CompletionsReached")]
#[case(json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}), json!({}), &["a Running 1"], "+0 +2")]
#[case(json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}), json!({"completedIndexes": "0-1"}), &["a Succeeded 2"], "#a ok CompletionsReached")]
#[case(json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed"}), json!({}), &["a Succeeded 0"], "+1 #a")]
#[case(json!({"completions": 1, "parallelism": 1, "suspend": true}), json!({}), &["a Running"], "-a")]
#[case(json!({"completions": 5, "parallelism": 1}), json!({}), &["a Running", "b Running"], "-a")]
#[case(json!({"completions": 1, "parallelism": 1, "activeDeadlineSeconds": 10}), json!({"startTime": "1970-01-01T00:00:00Z"}), &["a Running"], "-a bad DeadlineExceeded")]
#[case(json!({"completions": 1, "parallelism": 1, "activeDeadlineSeconds": 1000}), json!({"startTime": "1970-01-01T00:00:00Z"}), &["a Running"], "")]
#[case(
    json!({"completions": 1, "parallelism": 1, "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}}),
    json!({}), &["a Failed !42"], "#a bad PodFailurePolicy"
)]
#[case(
    json!({"completions": 1, "parallelism": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [42]}}]}}),
    json!({}), &["a Failed !1"], "+ #a"
)]
#[case(
    json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}}),
    json!({}), &["a Succeeded 0"], "#a ok SuccessPolicy"
)]
#[case::index_retried(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
    json!({}), &["a Failed 0 !1", "b Running 1"], "+0")]
#[case::index_followed(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
    json!({}), &["a Failed 0 !1", "b Running 1", "c Pending 0 ~1"], "#a")]
#[case::index_waits(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 3}),
    json!({}), &["a Failed 0 !1@295", "b Running 1"], "waits 5")]
#[case::index_waits_by_its_failures(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 3}),
    json!({}), &["a Failed 0 !1@295 ~2", "b Running 1"], "waits 35")]
#[case::index_that_need_not_wait(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 3}),
    json!({}), &["a Failed 0 !1@295"], "+1")]
#[case::next_index_waits_its_turn(json!({"completions": 2, "parallelism": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 3}),
    json!({}), &["a Failed 0 !1@295"], "waits 5")]
#[case::index_given_up(json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
    json!({}), &["a Failed 0 ~1 !1", "b Running 1"], "+2 #a")]
#[case::index_without_retry(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 0}),
    json!({"completedIndexes": "1"}), &["a Failed 0 !1"], "#a bad FailedIndexes")]
#[case::too_many_indexes(json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 1}),
    json!({"failedIndexes": "3"}), &["a Failed 0 !1", "b Running 1"], "-b #a bad MaxFailedIndexesExceeded")]
#[case::index_by_policy(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 5,
    "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]}}),
    json!({}), &["a Failed 0 !42", "b Running 1"], "#a")]
#[case::index_that_failed_before(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
    json!({"failedIndexes": "0"}), &["b Running 1"], "")]
#[case::deleted_counts(json!({"completions": 1, "parallelism": 1}), json!({}), &["a Running t"], "+ #a")]
#[case::deleted_is_waited_for(json!({"completions": 1, "parallelism": 1, "podReplacementPolicy": "Failed"}), json!({}), &["a Running t"], "")]
#[case::too_many_of_an_index(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"}),
    json!({}), &["a Running 0", "b Running 1", "c Running 2"], "-c")]
// Both are met: the policy is looked at first.
#[case::success_policy_first(json!({"completions": 1, "parallelism": 1, "completionMode": "Indexed",
    "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}), json!({}), &["a Succeeded 0"], "#a ok SuccessPolicy")]
#[case::success_by_count(json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed",
    "successPolicy": {"rules": [{"succeededCount": 1}]}}), json!({}), &["a Succeeded 2", "b Running 0"], "-b #a ok SuccessPolicy")]
#[case::success_not_yet(json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed",
    "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 2}]}}),
    json!({}), &["a Succeeded 2", "b Running 0"], "+1 #a")]
#[case::success_by_the_second(json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed",
    "successPolicy": {"rules": [{"succeededIndexes": "0-1"}, {"succeededIndexes": "2"}]}}),
    json!({}), &["a Succeeded 2"], "#a ok SuccessPolicy")]
#[case::failed_before_success(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
    "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
    json!({}), &["a Succeeded 0", "b Failed 1 !1"], "#a #b bad BackoffLimitExceeded")]
#[case::decided_before(json!({"completions": 2, "parallelism": 2}), json!({"conditions": [
    {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": "m"}]}),
    &["a Succeeded", "b Succeeded"], "#a #b bad DeadlineExceeded")]
#[case::nobody_may_run(json!({"completions": 2, "parallelism": 0}), json!({}), &[], "")]
#[case::nothing_to_do(json!({"completions": 0, "parallelism": 1}), json!({}), &[], "ok CompletionsReached")]
#[case::no_deadline_while_suspended(json!({"completions": 1, "parallelism": 1, "suspend": true, "activeDeadlineSeconds": 10}),
    json!({"startTime": "1970-01-01T00:00:00Z"}), &[], "")]
#[case::limit_before_deadline(json!({"completions": 1, "parallelism": 1, "activeDeadlineSeconds": 10, "backoffLimit": 0}),
    json!({"startTime": "1970-01-01T00:00:00Z"}), &["a Failed !1"], "#a bad BackoffLimitExceeded")]
#[case::policy_before_limit(json!({"completions": 1, "parallelism": 1, "backoffLimit": 0,
    "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}}),
    json!({}), &["a Failed !42"], "#a bad PodFailurePolicy")]
#[case::first_rule_counts(json!({"completions": 1, "parallelism": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
    {"action": "Count", "onExitCodes": {"operator": "In", "values": [42]}},
    {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}}),
    json!({}), &["a Failed !42"], "#a bad BackoffLimitExceeded")]
#[case(json!({"completions": 1, "parallelism": 1}), json!({"conditions": [{"type": "Complete", "status": "True"}]}), &[], "")]
fn plans(#[case] spec: Value, #[case] status: Value, #[case] pods: &[&str], #[case] expected: &str) {
    let job = json!({"metadata": {"name": "j"}, "spec": spec, "status": status});
    let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
    let now = Timestamp::from_second(300).unwrap();
    let plan = View {
        job: &job,
        pods: &pods,
        now,
        known: Failures::default(),
        pace: Pace::REAL,
    }
    .plan();
    assert_eq!(shown(&plan), expected);
}

/// Restarts where they are, with this limit: pods that run or are about to, those that go included.
#[rstest]
#[case::below(3, &["a Running x2"], "")]
#[case::reached(3, &["a Running x3"], "bad")]
#[case::together(3, &["a Running x1", "b Running x2"], "bad")]
#[case::of_init_containers(3, &["a Pending i3"], "bad")]
#[case::of_both(3, &["a Running x2 i1"], "bad")]
#[case::of_one_that_goes(3, &["a Running x3 t"], "bad")]
#[case::of_one_that_goes_and_another(3, &["a Running x2 t", "b Running x1"], "bad")]
#[case::of_one_that_goes_below(3, &["a Running x1 t", "b Running x1"], "")]
#[case::of_one_that_has_failed(3, &["a Failed c x3", "b Running x1"], "")]
#[case::of_one_that_has_succeeded(3, &["a Succeeded c x3", "b Running x1"], "")]
#[case::none_are_allowed(0, &["a Running x1"], "bad")]
#[case::none_are_allowed_and_none_are_there(0, &["a Running"], "")]
#[case::one_is_allowed(1, &["a Running x1"], "bad")]
fn restarts_that_count(#[case] limit: i64, #[case] pods: &[&str], #[case] expected: &str) {
    for (policy, expected) in [("OnFailure", expected), ("Never", "")] {
        let spec = json!({
            "completions": 9, "parallelism": 9, "backoffLimit": limit, "podReplacementPolicy": "TerminatingOrFailed",
            "template": {"spec": {"restartPolicy": policy}},
        });
        let job = json!({"metadata": {"name": "j"}, "spec": spec});
        let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
        let now = Timestamp::from_second(300).unwrap();
        let plan = View {
            job: &job,
            pods: &pods,
            now,
            known: Failures::default(),
            pace: Pace::REAL,
        }
        .plan();
        let failed =
            matches!(&plan.end, Some(End::Failed { reason, .. }) if reason == "BackoffLimitExceeded");
        // A pod that goes is a failure by itself.
        let goes = i64::try_from(pods.iter().filter(|pod| pod.is_terminating()).count()).unwrap();
        assert!(goes <= limit || expected == "bad");
        assert_eq!(failed, expected == "bad", "{policy}");
    }
}

#[rstest]
#[case::nothing(Some((2, 100)), &[], (2, Some(100)))]
#[case::first(None, &["a Failed !1@295"], (1, Some(295)))]
#[case::more(Some((2, 100)), &["a Failed !1@290", "b Failed !1@295"], (4, Some(295)))]
#[case::counted(Some((2, 100)), &["a Failed !1@290 c"], (2, Some(100)))]
#[case::success(Some((2, 100)), &["a Succeeded !0@295"], (0, None))]
#[case::success_before(Some((2, 100)), &["a Succeeded !0@290", "b Failed !1@295"], (1, Some(295)))]
#[case::success_after(Some((2, 100)), &["a Succeeded !0@295", "b Failed !1@290"], (0, None))]
#[case::success_at_once(None, &["a Succeeded !0@295", "b Failed !1@295"], (0, None))]
#[case::deleted(None, &["a Running t"], (1, Some(-60)))]
#[case::running(Some((1, 100)), &["a Running"], (1, Some(100)))]
fn failures_in_a_row(
    #[case] known: Option<(i64, i64)>,
    #[case] pods: &[&str],
    #[case] expected: (i64, Option<i64>),
) {
    let job = json!({"metadata": {"name": "j"}, "spec": {"completions": 9, "parallelism": 9}});
    let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
    let known = known.map_or(Failures::default(), |(in_a_row, last)| Failures {
        in_a_row,
        last: Some(Timestamp::from_second(last).unwrap()),
    });
    let now = Timestamp::from_second(300).unwrap();
    let view = View {
        job: &job,
        pods: &pods,
        now,
        known,
        pace: Pace::REAL,
    };
    let row = view.plan().row;
    assert_eq!((row.in_a_row, row.last.map(Timestamp::as_second)), expected);
}

/// The wait before the next pod, so many milliseconds after the last of some failures in a row.
#[rstest]
#[case::first(Pace::REAL, 1, 0, Some(10_000))]
#[case::doubled(Pace::REAL, 3, 500, Some(39_500))]
#[case::longest(Pace::REAL, 9, 0, Some(600_000))]
#[case::over(Pace::REAL, 1, 10_000, None)]
#[case::none_failed(Pace::REAL, 0, 0, None)]
#[case::quick(Pace::QUICK, 1, 0, Some(10))]
#[case::quick_doubled(Pace::QUICK, 3, 0, Some(40))]
#[case::quick_longest(Pace::QUICK, 9, 0, Some(600))]
fn retries(#[case] pace: Pace, #[case] failures: i64, #[case] later: i64, #[case] expected: Option<u64>) {
    let failed = Timestamp::from_second(300).unwrap();
    let view = View {
        job: &json!({}),
        pods: &[],
        now: Timestamp::from_millisecond(300_000 + later).unwrap(),
        known: Failures::default(),
        pace,
    };
    assert_eq!(
        view.retry_in(failed, failures),
        expected.map(Duration::from_millis)
    );
}

#[rstest]
#[case(&[], "")]
#[case(&[0, 1, 2, 5], "0-2,5")]
#[case(&[1, 2], "1,2")]
fn lists_of_indexes(#[case] numbers: &[i64], #[case] text: &str) {
    let numbers: BTreeSet<i64> = numbers.iter().copied().collect();
    assert_eq!(ranges(&numbers), text);
    assert_eq!(indexes(text), numbers);
}
