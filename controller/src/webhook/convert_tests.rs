//! Conversion reviews and their answers.

use rstest::rstest;

use super::*;

fn object(version: &str, kind: &str) -> Value {
    json!({ "apiVersion": format!("apps.kruise.io/{version}"), "kind": kind, "metadata": { "name": "s" } })
}

/// The version and kind of an object, the version that is asked for, and the answer.
#[rstest]
#[case::to_the_stored_one(
    "v1alpha1",
    "DaemonSet",
    "apps.kruise.io/v1beta1",
    Ok("apps.kruise.io/v1beta1")
)]
#[case::to_the_older_one(
    "v1beta1",
    "DaemonSet",
    "apps.kruise.io/v1alpha1",
    Ok("apps.kruise.io/v1alpha1")
)]
#[case::as_it_is(
    "v1beta1",
    "DaemonSet",
    "apps.kruise.io/v1beta1",
    Ok("apps.kruise.io/v1beta1")
)]
#[case::another_version(
    "v1beta1",
    "DaemonSet",
    "apps.kruise.io/v2",
    Err("DaemonSet has no version apps.kruise.io/v2")
)]
#[case::another_group(
    "v1beta1",
    "DaemonSet",
    "apps/v1beta1",
    Err("DaemonSet has no version apps/v1beta1")
)]
#[case::by_name_alone(
    "v1alpha1",
    "StatefulSet",
    "apps.kruise.io/v1beta1",
    Ok("apps.kruise.io/v1beta1")
)]
#[case::of_one_version(
    "v1beta1",
    "CloneSet",
    "apps.kruise.io/v1alpha1",
    Err("CloneSet has no version apps.kruise.io/v1beta1")
)]
#[case::another_kind(
    "v1beta1",
    "Bogus",
    "apps.kruise.io/v1alpha1",
    Err("there is no conversion of apps.kruise.io, Kind=Bogus")
)]
fn answers(
    #[case] version: &str,
    #[case] kind: &str,
    #[case] wanted: &str,
    #[case] expect: Result<&str, &str>,
) {
    let review = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": wanted, "objects": [object(version, kind)] } });
    let answer = convert(&review);
    assert_eq!(
        (&answer["kind"], &answer["response"]["uid"]),
        (&json!("ConversionReview"), &json!("u"))
    );
    let response = &answer["response"];
    match expect {
        Ok(version) => {
            assert_eq!(response["result"]["status"], "Success");
            assert_eq!(response["convertedObjects"][0]["apiVersion"], version);
        }
        Err(message) => {
            assert_eq!(
                response["result"],
                json!({ "status": "Failure", "message": message })
            );
            assert_eq!(response["convertedObjects"], json!([]));
        }
    }
}

#[test]
fn a_review_without_a_request_is_answered() {
    assert_eq!(convert(&Value::Null)["response"]["result"]["status"], "Success");
}
