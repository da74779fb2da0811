//! Namespaces that have pods or claims.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use crate::kit::admission::{Refusal, Request};
use crate::kit::protection::{Protection, protected};
use crate::metrics::Family;
use crate::pods::pod::{self, Pod};

/// The metric of refusals.
pub(super) const REFUSALS: Family = (
    "namespace_deletion_protection",
    "counter",
    "Number of times that a Namespace was protected from deletion",
);

/// Answers the deletion of a Namespace.
///
/// # Errors
/// The refusal.
pub(super) async fn answer(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let Some((_, protection)) = protected(request) else {
        return Ok(None);
    };
    let refusal = match protection {
        Protection::Always => Some(protection.refusal()),
        Protection::Cascading => in_use(request).await,
    };
    let Some(text) = refusal else { return Ok(None) };
    let pairs = [("name", request.name), ("username", request.user)];
    request.surroundings.metrics.add(REFUSALS.0, &pairs, 1.0);
    Err(Refusal::new(403, text))
}

/// Why a Namespace that has pods or claims stays.
async fn in_use(request: &Request<'_>) -> Option<String> {
    let client = request.surroundings.client.as_ref()?;
    let failed = |kind: &str, error: kube::Error| {
        Some(format!(
            "forbidden by ResourcesProtectionDeletion for list {kind} error: {error}"
        ))
    };
    let params = ListParams::default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), request.name);
    let pods = match pods.list(&params).await {
        Ok(list) => active(&list.items),
        Err(error) => return failed("pods", error),
    };
    if pods > 0 {
        return refusal(pods, 0);
    }
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), request.name);
    match claims.list(&params).await {
        Ok(list) => refusal(0, bound(&list.items)),
        Err(error) => failed("pvc", error),
    }
}

/// How many pods neither ended nor terminate.
fn active(pods: &[Pod]) -> usize {
    pods.iter().filter(|pod| pod::is_active(pod)).count()
}

/// How many claims have a volume and do not terminate.
fn bound(claims: &[PersistentVolumeClaim]) -> usize {
    let phase = |claim: &PersistentVolumeClaim| claim.status.as_ref()?.phase.clone();
    let is_bound = |claim: &&PersistentVolumeClaim| {
        claim.metadata.deletion_timestamp.is_none() && phase(claim).as_deref() == Some("Bound")
    };
    claims.iter().filter(is_bound).count()
}

/// The refusal for a Namespace with so many pods and claims.
fn refusal(pods: usize, claims: usize) -> Option<String> {
    let text = Protection::Cascading.refusal();
    match (pods, claims) {
        (0, 0) => None,
        (0, claims) => Some(format!("{text} and \"Bound\" status pvc {claims}>0")),
        (pods, _) => Some(format!("{text} and active pods {pods}>0")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn claim(phase: &str, terminates: bool) -> PersistentVolumeClaim {
        let time = terminates.then_some("2026-01-01T00:00:00Z");
        let metadata = json!({ "name": "c", "deletionTimestamp": time });
        serde_json::from_value(json!({ "metadata": metadata, "status": { "phase": phase } })).unwrap()
    }

    fn terminating() -> TestPod {
        TestPod::new("p").set("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
    }

    /// Rows 10 to 14.
    #[rstest]
    #[case::row_10(vec![TestPod::new("p")], vec![], Some("and active pods 1>0"))]
    #[case::row_11(vec![TestPod::new("p").phase("Succeeded"), TestPod::new("q").phase("Succeeded")], vec![], None)]
    #[case::row_12(vec![terminating()], vec![claim("Bound", false)], Some("and \"Bound\" status pvc 1>0"))]
    #[case::row_13(vec![], vec![claim("Pending", false)], None)]
    #[case::row_14(vec![TestPod::new("p")], vec![claim("Bound", false)], Some("and active pods 1>0"))]
    #[case::a_claim_that_ends(vec![], vec![claim("Bound", true)], None)]
    fn what_keeps_a_namespace(
        #[case] pods: Vec<TestPod>,
        #[case] claims: Vec<PersistentVolumeClaim>,
        #[case] want: Option<&str>,
    ) {
        let pods: Vec<Pod> = pods.into_iter().map(TestPod::build).collect();
        let got = refusal(active(&pods), bound(&claims));
        let prefix =
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading ";
        let got = got.map(|text| text.strip_prefix(prefix).unwrap().to_owned());
        assert_eq!(got.as_deref(), want);
    }
}
