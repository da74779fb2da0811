//! Rows of passes over a list of images.

use rstest::rstest;

use super::*;

const NOW: i64 = 1000;

fn list(images: &[&str], changes: &Value) -> ImageListPullJob {
    let mut list = json!({ "metadata": { "name": "l", "namespace": "d", "uid": "u", "labels": {} },
        "spec": { "images": images, "parallelism": 2, "completionPolicy": { "type": "Always" } } });
    crate::test_admission::merge_patch(&mut list, changes);
    serde_json::from_value(list).unwrap()
}

fn hashed(mut list: ImageListPullJob) -> ImageListPullJob {
    let hash = go_dump::pull_job_hash(&shared_json::to_value(&list.spec).unwrap());
    list.labels_mut().insert(REVISION_HASH.to_owned(), hash);
    list
}

/// A job by words such as `a 3/1/1/1`: its image, and the desired, active, succeeded and failed nodes. `a -` has not begun,
/// `a ! 1/0/1/0` is of another template, `a ~ 1/0/1/0` has no hash.
fn job(list: &ImageListPullJob, name: &str, words: &str) -> Arc<ImagePullJob> {
    let words: Vec<&str> = words.split(' ').collect();
    let hash = match words[1] {
        "!" => json!({ REVISION_HASH: "old" }),
        "~" => json!({}),
        _ => json!(list.labels()),
    };
    let mut job = json!({ "metadata": { "name": name, "namespace": "d", "uid": name, "labels": hash },
        "spec": { "image": words[0], "parallelism": 2, "completionPolicy": { "type": "Always" } } });
    let counts: Vec<i32> = words
        .last()
        .unwrap()
        .split('/')
        .filter_map(|word| word.parse().ok())
        .collect();
    if let [desired, active, succeeded, failed] = counts[..] {
        job["status"] = json!({ "startTime": "1970-01-01T00:00:00Z", "desired": desired, "active": active,
            "succeeded": succeeded, "failed": failed });
    }
    Arc::new(serde_json::from_value(job).unwrap())
}

fn observed(list: ImageListPullJob, jobs: &[&str]) -> Observed {
    let jobs = jobs.iter().zip(["j1", "j2", "j3"]);
    Observed {
        jobs: jobs.map(|(words, name)| job(&list, name, words)).collect(),
        list: Arc::new(list),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// The images of the list and its jobs; the images of new jobs, the jobs that go, the status as
/// desired/active/completed/succeeded and the images that failed.
#[rstest]
#[case::new(&["a", "b"], &[], "a b", "", "2/0/0/0 []")]
#[case::not_begun(&["a", "b"], &["a -", "b -"], "", "", "2/0/0/0 []")]
#[case::running(&["a", "b"], &["a 2/1/1/0", "b 2/0/2/0"], "", "", "2/1/1/1 []")]
#[case::some_failed(&["a", "b"], &["a 2/0/1/1", "b 2/0/2/0"], "", "", "2/0/2/1 [a] done")]
#[case::not_listed_any_more(&["a"], &["a 2/0/2/0", "b 2/1/0/0"], "", "j2", "1/1/1/1 [] done")]
#[case::another_template(&["a"], &["a ! 2/1/0/0"], "a", "j1", "1/1/0/0 []")]
#[case::the_same_template_without_a_hash(&["a"], &["a ~ 2/1/0/0"], "", "", "1/1/0/0 []")]
#[case::two_for_one_image(&["a"], &["a 2/1/0/0", "a 2/1/0/0"], "", "j2", "1/2/0/0 []")]
fn passes(
    #[case] images: &[&str],
    #[case] jobs: &[&str],
    #[case] created: &str,
    #[case] deleted: &str,
    #[case] expect: &str,
) {
    let Plan::Work(work) = plan(&observed(hashed(list(images, &json!({}))), jobs)) else {
        panic!("no work");
    };
    let of_jobs: Vec<&str> = work
        .create
        .iter()
        .map(|job| job["spec"]["image"].as_str().unwrap())
        .collect();
    let gone: Vec<&str> = work.delete.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        (of_jobs.join(" ").as_str(), gone.join(" ").as_str()),
        (created, deleted)
    );
    let status = work.status;
    let failed = status.failed_image_statuses.iter().flatten();
    let failed: Vec<&str> = failed.filter_map(|failed| failed.name.as_deref()).collect();
    let mut shown = format!(
        "{}/{}/{}/{} [{}]",
        status.desired,
        status.active,
        status.completed,
        status.succeeded,
        failed.join(" ")
    );
    if status.completion_time.is_some() {
        shown.push_str(" done");
    }
    assert_eq!(shown, expect);
}

#[test]
fn a_job_is_made_of_its_list() {
    let list = hashed(list(&["a"], &json!({ "spec": { "pullSecrets": ["s"] } })));
    let hash = list.labels()[REVISION_HASH].clone();
    let Plan::Work(work) = plan(&observed(list, &[])) else {
        panic!()
    };
    let job = &work.create[0];
    assert_eq!(
        job["spec"],
        json!({ "image": "a", "parallelism": 2, "completionPolicy": { "type": "Always" }, "pullSecrets": ["s"] })
    );
    assert_eq!(job["metadata"]["generateName"], "l-");
    assert_eq!(job["metadata"]["labels"], json!({ REVISION_HASH: hash }));
    assert_eq!(
        job["metadata"]["ownerReferences"][0]["apiVersion"],
        "apps.kruise.io/v1beta1"
    );
}

/// Changes of a list, and the plan.
#[rstest]
#[case::without_its_hash(json!({}), false, "Label")]
#[case::being_deleted(json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:00Z" } }), true, "Rest(None)")]
#[case::never_over(json!({ "spec": { "completionPolicy": { "type": "Never" } } }), true, "Work")]
#[case::over(json!({ "status": { "desired": 1, "completionTime": "1970-01-01T00:16:30Z" } }), true, "Rest(None)")]
#[case::over_for_a_time(
    json!({ "status": { "desired": 1, "completionTime": "1970-01-01T00:16:30Z" },
        "spec": { "completionPolicy": { "ttlSecondsAfterFinished": 12 } } }), true, "Rest(Some(2s))"
)]
#[case::over_for_long(
    json!({ "status": { "desired": 1, "completionTime": "1970-01-01T00:16:30Z" },
        "spec": { "completionPolicy": { "ttlSecondsAfterFinished": 10 } } }), true, "Remove"
)]
fn lists(#[case] changes: Value, #[case] is_hashed: bool, #[case] expect: &str) {
    let list = list(&["a"], &changes);
    let list = if is_hashed { hashed(list) } else { list };
    let plan = plan(&observed(list, &["a 1/0/1/0"]));
    assert!(format!("{plan:?}").starts_with(expect), "{plan:?}");
    if let Plan::Work(work) = plan {
        assert_eq!(work.status.completion_time, None, "a list that is never over");
    }
}
