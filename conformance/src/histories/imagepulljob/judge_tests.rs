use std::sync::Arc;

use rstest::rstest;
use shared_json::json;

use super::*;
use ChangeKind::{Added, Deleted, Modified};

fn change(at_ms: i64, resource: &str, kind: ChangeKind, object: Value) -> Change {
    Change {
        at_ms,
        resource: resource.to_owned(),
        kind,
        object: Arc::new(object),
    }
}

/// The job for `one:v1` on the node n, which lives for five seconds after its end.
fn job(at_ms: i64, kind: ChangeKind, ended: bool) -> Change {
    let end = ended.then_some("1970-01-01T00:00:00Z");
    let object = json!({
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "image": "one:v1", "selector": {"names": ["n"]},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 5},
        },
        "status": {"desired": 1, "succeeded": 1, "completionTime": end},
    });
    change(at_ms, JOBS, kind, object)
}

/// A node that lists a tag of `one` for the owner, if there is one, and pulls a tag.
fn node(at_ms: i64, name: &str, tag: &str, owner: &str, pulls: &str) -> Change {
    let tags = match owner {
        "" => json!([]),
        owner => json!([{"tag": tag, "ownerReferences": [{"uid": owner}]}]),
    };
    let statuses = match pulls {
        "" => json!([]),
        pulls => json!([{"tag": pulls, "startTime": "1970-01-01T00:00:00Z"}]),
    };
    let object = json!({
        "metadata": {"name": name},
        "spec": {"images": {"one": {"tags": tags}}}, "status": {"imageStatuses": {"one": {"tags": statuses}}},
    });
    change(at_ms, NODE_IMAGES, Modified, object)
}

/// A job that has had its image pulled, has ended, and is gone in time.
fn whole() -> Vec<Change> {
    vec![
        job(0, Added, false),
        node(10, "n", "v1", "u", ""),
        node(20, "n", "v1", "u", "v1"),
        job(2000, Modified, true),
        job(6500, Deleted, true),
        node(7000, "n", "v1", "", ""),
    ]
}

#[rstest]
#[case::fine(vec![], None)]
#[case::for_another_job(vec![node(8000, "n", "v1", "v", "")], Some("lists one:v1 for a job that is not there"))]
#[case::on_another_node(vec![node(8000, "m", "v1", "u", "")], Some("p, which wants it on other nodes"))]
#[case::another_image(vec![node(8000, "n", "v2", "u", "")], Some("p, which wants another image"))]
#[case::after_the_end(vec![node(8000, "n", "v1", "u", "")], Some("p, which is over"))]
#[case::pulled_without_being_listed(vec![node(8000, "n", "v1", "", "v2")], Some("pulls one:v2, which is not listed"))]
#[case::pulled_late(vec![node(8000, "n", "v1", "", "v1")], None)]
#[case::pulled_too_late(vec![node(12_000, "n", "v1", "", "v1")], Some("pulls one:v1"))]
#[case::left_behind(vec![node(6400, "n", "v1", "u", "")], Some("at the end n lists one:v1 for nobody"))]
fn a_fault_is_seen(#[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let found = wrongs(&[whole(), more].concat(), &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

#[rstest]
#[case::early(vec![job(2000, Modified, true), job(3000, Deleted, true)], Some("deleted 1000 ms after its end"))]
#[case::late(vec![job(2000, Modified, true), job(60_000, Deleted, true)], Some("deleted 58000 ms after its end"))]
#[case::without_an_end(vec![job(3000, Deleted, false)], Some("deleted without an end"))]
#[case::still_there(vec![job(2000, Modified, true)], Some("its time to live is over"))]
#[case::never_ends(vec![], Some("p has 1 of 1 nodes"))]
fn ends_of_jobs(#[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let found = wrongs(&[vec![job(0, Added, false)], more].concat(), &Deeds::default());
    let expected = expected.unwrap_or("?");
    assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}");
}

#[test]
fn a_job_that_the_user_deletes_need_not_have_ended() {
    let deeds = Deeds {
        errands: vec![(3000, Errand::Delete(json!({"metadata": {"name": "p"}})))],
        ..Deeds::default()
    };
    let history = [job(0, Added, false), job(3000, Deleted, false)];
    assert_eq!(wrongs(&history, &deeds), Vec::<String>::new());
}

#[rstest]
#[case::goes_on(2, 2, None, Some(2), 0)]
#[case::one_is_missing(1, 1, None, Some(2), 1)]
#[case::has_ended(2, 2, Some("then"), None, 0)]
#[case::has_not_ended(2, 1, None, None, 1)]
fn lists(
    #[case] desired: i64,
    #[case] completed: i64,
    #[case] end: Option<&str>,
    #[case] images: Option<i64>,
    #[case] wrong: usize,
) {
    let job = json!({"status": {"desired": desired, "completed": completed, "completionTime": end}});
    assert_eq!(unlike(&job, images).len(), wrong);
}
