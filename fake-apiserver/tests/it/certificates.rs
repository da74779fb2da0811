//! Requests for certificates, in a cluster of this process.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, simulate};

/// A PKCS #10 request for `CN=someone`, in PEM, in base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITk1IUUNBUUF3RWpFUU1BNEdBMVVFQXd3SGMyOXRaVzl1WlRCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OQpBd0VIQTBJQUJIUjFyWURrMWUwYzdDRFptMW9FSUxtaC9FdG9aR3hJSFpYUEV4VmY5QTIrUlA1T1FpVkdRUThaCmFtL0F3YVlRaUVHUlZ2YWoySElvVDJPTlM0TGhTL0dnQURBS0JnZ3Foa2pPUFFRREFnTkpBREJHQWlFQWxCQ3MKOFl1b1ZiSWJiVFd5WHJ2aStQUGNVU3NEZUxjOXRiZFBHdmpaN2k0Q0lRQ213M1ZBMEFIcFd6a1RpUkVoM0JmYQowOFZReWhhQVYwVFpjZ3E2NlhzSGlBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request to a signer for usages, its approval or denial, and the result: its conditions, and whether there is a certificate.
#[track_caller]
fn check(signer: &str, usages: &[&str], decision: &str, expected: &str) {
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let spec = json!({"signerName": signer, "usages": usages, "request": REQUEST});
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
            "spec": spec,
        });
        let (code, mut csr) = request(&cluster, "POST", REQUESTS, &csr).await;
        assert_eq!(code, 201, "{csr}");
        if !decision.is_empty() {
            csr["status"]["conditions"] =
                json!([{"type": decision, "status": "True", "reason": "x", "message": "x"}]);
            let (code, answer) = request(&cluster, "PUT", &format!("{REQUESTS}/r/approval"), &csr).await;
            assert_eq!(code, 200, "{answer}");
        }
        cluster.run_for(Duration::from_secs(60)).await;
        let (_, csr) = request(&cluster, "GET", &format!("{REQUESTS}/r"), &Value::Null).await;
        let mut words: Vec<String> = Vec::new();
        for condition in csr["status"]["conditions"].as_array().into_iter().flatten() {
            words.extend(condition["type"].as_str().map(str::to_owned));
        }
        if let Some(certificate) = csr["status"]["certificate"].as_str() {
            let pem = STANDARD.decode(certificate).expect("base64");
            assert!(pem.starts_with(b"-----BEGIN CERTIFICATE-----\n"));
            words.push("signed".to_owned());
        }
        *slot = words.join(" ");
    });
    assert_eq!(found, expected, "{signer} {usages:?} {decision}");
}

#[test]
fn what_is_approved_is_signed() {
    let client = "kubernetes.io/kube-apiserver-client";
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    let serving = "kubernetes.io/kubelet-serving";
    check(client, &["client auth"], "", "");
    check(client, &["client auth"], "Approved", "Approved signed");
    check(client, &["client auth"], "Denied", "Denied");
    check(client, &["server auth"], "Approved", "Approved Failed");
    check(kubelet, &["client auth", "digital signature"], "", "");
    check(
        kubelet,
        &["client auth", "digital signature"],
        "Approved",
        "Approved Failed",
    );
    check(
        serving,
        &["server auth", "digital signature"],
        "Approved",
        "Approved Failed",
    );
    check("e.com/signer", &["client auth"], "Approved", "Approved");
}

/// Whether a request still exists after so many hours: it goes an hour after it has been answered, a day after it has not.
#[track_caller]
fn stays(decision: &str, usage: &str, hours: u64, expected: bool) {
    let mut found = false;
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let spec = json!({"signerName": "kubernetes.io/kube-apiserver-client", "usages": [usage], "request": REQUEST});
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
            "spec": spec,
        });
        let (code, mut csr) = request(&cluster, "POST", REQUESTS, &csr).await;
        assert_eq!(code, 201, "{csr}");
        if !decision.is_empty() {
            csr["status"]["conditions"] =
                json!([{"type": decision, "status": "True", "reason": "x", "message": "x"}]);
            let (code, answer) = request(&cluster, "PUT", &format!("{REQUESTS}/r/approval"), &csr).await;
            assert_eq!(code, 200, "{answer}");
        }
        cluster.run_for(Duration::from_secs(hours * 3600 + 60)).await;
        let (code, _) = request(&cluster, "GET", &format!("{REQUESTS}/r"), &Value::Null).await;
        *slot = code == 200;
    });
    assert_eq!(found, expected, "{decision} {usage} after {hours} h");
}

#[test]
fn requests_that_are_over_go() {
    stays("", "client auth", 23, true);
    stays("", "client auth", 24, false);
    stays("Approved", "client auth", 0, true);
    stays("Approved", "client auth", 1, false);
    stays("Approved", "server auth", 0, true);
    stays("Approved", "server auth", 1, false);
    stays("Denied", "client auth", 0, true);
    stays("Denied", "client auth", 1, false);
}
