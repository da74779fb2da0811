//! What the tests share: requests as JSON, and a cluster on virtual time.

use fake_apiserver::Cluster;
use serde_json::Value;

/// Runs a test's body on a paused clock in a fresh thread whose entropy is seeded.
pub(crate) fn simulate<F>(body: impl FnOnce() -> F + Send)
where
    F: Future<Output = ()>,
{
    seeded_entropy::simulate(client_kit::Seed(1), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(body());
    });
}

/// A request's status code and body.
pub(crate) async fn request(cluster: &Cluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    send(cluster, method, path, "application/json", body).await
}

/// The same with a content type.
pub(crate) async fn send(
    cluster: &Cluster,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> (u16, Value) {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(kube::client::Body::from(bytes))
        .expect("a request");
    let response = cluster.client().send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a body");
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
