//! Rows of the status of namespaces that are being deleted.

use super::*;

const FAILED: &str = "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: n for gvr: ";

/// The rest of some kinds (plural, group, the finalizers of each object, for how many seconds), the conditions `ContentFailure`,
/// `ContentRemaining` and `FinalizersRemaining`, and how long all that may take.
#[track_caller]
fn check(left: &[(&str, &str, &[&[&str]], u64)], expected: [&str; 3], seconds: u64) {
    let mut found = Left::default();
    for (plural, group, objects, seconds) in left {
        let resource = ApiResource {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: String::new(),
            plural: (*plural).to_owned(),
        };
        let kind = ServedKind {
            resource: std::sync::Arc::new(resource),
            namespaced: true,
        };
        let objects: Vec<Vec<String>> = objects
            .iter()
            .map(|finalizers| finalizers.iter().map(|name| (*name).to_owned()).collect())
            .collect();
        found.note("n", &kind, &objects, *seconds);
    }
    let said: Vec<String> = found
        .conditions()
        .into_iter()
        .skip(2)
        .map(|(_, status, _, text)| if status == "True" { text } else { String::new() })
        .collect();
    assert_eq!(said, expected, "{left:?}");
    assert_eq!(found.seconds, seconds, "{left:?}");
}

#[test]
fn what_is_left_is_told() {
    const REMAIN: &str = "Some resources are remaining: ";
    const HELD: &str = "Some content in the namespace has finalizers remaining: ";
    check(&[], ["", "", ""], 0);
    check(&[("configmaps", "", &[], 0)], ["", "", ""], 0);
    let one = format!("{REMAIN}configmaps. has 1 resource instances");
    check(
        &[("configmaps", "", &[&["e.com/f"]], 0)],
        ["", &one, &format!("{HELD}e.com/f in 1 resource instances")],
        15,
    );
    check(
        &[("configmaps", "", &[&["e.com/f", "e.com/g"], &["e.com/f"], &[]], 0)],
        [
            "",
            &format!("{REMAIN}configmaps. has 3 resource instances"),
            &format!("{HELD}e.com/f in 2 resource instances, e.com/g in 1 resource instances"),
        ],
        15,
    );
    check(
        &[
            ("jobs", "batch", &[&["orphan"], &["orphan"]], 0),
            ("configmaps", "", &[&["e.com/f"]], 0),
        ],
        [
            "",
            &format!("{REMAIN}configmaps. has 1 resource instances, jobs.batch has 2 resource instances"),
            &format!("{HELD}e.com/f in 1 resource instances, orphan in 2 resource instances"),
        ],
        15,
    );
    // What nothing holds should have gone.
    check(
        &[("configmaps", "", &[&[]], 0)],
        [&format!("{FAILED}/v1, Resource=configmaps"), &one, ""],
        0,
    );
    check(
        &[("jobs", "batch", &[&[]], 0)],
        [
            &format!("{FAILED}batch/v1, Resource=jobs"),
            &format!("{REMAIN}jobs.batch has 1 resource instances"),
            "",
        ],
        0,
    );
    // What ends gracefully takes its time, whatever holds it.
    let pods = format!("{REMAIN}pods. has 1 resource instances");
    check(&[("pods", "", &[&[]], 30)], ["", &pods, ""], 30);
    check(
        &[("pods", "", &[&["e.com/f"]], 3)],
        ["", &pods, &format!("{HELD}e.com/f in 1 resource instances")],
        3,
    );
}

#[test]
fn what_is_not_found_is_told() {
    let failed = |failed: &[(&str, &str)]| {
        let failed = failed
            .iter()
            .map(|(version, why)| ((*version).to_owned(), (*why).to_owned()));
        Ok(Served {
            failed: failed.collect(),
            ..Served::default()
        })
    };
    let some = |count: u8, rest: &str| {
        format!(
            "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of server APIs: {rest}"
        )
    };
    for (served, expected) in [
        (failed(&[]), String::new()),
        (failed(&[("e.com/v1", "broken")]), some(1, "e.com/v1: broken")),
        (
            failed(&[("e.com/v1", "broken"), ("a.com/v2", "gone")]),
            some(2, "a.com/v2: gone, e.com/v1: broken"),
        ),
        (
            Err(kube::Error::Api(
                kube::core::Status::failure("no", "InternalError").boxed(),
            )),
            "no".to_owned(),
        ),
    ] {
        let left = Left {
            undiscovered: undiscovered(&served),
            ..Left::default()
        };
        let conditions = left.conditions();
        let (kind, status, reason, message) = &conditions[0];
        let (is, why, text) = match expected.as_str() {
            "" => (
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            text => ("True", "DiscoveryFailed", text),
        };
        assert_eq!(
            (*kind, *status, *reason, message.as_str()),
            (DISCOVERY, is, why, text)
        );
        assert!(conditions[1..].iter().all(|(_, status, ..)| *status == "False"));
    }
}

#[test]
fn who_is_left_to_let_it_go() {
    for (finalizers, held, left) in [
        (json!(null), false, ""),
        (json!([]), false, ""),
        (json!(["kubernetes"]), true, ""),
        (
            json!(["e.com/b", "kubernetes", "e.com/a"]),
            true,
            "e.com/a e.com/b",
        ),
        (json!(["e.com/b", "e.com/a"]), true, "e.com/a e.com/b"),
        (
            json!(["e.com/a", "kubernetes", "e.com/a", "kubernetes"]),
            true,
            "e.com/a",
        ),
    ] {
        let namespace = json!({"spec": {"finalizers": finalizers}});
        let found: Vec<&str> = without_own(&namespace).into_iter().collect();
        assert_eq!(
            (is_held(&namespace), found.join(" ").as_str()),
            (held, left),
            "{namespace}"
        );
    }
}

#[test]
fn what_can_be_asked_for() {
    let error = |code: u16| {
        let mut status = kube::core::Status::failure("no", "Reason");
        status.code = code;
        Err::<u8, _>(kube::Error::Api(status.boxed()))
    };
    assert_eq!(supported(Ok(1)).ok(), Some(Some(1)));
    for (code, is_asked_otherwise) in [(404, true), (405, true), (403, false), (409, false), (500, false)] {
        let found = supported(error(code));
        assert_eq!(matches!(found, Ok(None)), is_asked_otherwise, "{code}");
        assert_eq!(found.is_err(), !is_asked_otherwise, "{code}");
    }
}

#[test]
fn how_long_pods_may_take() {
    let pod = |phase: &str, seconds: Value| json!({"status": {"phase": phase}, "spec": {"terminationGracePeriodSeconds": seconds}});
    for (phase, seconds, expected) in [
        ("Running", json!(30), Some(30)),
        ("Pending", json!(0), Some(0)),
        ("Unknown", json!(7), Some(7)),
        ("Succeeded", json!(30), None),
        ("Failed", json!(30), None),
        ("Running", Value::Null, None),
    ] {
        assert_eq!(grace(&pod(phase, seconds.clone())), expected, "{phase} {seconds}");
    }
    let namespace = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:10Z"}});
    for (now, expected) in [
        ("00:00:09", 0),
        ("00:00:10", 0),
        ("00:00:15", 5),
        ("00:02:00", 110),
    ] {
        let now: Timestamp = format!("2026-01-01T{now}Z").parse().unwrap();
        assert_eq!(time_since(&namespace, now), expected, "{now}");
    }
}

#[test]
fn conditions_change_where_they_are() {
    let condition = |kind: &str, status: &str, reason: &str, time: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": time,
        })
    };
    let new: [Condition; 1] = [("A", "True", "New", "m".to_owned())];
    for (old, expected) in [
        (Value::Null, json!([condition("A", "True", "New", "now")])),
        (
            json!([condition("A", "True", "Old", "then")]),
            json!([condition("A", "True", "New", "then")]),
        ),
        (
            json!([
                condition("A", "False", "Old", "then"),
                condition("B", "True", "Mine", "then")
            ]),
            json!([
                condition("A", "True", "New", "now"),
                condition("B", "True", "Mine", "then")
            ]),
        ),
        (
            json!([condition("B", "True", "Mine", "then")]),
            json!([
                condition("B", "True", "Mine", "then"),
                condition("A", "True", "New", "now")
            ]),
        ),
    ] {
        assert_eq!(with_conditions(Some(&old), &new, "now"), expected, "{old}");
    }
}
