//! What a whole cluster does and this one does not yet.

use std::time::Duration;

use fake_apiserver::Cluster;
use serde_json::{Value, json};

use crate::support::{request, simulate};

/// A PKCS #10 request for `CN=someone`, in PEM, in base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITk1IUUNBUUF3RWpFUU1BNEdBMVVFQXd3SGMyOXRaVzl1WlRCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OQpBd0VIQTBJQUJIUjFyWURrMWUwYzdDRFptMW9FSUxtaC9FdG9aR3hJSFpYUEV4VmY5QTIrUlA1T1FpVkdRUThaCmFtL0F3YVlRaUVHUlZ2YWoySElvVDJPTlM0TGhTL0dnQURBS0JnZ3Foa2pPUFFRREFnTkpBREJHQWlFQWxCQ3MKOFl1b1ZiSWJiVFd5WHJ2aStQUGNVU3NEZUxjOXRiZFBHdmpaN2k0Q0lRQ213M1ZBMEFIcFd6a1RpUkVoM0JmYQowOFZReWhhQVYwVFpjZ3E2NlhzSGlBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

#[test]
fn nobody_signs_attaches_or_allocates() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
        });
        let path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
        let (code, answer) = request(&cluster, "POST", path, &claim).await;
        assert_eq!(code, 201, "{answer}");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "image": "nginx"}], "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
        });
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(code, 201, "{answer}");
        let path_of_requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
            "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "request": REQUEST},
        });
        let (code, mut csr) = request(&cluster, "POST", path_of_requests, &csr).await;
        assert_eq!(code, 201, "{csr}");
        csr["status"]["conditions"] =
            json!([{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]);
        let approval = format!("{path_of_requests}/r/approval");
        let (code, answer) = request(&cluster, "PUT", &approval, &csr).await;
        assert_eq!(code, 200, "{answer}");
        cluster.run_for(Duration::from_secs(60)).await;
        let get = async |path: &str| request(&cluster, "GET", path, &Value::Null).await.1;
        assert_eq!(get(&format!("{path}/c")).await["status"].get("allocation"), None);
        assert_eq!(
            get("/api/v1/namespaces/default/pods/p").await["status"]["phase"],
            "Running"
        );
        let csr = get(&format!("{path_of_requests}/r")).await;
        assert_eq!(
            (
                &csr["status"]["conditions"][0]["type"],
                csr["status"].get("certificate")
            ),
            (&json!("Approved"), None)
        );
        let attachments = get("/apis/storage.k8s.io/v1/volumeattachments").await;
        assert_eq!(attachments["items"], json!([]));
    });
}

/// The real server puts `exempt` and `catch-all` back, and reads certificate requests.
#[test]
fn what_is_taken_as_it_comes() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let exempt = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "exempt"},
            "spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 7, "lendablePercent": 3}},
        });
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
        let (code, answer) = request(&cluster, "POST", path, &exempt).await;
        assert_eq!(code, 201, "{answer}");
        let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KQUFBQQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
            "spec": {"signerName": "example.com/s", "usages": ["client auth"], "request": pem},
        });
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let (code, answer) = request(&cluster, "POST", path, &csr).await;
        assert_eq!(code, 201, "{answer}");
    });
}
