//! The files of a pod's service account: its token, the certificate of the API server, its namespace.
//!
//! Every pod has a volume of them, and few look into it. So a token is asked for when a container's command, or one that is run in it,
//! names the folder, or its program is one in Rust; a volume that the pod itself describes is filled when it is mounted.

use std::sync::Arc;

use futures::FutureExt as _;
use kube::Client;
use machinery::meta::{ObjectMeta as _, at, text};
use shared_json::{Value, json};

use super::volumes::{Modes, put};
use crate::access::Preparation;
use crate::programs::{Files, Run, Volume};
use crate::status::items;

/// The folder of these files in every container.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What admission names the volume.
const NAME: &str = "kube-api-access-";
/// The account of pods that name none.
const DEFAULT: &str = "default";

/// Whether a volume is the one that every pod has.
pub(super) fn is_usual(volume: &Value) -> bool {
    text(volume, "name").starts_with(NAME)
}

/// Whether words of a command name the folder.
pub(super) fn is_named_in<'w>(words: impl IntoIterator<Item = &'w str>) -> bool {
    words
        .into_iter()
        .any(|word| word.contains("/run/secrets/kubernetes.io/"))
}

/// The work before a command runs in a container: if it names the folder, the volume is filled.
pub(in crate::kubelet) fn preparation(client: &Client) -> Preparation {
    let client = client.clone();
    Box::new(move |argv, pod, run| {
        if !is_named_in(argv.iter().map(String::as_str)) {
            return std::future::ready(()).boxed();
        }
        let (client, pod, run) = (client.clone(), pod.clone(), Arc::clone(run));
        async move { fill_of(&client, &pod, &run).await }.boxed()
    })
}

/// Fills the volume of a container that runs, if it is empty.
async fn fill_of(client: &Client, pod: &Value, run: &Run) {
    let Some(content) = run.files.volume_at(FOLDER) else {
        return;
    };
    if let Some(volume) = items(pod, "volumes").iter().find(|volume| is_usual(volume)) {
        fill(client, pod, volume, &content).await;
    }
}

/// Fills the volume that every pod has, if it is empty.
pub(super) async fn fill(client: &Client, pod: &Value, volume: &Value, content: &Volume) {
    let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
    if files.list("/v").is_ok_and(|names| !names.is_empty()) {
        return;
    }
    let modes = Modes::of_pod(pod, volume);
    let sources = at(volume, "projected.sources").and_then(Value::as_array);
    for source in sources.into_iter().flatten() {
        if let Some(asked) = source.get("serviceAccountToken") {
            put_token(client, pod, asked, &files, modes).await;
        }
        let name = at(source, "configMap.name").and_then(Value::as_str);
        if let Some(name) = name {
            let path = format!("/api/v1/namespaces/{}/configmaps/{name}", pod.namespace());
            let found = request(client, http::Request::get(path), Vec::new()).await;
            let certificate = found
                .as_ref()
                .and_then(|map| map.get("data")?.get("ca.crt")?.as_str());
            put(
                &files,
                "ca.crt",
                certificate.unwrap_or_default().as_bytes(),
                modes.of(&Value::Null),
            );
        }
    }
    put(
        &files,
        "namespace",
        pod.namespace().as_bytes(),
        modes.of(&Value::Null),
    );
}

/// Asks for a token that is bound to the pod, and writes it. A refused request leaves the file out.
pub(super) async fn put_token(client: &Client, pod: &Value, asked: &Value, files: &Files, modes: Modes) {
    let account = match text(pod, "spec.serviceAccountName") {
        "" => DEFAULT,
        name => name,
    };
    let path = format!(
        "/api/v1/namespaces/{}/serviceaccounts/{account}/token",
        pod.namespace()
    );
    let audiences: Vec<&str> = asked
        .get("audience")
        .and_then(Value::as_str)
        .into_iter()
        .collect();
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {
            "audiences": audiences,
            "expirationSeconds": asked.get("expirationSeconds").and_then(Value::as_u64).unwrap_or(3600),
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid()},
        },
    });
    let post = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    let made = request(client, post, body.to_string().into_bytes()).await;
    if let Some(token) = made.as_ref().and_then(|made| at(made, "status.token")?.as_str()) {
        put(
            files,
            text(asked, "path"),
            token.as_bytes(),
            modes.of(&Value::Null),
        );
    }
}

async fn request(client: &Client, builder: http::request::Builder, body: Vec<u8>) -> Option<Value> {
    let request = builder
        .header(http::header::USER_AGENT, "kubelet")
        .body(body)
        .ok()?;
    client.request::<Value>(request).await.ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["cat", "/var/run/secrets/kubernetes.io/serviceaccount/token"], true)]
    #[case(&["sh", "-c", "ls /run/secrets/kubernetes.io/"], true)]
    #[case(&["sleep", "600"], false)]
    fn the_folder_is_named(#[case] words: &[&str], #[case] expected: bool) {
        assert_eq!(is_named_in(words.iter().copied()), expected);
    }
}
