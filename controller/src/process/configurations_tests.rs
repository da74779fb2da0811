//! Configurations and definitions, as they are installed and as they are with a manager.

use rstest::rstest;

use super::*;

fn definition(kind: &str, strategy: &str) -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"group": "apps.kruise.io", "names": {"kind": kind},
        "conversion": {"strategy": strategy, "webhook": {"clientConfig": {"service": {"name": "other"}}}}}})
}

#[rstest]
#[case::of_a_kind_with_a_conversion("DaemonSet", "Webhook", true)]
#[case::without_a_webhook("DaemonSet", "None", false)]
#[case::of_versions_that_differ_by_name_alone("StatefulSet", "Webhook", true)]
fn definitions_are_told_who_converts(#[case] kind: &str, #[case] strategy: &str, #[case] changes: bool) {
    let service = Reach::Service {
        namespace: "kruise-system".to_owned(),
        name: "kruise-webhook-service".to_owned(),
    };
    let done = convertible(&definition(kind, strategy), "pem", &service);
    assert_eq!(done.is_some(), changes);
    let Some(done) = done else { return };
    assert_eq!(
        done["spec"]["conversion"]["webhook"],
        json!({"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": {"caBundle": "cGVt", "service": {
            "namespace": "kruise-system", "name": "kruise-webhook-service", "path": "/convert", "port": 443}}})
    );
    // Again, it changes nothing; another way to reach it takes the place of the first.
    assert_eq!(convertible(&done, "pem", &service), None);
    let url = convertible(&done, "pem", &Reach::Url("https://h:9/".to_owned())).unwrap();
    assert_eq!(
        url["spec"]["conversion"]["webhook"]["clientConfig"],
        json!({"caBundle": "cGVt", "url": "https://h:9/convert"})
    );
}

fn installed() -> Value {
    let webhook = |name: &str, path: &str| json!({"name": name, "clientConfig": {"service": {"namespace": "x", "name": "y", "path": path}}});
    json!({"metadata": {"name": "c"}, "webhooks": [
        webhook("mcloneset.kb.io", "/mutate-apps-kruise-io-v1alpha1-cloneset"),
        webhook("msidecarset.kb.io", "/mutate-apps-kruise-io-v1alpha1-sidecarset"),
        webhook("mworkloadspread.kb.io", "/mutate-apps-kruise-io-v1alpha1-workloadspread"),
    ]})
}

#[test]
fn serves_what_it_can_and_keeps_the_rest_for_later() {
    let service = Reach::Service {
        namespace: "kruise-system".to_owned(),
        name: "kruise-webhook-service".to_owned(),
    };
    let done = configured(&installed(), "pem", &service);
    let names: Vec<_> = done["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|webhook| &webhook["name"])
        .collect();
    // The path of the second is that of an installation before 1.9.
    assert_eq!(names, ["mcloneset.kb.io", "msidecarset.kb.io"]);
    assert_eq!(
        done["webhooks"][0]["clientConfig"],
        json!({"caBundle": "cGVt", "service": {"namespace": "kruise-system", "name": "kruise-webhook-service",
            "path": "/mutate-apps-kruise-io-v1alpha1-cloneset"}})
    );
    let kept: Value =
        serde_json::from_str(done["metadata"]["annotations"]["template"].as_str().unwrap()).unwrap();
    assert_eq!(kept, installed()["webhooks"]);
    // Again, it changes nothing, and another way to reach it starts from what was installed.
    assert_eq!(configured(&done, "pem", &service), done);
    assert!(same(&done, &configured(&done, "pem", &service)));
    let url = configured(&done, "pem", &Reach::Url("https://h:9/".to_owned()));
    assert_eq!(
        url["webhooks"][0]["clientConfig"],
        json!({"caBundle": "cGVt", "url": "https://h:9/mutate-apps-kruise-io-v1alpha1-cloneset"})
    );
    assert!(!same(&done, &url));
    assert!(!same(&installed(), &done));
}
