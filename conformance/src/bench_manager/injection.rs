//! How long the webhook for new pods takes with many SidecarSets: reviews sent to it as a server sends them, one after the other.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Client;
use kube::api::{Api, ListParams};
use shared_json::{Value, json};

use super::defect;
use super::loads::NAMESPACE;
use crate::bench_api::client_of;
use crate::error::Error;
use crate::report::stopwatch::Stopwatch;

/// How many SidecarSets there are.
pub(super) const SETS: usize = 50;
/// How many reviews are sent, and how many before them that are not measured.
const REVIEWS: usize = 1_000;
const BEFORE: usize = 100;
/// How many characters of a wrong answer are told.
const SHOWN: usize = 200;
const POD_WEBHOOK: &str = "mpod.kb.io";

/// The times of reviews, from the shortest to the longest.
pub(super) struct Times(Vec<Duration>);

impl Times {
    /// The time that so many of a thousand reviews do not exceed.
    pub(super) fn within(&self, of_thousand: usize) -> Duration {
        let at = (self.0.len() * of_thousand).div_ceil(1_000).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// Sends reviews of a new pod that all of [`SETS`] sets select.
///
/// # Errors
/// If the cluster has no such webhook that is reached by a URL, or it does not inject all sidecars.
pub(super) async fn measure(client: &Client) -> Result<Times, Error> {
    let (webhook, path) = pod_webhook(client).await?;
    let body = review().to_string().into_bytes();
    let mut times = Vec::new();
    for number in 0..BEFORE + REVIEWS {
        let request = http::Request::post(&path)
            .header("content-type", "application/json")
            .body(body.clone())
            .map_err(|error| defect("make a review", error))?;
        let stopwatch = Stopwatch::start();
        let answer = webhook.request_text(request).await;
        let took = stopwatch.elapsed();
        let answer = answer.map_err(|error| defect("ask the webhook for pods", error))?;
        if number < BEFORE {
            check(&answer)?;
        } else {
            times.push(took);
        }
    }
    times.sort_unstable();
    Ok(Times(times))
}

/// A client of the webhook for new pods, and its path.
async fn pod_webhook(client: &Client) -> Result<(Client, String), Error> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let configurations = configurations.list(&ListParams::default()).await;
    let configurations = configurations.map_err(|error| defect("list webhooks", error))?;
    let webhooks = configurations
        .items
        .into_iter()
        .flat_map(|all| all.webhooks.unwrap_or_default());
    let mut of_pods = webhooks.filter(|webhook| webhook.name == POD_WEBHOOK);
    let found = of_pods.next().map(|webhook| webhook.client_config);
    let found = found.and_then(|config| config.url.zip(config.ca_bundle));
    let (url, authority) = found.ok_or_else(|| defect("find the webhook for pods", "none has a URL"))?;
    let url: http::Uri = url
        .parse()
        .map_err(|error| defect("read a webhook's URL", error))?;
    let host = url.authority().map(ToString::to_string).unwrap_or_default();
    let kubeconfig = json!({
        "clusters": [{"name": "webhook", "cluster": {
            "server": format!("https://{host}"),
            "certificate-authority-data": BASE64_STANDARD.encode(authority.0),
        }}],
        "users": [{"name": "server", "user": {}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "server"}}],
        "current-context": "webhook",
    });
    let kubeconfig = shared_json::from_value(kubeconfig);
    let client = client_of(kubeconfig.map_err(|error| defect("write a kubeconfig", error))?).await?;
    Ok((client, url.path().to_owned()))
}

fn review() -> Value {
    let metadata = json!({"name": "plain-0", "namespace": NAMESPACE, "labels": {"set": "plain"}});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "11111111-2222-3333-4444-555555555555",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "plain-0", "namespace": NAMESPACE, "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
            "dryRun": true,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"]},
            "object": {
                "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Always"},
            },
        },
    })
}

/// # Errors
/// If not all sidecars are in the answer.
fn check(answer: &str) -> Result<(), Error> {
    let wrong = |why: &str| {
        let beginning: String = answer.chars().take(SHOWN).collect();
        defect("inject sidecars", format!("{why}: {beginning}…"))
    };
    let answer: Value = shared_json::from_str(answer).map_err(|error| wrong(&error.to_string()))?;
    let patch = answer["response"]["patch"].as_str().unwrap_or_default();
    let patch = BASE64_STANDARD
        .decode(patch)
        .map_err(|error| wrong(&error.to_string()))?;
    let patch = String::from_utf8_lossy(&patch);
    // A patch may replace the image of a container that was there, and move that container behind the others.
    let injected = patch.matches(r#""sidecar:"#).count();
    match injected {
        SETS => Ok(()),
        _ => Err(wrong(&format!("{injected} of {SETS} sidecars"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_their_order() {
        let times = Times((1..=200).map(Duration::from_millis).collect());
        let within = |of_thousand| times.within(of_thousand).as_millis();
        assert_eq!((within(500), within(990), within(1_000)), (100, 198, 200));
        assert_eq!(Times(Vec::new()).within(500), Duration::ZERO);
    }

    #[test]
    fn an_answer_without_a_sidecar_is_an_error() {
        let answer = |added: usize, replaced: usize| {
            let add = vec![r#"{"op":"add","value":{"image":"sidecar:1","name":"side-1"}}"#; added];
            let replace = vec![r#"{"op":"replace","value":"sidecar:1"}"#; replaced];
            let patch = [add, replace].concat().join(",");
            json!({"response": {"allowed": true, "patch": BASE64_STANDARD.encode(patch)}}).to_string()
        };
        assert!(check(&answer(SETS, 0)).is_ok());
        assert!(check(&answer(SETS - 1, 1)).is_ok());
        let error = check(&answer(SETS - 1, 0)).unwrap_err().to_string();
        assert!(error.chars().count() < 2 * SHOWN, "{error}");
        assert!(check("{}").is_err());
    }
}
