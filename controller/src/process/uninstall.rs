//! The check before an uninstallation: workloads that are left would be deleted with their definitions, and their pods with them.

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};

use super::ProcessError;
use crate::workloads::LOST_WITH_DEFINITIONS;

/// Fails if there are workloads. A kind that is not served has none.
pub(super) async fn check(client: &Client) -> Result<(), ProcessError> {
    for (kind, name) in LOST_WITH_DEFINITIONS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(list) if list.items.is_empty() => {}
            Ok(_) => return Err(ProcessError::InUse(name)),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(ProcessError::request(&format!("list {name}"), error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::{Request, Response, StatusCode};
    use kube::client::Body;
    use rstest::rstest;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// Resources that are not served, resources with an object, and the refusal.
    #[rstest]
    #[case(&[], &[], None)]
    #[case(&["daemonsets"], &[], None)]
    #[case(&["clonesets", "statefulsets", "daemonsets"], &[], None)]
    #[case(&[], &["clonesets", "daemonsets"], Some("there still exists some clonesets in the cluster"))]
    #[case(&["clonesets"], &["statefulsets"], Some("there still exists some advanced statefulsets in the cluster"))]
    #[case(&[], &["daemonsets"], Some("there still exists some advanced daemonsets in the cluster"))]
    #[tokio::test]
    async fn workloads_that_are_left(
        #[case] absent: &'static [&'static str],
        #[case] left: &'static [&'static str],
        #[case] refusal: Option<&str>,
    ) {
        let server = service_fn(move |request: Request<Body>| {
            let path = request
                .uri()
                .path()
                .trim_start_matches("/apis/apps.kruise.io/v1alpha1/");
            let (code, answer) = if absent.contains(&path) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
                (StatusCode::NOT_FOUND, status)
            } else {
                let object = json!({"metadata": {"name": "a", "namespace": "default"}});
                let items: Vec<_> = left.contains(&path).then_some(object).into_iter().collect();
                (
                    StatusCode::OK,
                    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": items}),
                )
            };
            let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = code;
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let error = check(&Client::new(server, "default")).await.err();
        assert_eq!(error.map(|error| error.to_string()).as_deref(), refusal);
    }
}
