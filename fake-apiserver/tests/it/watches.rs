//! Watches: replayed events, selectors, bookmarks and refusals. Each ends by its own timeout.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

const WATCH: &str = "GET /api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1";

/// `a` is created, changed and deleted, `b` created; `$before` is the version before all of that.
fn history(steps: &[Value]) -> Value {
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut all = vec![
        json!({"do": format!("GET {maps}"), "save": {"before": "/metadata/resourceVersion"}}),
        json!({"do": format!("POST {maps}"), "body": {"metadata": {"name": "a", "labels": {"x": "1"}}}, "code": 201,
            "save": {"first": "/metadata/resourceVersion"}}),
        json!({"do": format!("PATCH {maps}/a"), "type": "merge", "body": {"metadata": {"labels": {"x": "2"}}}}),
        json!({"do": format!("POST {maps}"), "body": {"metadata": {"name": "b", "labels": {"x": "1"}}}, "code": 201}),
        json!({"do": format!("DELETE {maps}/a")}),
    ];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

fn sees(query: &str, events: &[&str]) -> Value {
    json!({"do": format!("{WATCH}{query}"), "events": events})
}

#[rstest]
#[case::from_a_version(history(&[
    sees("&resourceVersion=$before", &["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"]),
    sees("&resourceVersion=$first", &["MODIFIED a", "ADDED b", "DELETED a"]),
]))]
#[case::from_now(history(&[sees("", &["ADDED b"]), sees("&resourceVersion=0", &["ADDED b"])]))]
#[case::a_label_that_comes_and_goes(history(&[
    sees("&resourceVersion=$before&labelSelector=x%3D1", &["ADDED a", "DELETED a", "ADDED b"]),
    sees("&resourceVersion=$before&labelSelector=x%3D2", &["ADDED a", "DELETED a"]),
]))]
#[case::one_object(history(&[sees("&resourceVersion=$before&fieldSelector=metadata.name%3Db", &["ADDED b"])]))]
#[case::a_streaming_list(history(&[
    sees("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", &["ADDED b", "BOOKMARK"]),
    sees("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", &[]),
]))]
#[case::a_bad_streaming_list(json!([
    {"do": format!("{WATCH}&sendInitialEvents=true"), "code": 422, "has": {"/details/causes/0/field": "resourceVersionMatch"}},
]))]
#[case::the_old_path(history(&[json!({
    "do": "GET /api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1", "events": ["ADDED b"],
})]))]
#[case::bookmarks(json!([
    {"do": "GET /api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=150&allowWatchBookmarks=true", "events": ["BOOKMARK", "BOOKMARK", "BOOKMARK", "BOOKMARK"]},
]))]
#[case::the_last_bookmark(json!([
    {"do": "GET /api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1&timeoutSeconds=10&allowWatchBookmarks=true", "events": ["BOOKMARK"]},
    {"do": "GET /api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1&timeoutSeconds=2&allowWatchBookmarks=true", "events": []},
    {"do": "GET /api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1&timeoutSeconds=10", "events": []},
]))]
#[case::from_what_is_compacted(history(&[
    json!({"wait": 299, "do": "GET /api/v1/namespaces/default/configmaps"}),
    sees("&resourceVersion=$before", &["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"]),
    json!({"wait": 301, "do": format!("{WATCH}&resourceVersion=$before"), "events": ["ERROR Expired"]}),
    // Where nothing has happened since, nothing is missed.
    json!({"do": "GET /api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=1&resourceVersion=$before", "events": []}),
]))]
fn watches(#[case] steps: Value) {
    play(false, steps);
}
