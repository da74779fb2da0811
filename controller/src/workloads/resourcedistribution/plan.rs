//! Plans one namespace: create, update or delete the copy, or fail.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Preconditions;
use serde_json::{Value, json};

use super::copy::{copy, differ, is_copy_of};
use super::status::{Failure, FailureKind};
use crate::api::v1alpha1::ResourceDistribution;

/// The text of a namespace in which nothing can be.
const NO_NAMESPACE: &str = "namespace not found or is terminating";
/// The text of an object that somebody else has made.
const CONFLICT: &str =
    "conflict with existing resources because of the same namespace, group, version, kind and name";

/// An object that has the name and the kind of a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// Its metadata.
    pub(super) metadata: &'a ObjectMeta,
    /// The whole object; it is only known of copies.
    pub(super) object: Option<&'a Value>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Nothing: it is as it should be.
    Nothing,
    /// Create this object.
    Create(Value),
    /// Replace the copy with this object, which names the version of the copy.
    Update(Value),
    /// Delete the copy, if it is still this one.
    Delete(Preconditions),
    /// Nothing can be done.
    Fail(Failure),
}

fn is_open(namespace: Option<&Namespace>) -> bool {
    namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_none())
}

/// Plans a namespace that the targets match.
pub(super) fn distribute(
    distribution: &ResourceDistribution,
    name: &str,
    namespace: Option<&Namespace>,
    found: Option<Found<'_>>,
) -> Step {
    let fail = |kind, text: &str| Step::Fail(Failure::new(kind, name, text));
    if !is_open(namespace) {
        return fail(FailureKind::NamespaceNotExists, NO_NAMESPACE);
    }
    let Some(found) = found else {
        return Step::Create(copy(distribution, name, None));
    };
    let old = found.object.filter(|_| is_copy_of(distribution, found.metadata));
    let Some(old) = old else {
        return fail(FailureKind::ConflictOccurred, CONFLICT);
    };
    if differ(old, &distribution.spec.resource) {
        let mut new = copy(distribution, name, Some(old));
        // OpenKruise names no version, and replaces an object that somebody else has taken over meanwhile.
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert(
                "resourceVersion".to_owned(),
                json!(found.metadata.resource_version),
            );
        }
        Step::Update(new)
    } else {
        Step::Nothing
    }
}

/// Plans a namespace that the targets do not match.
pub(super) fn clean(
    distribution: &ResourceDistribution,
    namespace: Option<&Namespace>,
    found: Option<Found<'_>>,
) -> Step {
    let own = found.filter(|found| is_copy_of(distribution, found.metadata));
    match own.filter(|_| is_open(namespace)) {
        None => Step::Nothing,
        // OpenKruise names neither, and deletes an object that somebody else has taken over meanwhile.
        Some(own) => Step::Delete(Preconditions {
            resource_version: own.metadata.resource_version.clone(),
            uid: own.metadata.uid.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn distribution() -> ResourceDistribution {
        serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
            "metadata": { "name": "rd", "uid": "u1" },
            "spec": { "targets": {}, "resource": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "conf" }, "data": { "a": "1" } } },
        }))
        .unwrap()
    }

    /// A namespace, or none, in which an object of this owner and this data is.
    fn check(
        namespace: &str,
        owner: &str,
        data: &str,
        step: &dyn Fn(Option<&Namespace>, Option<Found<'_>>) -> Step,
    ) -> &'static str {
        let deleted = (namespace == "terminating").then_some("2026-01-01T00:00:00Z");
        let metadata = json!({ "name": "a", "deletionTimestamp": deleted });
        let at: Option<Namespace> = (namespace != "missing")
            .then(|| serde_json::from_value(json!({ "metadata": metadata })).unwrap());
        let metadata = json!({ "name": "conf", "namespace": "a", "uid": "c", "resourceVersion": "7", "ownerReferences": [{
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": owner, "uid": "u1",
            "controller": true }] });
        let object =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "a": data } });
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
        let found = Found {
            metadata: &metadata,
            object: Some(&object),
        };
        match step(at.as_ref(), (owner != "absent").then_some(found)) {
            Step::Nothing => "nothing",
            Step::Create(object) if object["metadata"]["namespace"] == "a" => "create",
            Step::Update(object)
                if object["data"]["a"] == "1" && object["metadata"]["resourceVersion"] == "7" =>
            {
                "update"
            }
            Step::Delete(Preconditions {
                resource_version: Some(version),
                uid: Some(uid),
            }) if version == "7" && uid == "c" => "delete",
            Step::Fail(failure) => failure.kind.name(),
            Step::Create(_) | Step::Update(_) | Step::Delete(_) => "wrong object",
        }
    }

    #[rstest]
    #[case("open", "absent", "", "create")]
    #[case("open", "rd", "1", "nothing")]
    #[case("open", "rd", "hand", "update")]
    #[case("open", "other", "1", "ConflictOccurred")]
    #[case("missing", "absent", "", "NamespaceNotExists")]
    #[case("terminating", "absent", "", "NamespaceNotExists")]
    #[case("terminating", "rd", "1", "NamespaceNotExists")]
    fn in_a_namespace_that_is_to_have_a_copy(
        #[case] namespace: &str,
        #[case] owner: &str,
        #[case] data: &str,
        #[case] expected: &str,
    ) {
        let distribution = distribution();
        let step = |namespace: Option<&Namespace>, found: Option<Found<'_>>| {
            distribute(&distribution, "a", namespace, found)
        };
        assert_eq!(check(namespace, owner, data, &step), expected);
    }

    #[rstest]
    #[case("open", "absent", "nothing")]
    #[case("open", "rd", "delete")]
    #[case("open", "other", "nothing")]
    #[case("missing", "absent", "nothing")]
    #[case("terminating", "rd", "nothing")]
    fn in_a_namespace_that_is_to_have_none(
        #[case] namespace: &str,
        #[case] owner: &str,
        #[case] expected: &str,
    ) {
        let distribution = distribution();
        let step =
            |namespace: Option<&Namespace>, found: Option<Found<'_>>| clean(&distribution, namespace, found);
        assert_eq!(check(namespace, owner, "1", &step), expected);
    }
}
