//! Programs of images that are known by name.

use std::time::Duration;

use fake_apiserver::Cluster;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, simulate};

const SECRET: &str = "/api/v1/namespaces/default/secrets/s";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Runs certgen in pods, one after the other, beside a webhook configuration. Gives the phase of each pod, the keys of the Secret and
/// the values in the configuration: whether its authority is the Secret's, and its failure policy.
fn runs(lines: &[(&str, &str)]) -> (Vec<String>, Vec<String>, (bool, String)) {
    let mut found = None;
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let hook = json!({
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"service": {"name": "web", "namespace": "default"}},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
        });
        let hooks = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hooks"}, "webhooks": [hook],
        });
        let (code, answer) = request(&cluster, "POST", HOOKS, &hooks).await;
        assert_eq!(code, 201, "{answer}");
        let mut phases = Vec::new();
        for (number, (line, more)) in lines.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').chain(more.split_whitespace()).collect();
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}")},
                "spec": {"restartPolicy": "Never", "containers": [{
                    "name": "c", "image": "registry.k8s.io/ingress-nginx/kube-webhook-certgen:v1.6.9", "args": words,
                    "env": [{"name": "NS", "value": "default"}],
                }]},
            });
            let pods = "/api/v1/namespaces/default/pods";
            let (code, answer) = request(&cluster, "POST", pods, &pod).await;
            assert_eq!(code, 201, "{answer}");
            cluster.run_for(Duration::from_secs(20)).await;
            let (_, pod) = request(&cluster, "GET", &format!("{pods}/p{number}"), &Value::Null).await;
            phases.push(pod["status"]["phase"].as_str().unwrap_or_default().to_owned());
        }
        let (_, secret) = request(&cluster, "GET", SECRET, &Value::Null).await;
        let keys = secret["data"].as_object().into_iter().flatten();
        let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
        let (_, hooks) = request(&cluster, "GET", &format!("{HOOKS}/hooks"), &Value::Null).await;
        let hook = &hooks["webhooks"][0];
        let bundle = &hook["clientConfig"]["caBundle"];
        let trusts = bundle.is_string() && *bundle == secret["data"]["ca"];
        let policy = hook["failurePolicy"].as_str().unwrap_or_default().to_owned();
        *slot = Some((phases, keys, (trusts, policy)));
    });
    found.expect("a run")
}

const CREATE: &str = "create --host=web,web.default.svc --namespace=$(NS) --secret-name=s";
const PATCH: &str = "patch --webhook-name=hooks --namespace=$(NS) --secret-name=s --patch-mutating=false";

#[rstest]
#[case(&[(CREATE, "")], "Succeeded", "ca cert key", (false, "Ignore"))]
#[case(&[(CREATE, ""), (CREATE, "")], "Succeeded Succeeded", "ca cert key", (false, "Ignore"))]
#[case(&[(CREATE, "--cert-name=tls.crt --key-name=tls.key")], "Succeeded", "ca tls.crt tls.key", (false, "Ignore"))]
#[case(&[(CREATE, ""), (PATCH, "")], "Succeeded Succeeded", "ca cert key", (true, "Ignore"))]
#[case(&[(CREATE, ""), (PATCH, "--patch-failure-policy=Fail")], "Succeeded Succeeded", "ca cert key", (true, "Fail"))]
#[case(&[(CREATE, ""), (PATCH, "--patch-failure-policy=Never")], "Succeeded Failed", "ca cert key", (false, "Ignore"))]
// There is no MutatingWebhookConfiguration of that name; the other one has been patched by then.
#[case(&[(CREATE, ""), ("patch --webhook-name=hooks --namespace=default --secret-name=s", "")], "Succeeded Failed", "ca cert key", (true, "Ignore"))]
#[case(&[(PATCH, "")], "Failed", "", (false, "Ignore"))]
#[case(&[("create --namespace=default --secret-name=s", "")], "Failed", "", (false, "Ignore"))]
#[case(&[("renew", "")], "Failed", "", (false, "Ignore"))]
fn certgen(
    #[case] lines: &[(&str, &str)],
    #[case] phases: &str,
    #[case] keys: &str,
    #[case] (trusts, policy): (bool, &str),
) {
    let (found_phases, found_keys, found_hook) = runs(lines);
    assert_eq!(found_phases.join(" "), phases);
    assert_eq!(found_keys.join(" "), keys);
    assert_eq!(found_hook, (trusts, policy.to_owned()));
}

/// The same seed gives the same certificates.
#[test]
fn certificates_follow_from_the_seed() {
    let certificates = || {
        let mut found = Value::Null;
        let slot = &mut found;
        simulate(move || async move {
            let cluster = Cluster::builder()
                .seed(3)
                .nodes(1)
                .start()
                .await
                .expect("a cluster");
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"restartPolicy": "Never", "containers": [{
                    "name": "c", "image": "kube-webhook-certgen", "args": ["create", "--host=a", "--namespace=default", "--secret-name=s"],
                }]},
            });
            request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
            cluster.run_for(Duration::from_secs(20)).await;
            *slot = request(&cluster, "GET", SECRET, &Value::Null).await.1["data"].clone();
        });
        found
    };
    let first = certificates();
    assert!(first["ca"].is_string(), "{first}");
    assert_eq!(first, certificates());
}
