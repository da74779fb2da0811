//! The ConfigMap by which other API servers know this one's certificate.

use kube::Client;
use pki::{Authority, FRONT_PROXY, FrontProxy};
use shared_json::json;

use super::bootstrap::create;
use super::error::ClusterError;

/// Writes `kube-system/extension-apiserver-authentication`. One that is there from an earlier start is replaced, as its certificates
/// are not those of this start.
pub(super) async fn publish(
    client: &Client,
    authority: Option<&Authority>,
    proxy: &FrontProxy,
) -> Result<(), ClusterError> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "extension-apiserver-authentication"},
        "data": {
            "client-ca-file": authority.and_then(Authority::pem).unwrap_or_default(),
            "requestheader-allowed-names": json!([FRONT_PROXY]).to_string(),
            "requestheader-client-ca-file": proxy.authority_pem(),
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-uid-headers": r#"["X-Remote-Uid"]"#,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
        },
    });
    create(client, &map, Some("kube-apiserver"), true).await
}
