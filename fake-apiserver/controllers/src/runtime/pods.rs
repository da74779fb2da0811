//! The facts that a pod's fields say of it.

use machinery::meta::{ObjectMeta as _, list, text};
use shared_json::Value;

use super::is_true;

/// Whether the pod has ended.
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "status.phase"), "Succeeded" | "Failed")
}

/// Whether the pod counts: it has not ended and is not about to be removed.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !pod.is_terminating()
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    is_true(pod, "Ready")
}

/// The claim's name in a pod's status: none if the status has no entry yet, and no name if it needs no claim.
pub(crate) fn claim_name<'a>(pod: &'a Value, claim: &Value) -> Option<&'a str> {
    list(pod, "status.resourceClaimStatuses")
        .iter()
        .find(|status| text(status, "name") == text(claim, "name"))
        .map(|status| text(status, "resourceClaimName"))
}

/// The name of the object that one of a pod's claims is.
pub(crate) fn claim_object<'a>(pod: &'a Value, claim: &'a Value) -> Option<&'a str> {
    let named = text(claim, "resourceClaimName");
    let name = if named.is_empty() {
        claim_name(pod, claim)?
    } else {
        named
    };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"name": "x", "resourceClaimName": "mine"}), json!([]), Some("mine"))]
    #[case(json!({"name": "x", "resourceClaimTemplateName": "t"}), json!([]), None)]
    #[case(json!({"name": "x", "resourceClaimTemplateName": "t"}), json!([{"name": "x", "resourceClaimName": "p-x-1"}]), Some("p-x-1"))]
    #[case(json!({"name": "x", "resourceClaimTemplateName": "t"}), json!([{"name": "y", "resourceClaimName": "p-y-1"}]), None)]
    #[case(json!({"name": "x", "resourceClaimTemplateName": "t"}), json!([{"name": "x"}]), None)]
    fn names_of_objects(#[case] claim: Value, #[case] statuses: Value, #[case] expected: Option<&str>) {
        let pod = json!({"status": {"resourceClaimStatuses": statuses}});
        assert_eq!(claim_object(&pod, &claim), expected);
    }
}
