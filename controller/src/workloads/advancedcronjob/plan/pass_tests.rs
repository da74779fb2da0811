//! Rows: the jobs that a pass makes and deletes, and the status. Times are those of one day.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use rstest::rstest;
use serde_json::json;

use super::*;

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

/// A job by a word: its state (`a`ctive, `s`uccessful, `f`ailed), its name, the time for which it was made, and the time at which it
/// began, each after a slash; `-` is none.
fn child(word: &str) -> Child {
    let parts: Vec<&str> = word.split('/').collect();
    let [state, name, scheduled, start] = parts[..] else {
        panic!("{word}");
    };
    let time = |text: &str| (text != "-").then(|| at(text));
    Child {
        kind: JobKind::Job,
        reference: ObjectReference {
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        },
        state: match state {
            "a" => State::Active,
            "s" => State::Successful,
            _ => State::Failed,
        },
        start: time(start),
        scheduled: time(scheduled),
    }
}

fn observed(spec: Value, last: &str, children: &str, now: &str) -> Observed {
    let mut cron = json!({
        "metadata": { "name": "a", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T10:00:30Z" },
        "spec": { "schedule": "*/1 * * * *", "template": { "broadcastJobTemplate": {} }, "concurrencyPolicy": "Allow",
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1 },
        "status": {},
    });
    crate::kit::json::merge(&mut cron, json!({ "spec": spec }));
    if last != "-" {
        cron["status"]["lastScheduleTime"] = json!(at(last).to_string());
        cron["metadata"]["creationTimestamp"] = json!("2025-12-01T00:00:00Z");
    }
    Observed {
        cron: Arc::new(serde_json::from_value::<AdvancedCronJob>(cron).unwrap()),
        children: children.split_whitespace().map(child).collect(),
        now: at(now),
    }
}

fn names(children: &[Child]) -> Vec<&str> {
    children
        .iter()
        .map(|child| child.reference.name.as_deref().unwrap())
        .collect()
}

/// `x` a job of the history goes, `-` one gives way, `+` one is made for that time; then the seconds until the next look.
fn shown(plan: &Plan) -> String {
    let mut parts: Vec<String> = names(&plan.history)
        .iter()
        .map(|name| format!("x{name}"))
        .collect();
    parts.extend(names(&plan.replaced).iter().map(|name| format!("-{name}")));
    parts.extend(plan.create.iter().map(|(_, job)| {
        let at = job.pointer("/metadata/annotations/apps.kruise.io~1scheduled-at");
        format!(
            "+{}",
            at.and_then(Value::as_str)
                .unwrap()
                .trim_start_matches("2026-01-01T")
        )
    }));
    parts.extend(plan.requeue.map(|wait| format!("{}s", wait.as_secs_f64())));
    parts.join(" ")
}

fn deadline(seconds: i64) -> Value {
    json!({ "startingDeadlineSeconds": seconds })
}

fn policy(policy: &str) -> Value {
    json!({ "concurrencyPolicy": policy })
}

/// A spec, the time of the last job in the status, the jobs, and the time of the pass.
#[rstest]
#[case::row_1(json!({}), "-", "", "10:00:30", "30s")]
#[case::row_2(json!({}), "-", "", "10:01:00.2", "+10:01:00Z 59.8s")]
#[case::row_3(json!({}), "10:01:00", "a/j/10:01:00/-", "10:01:02", "58s")]
#[case::row_5(json!({}), "-", "", "10:05:10", "+10:05:00Z 50s")]
#[case::row_6(deadline(5), "-", "", "10:05:10", "50s")]
#[case::row_7(deadline(10), "-", "", "10:05:10", "50s")]
#[case::row_8(deadline(11), "-", "", "10:05:10", "+10:05:00Z 50s")]
#[case::row_9(deadline(0), "-", "", "10:05:00", "60s")]
#[case::row_10(policy("Allow"), "10:01:00", "a/j/10:01:00/-", "10:02:00", "+10:02:00Z 60s")]
#[case::row_11(policy("Forbid"), "10:01:00", "a/j/10:01:00/-", "10:02:00", "60s")]
#[case::row_12(policy("Forbid"), "10:01:00", "s/j/10:01:00/-", "10:02:20", "+10:02:00Z 40s")]
#[case::row_14(
    policy("Replace"),
    "10:01:00",
    "a/j/10:01:00/-",
    "10:02:00",
    "-j +10:02:00Z 60s"
)]
#[case::row_14_the_ended_stay(
    policy("Replace"),
    "10:01:00",
    "s/i/10:00:00/- a/j/10:01:00/-",
    "10:02:00",
    "-j +10:02:00Z 60s"
)]
#[case::row_15_goes_on(json!({}), "08:19:00", "", "10:00:30", "+10:00:00Z 30s")]
#[case::row_16(json!({}), "08:20:00", "", "10:00:30", "+10:00:00Z 30s")]
#[case::row_17(
    json!({}), "10:05:00", "s/e/-/10:05:00 s/c/-/10:03:00 s/a/-/10:01:00 s/d/-/10:04:00 s/b/-/10:02:00", "10:05:10", "xa xb 50s"
)]
#[case::row_18(json!({}), "10:05:00", "f/a/-/10:01:00 f/b/-/-", "10:05:10", "xb 50s")]
#[case::row_19(json!({ "successfulJobsHistoryLimit": 0 }), "10:05:00", "s/a/10:05:00/10:05:00", "10:05:10", "xa 50s")]
#[case::row_19_not_again(json!({ "successfulJobsHistoryLimit": 0 }), "10:05:00", "", "10:05:11", "49s")]
#[case::no_limit_keeps_all(
    json!({ "successfulJobsHistoryLimit": null }), "10:05:00", "s/a/-/- s/b/-/- s/c/-/- s/d/-/-", "10:05:10", "50s"
)]
#[case::row_20(json!({ "paused": true, "successfulJobsHistoryLimit": 0 }), "10:01:00", "s/a/-/-", "10:05:10", "xa")]
#[case::row_21(json!({ "paused": false }), "10:01:00", "", "10:05:10", "+10:05:00Z 50s")]
#[case::row_22(json!({ "schedule": "0 3 * * *", "timeZone": "Asia/Shanghai" }), "10:00:00", "", "19:00:00", "+19:00:00Z 86400s")]
#[case::row_23(json!({ "schedule": "TZ=Asia/Tokyo 0 3 * * *" }), "10:00:00", "", "18:00:00", "+18:00:00Z 86400s")]
#[case::an_unknown_zone_is_none(json!({ "schedule": "0 3 * * *", "timeZone": "Mars/Base" }), "02:00:00", "", "03:00:00", "+03:00:00Z 86400s")]
#[case::no_schedule(json!({ "schedule": "never" }), "10:00:00", "", "11:00:00", "")]
#[case::no_time_at_all(json!({ "schedule": "0 0 30 2 *" }), "10:00:00", "", "11:00:00", "")]
#[case::every_so_often(json!({ "schedule": "@every 90s" }), "10:00:00", "", "10:04:40", "+10:04:30Z 90s")]
#[case::a_job_of_the_future(json!({}), "10:01:00", "a/j/10:09:00/-", "10:05:10", "50s")]
fn jobs(
    #[case] spec: Value,
    #[case] last: &str,
    #[case] children: &str,
    #[case] now: &str,
    #[case] expect: &str,
) {
    let plan = plan(&observed(spec, last, children, now));
    assert_eq!(shown(&plan), expect);
}

/// The jobs, the time of the last one in the status before, the active jobs and that time then.
#[rstest]
#[case::none("", "-", &[], None)]
#[case::row_3("a/j/10:01:00/-", "-", &["j"], Some("10:01:00"))]
#[case::of_all_the_latest("s/i/10:03:00/- a/j/10:01:00/- a/k/-/-", "-", &["j", "k"], Some("10:03:00"))]
#[case::it_stays_when_the_job_does_not("", "10:01:00", &[], Some("10:01:00"))]
#[case::an_older_one_changes_nothing("s/i/10:00:00/-", "10:01:00", &[], Some("10:01:00"))]
fn statuses(
    #[case] children: &str,
    #[case] last: &str,
    #[case] active: &[&str],
    #[case] expect: Option<&str>,
) {
    let status = plan(&observed(json!({}), last, children, "10:01:10")).status;
    let names: Vec<&str> = status
        .active
        .iter()
        .map(|job| job.name.as_deref().unwrap())
        .collect();
    assert_eq!(
        (names, status.last_schedule_time),
        (active.to_vec(), expect.map(|time| Time(at(time))))
    );
    assert_eq!(status.kind.as_deref(), Some("BroadcastJob"));
}

#[test]
fn one_that_goes_makes_no_jobs() {
    let mut observed = observed(json!({}), "-", "", "10:05:10");
    let mut cron = AdvancedCronJob::clone(&observed.cron);
    cron.metadata.deletion_timestamp = Some(Time(at("10:05:00")));
    observed.cron = Arc::new(cron);
    assert_eq!(shown(&plan(&observed)), "");
}
