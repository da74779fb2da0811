//! The definitions that the API server serves: which controllers start, and which gates stay on.

use std::time::Duration;

use kube::Client;

use super::gates::FeatureGates;
use crate::workloads::{ALL, Crd, Options, Workload};

/// How often the definitions are asked for that have to be there.
const DEFINITION_RETRY: Duration = Duration::from_secs(2);
/// How long to wait before each further question for a definition that a gate needs (OpenKruise: the same, ±10 %).
const GATE_DEFINITION_RETRIES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_millis(2_500),
    Duration::from_millis(12_500),
];

/// The definitions of all kinds.
fn definitions() -> impl Iterator<Item = &'static Crd> {
    ALL.iter().flat_map(|workload| workload.crds)
}

/// A definition and its version in a message: an older installation has many of the definitions in older versions alone.
fn shown(definition: &Crd) -> String {
    let (version, _) = definition.resource();
    format!("{version} of CustomResourceDefinition {}", definition.name())
}

/// Waits until the API server serves the definitions that no gate switches. Gives the names of the kinds that are left out, as OpenKruise
/// leaves them out: the server has other kinds of their version, which an older installation brought. They count from the next start.
pub(super) async fn wait_for_definitions(client: &Client) -> Vec<&'static str> {
    let kinds = ALL.iter().copied();
    left_out(
        client,
        kinds,
        |definition| definition.gate.is_none(),
        Unknown::Waits,
    )
    .await
}

/// The names of the kinds whose controllers would start with these options, and whose definitions, which a gate switches, the API server
/// does not serve. As in OpenKruise a server that does not know the version is taken to serve them.
pub(super) async fn kinds_without_definition(client: &Client, options: &Options) -> Vec<&'static str> {
    let wanted = |definition: &Crd| definition.gate.is_some() && definition.is_installed(&options.gates);
    left_out(client, options.workloads(), wanted, Unknown::Counts).await
}

/// The treatment of a definition of a version that the API server does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// It is waited for.
    Waits,
    /// It counts as served.
    Counts,
}

/// The names of the kinds that have a wanted definition that is not served in the end. All that are missing are waited for together.
async fn left_out(
    client: &Client,
    kinds: impl Iterator<Item = &'static Workload>,
    is_wanted: impl Fn(&Crd) -> bool,
    unknown: Unknown,
) -> Vec<&'static str> {
    let mut wanted = Vec::new();
    for workload in kinds {
        let definitions = workload.crds.iter().filter(|definition| is_wanted(definition));
        wanted.extend(definitions.map(|definition| (workload.name, definition)));
    }
    let waits = wanted.into_iter().map(async |(kind, definition)| {
        let is_served = wait_for_definition(client, definition, unknown).await;
        if !is_served {
            tracing::warn!("{} is not served", shown(definition));
        }
        (!is_served).then_some(kind)
    });
    let left_out = futures::future::join_all(waits).await;
    left_out.into_iter().flatten().collect()
}

/// Waits for a definition whose version the API server serves. Whether it serves the definition in the end.
async fn wait_for_definition(client: &Client, definition: &Crd, unknown: Unknown) -> bool {
    let mut retries = GATE_DEFINITION_RETRIES.iter();
    let mut is_waiting = false;
    loop {
        let delay = match is_served(client, definition).await {
            Some(true) => return true,
            Some(false) => match retries.next() {
                Some(delay) => *delay,
                None => return false,
            },
            None if unknown == Unknown::Counts => return true,
            None => DEFINITION_RETRY,
        };
        if !std::mem::replace(&mut is_waiting, true) {
            tracing::info!("waiting for {}", shown(definition));
        }
        tokio::time::sleep(delay).await;
    }
}

/// Whether the API server serves a definition's resource; nothing if it does not say.
async fn is_served(client: &Client, definition: &Crd) -> Option<bool> {
    let (version, plural) = definition.resource();
    let list = client.list_api_group_resources(&version).await.ok()?;
    Some(list.resources.iter().any(|resource| resource.name == plural))
}

/// Switches off the gates that need a definition which the API server does not serve. As in OpenKruise, a server that does
/// not answer is taken to serve it, and a definition that comes later counts from the next start.
pub(super) async fn settle_gates(client: &Client, gates: &mut FeatureGates) {
    let mut missing: Vec<_> = definitions()
        .filter(|definition| definition.needed_by.iter().any(|gate| gates.is_on(gate)))
        .collect();
    let mut retries = GATE_DEFINITION_RETRIES.iter();
    loop {
        let mut not_served = Vec::new();
        for definition in missing {
            if is_served(client, definition).await == Some(false) {
                not_served.push(definition);
            }
        }
        missing = not_served;
        // All that are missing are waited for together.
        let Some(delay) = retries.next().filter(|_| !missing.is_empty()) else {
            break;
        };
        tokio::time::sleep(*delay).await;
    }
    for definition in missing {
        for gate in definition
            .needed_by
            .iter()
            .copied()
            .filter(|gate| gates.is_on(gate))
            .collect::<Vec<_>>()
        {
            tracing::warn!(gate, "off: {} is not served", shown(definition));
            gates.turn_off(gate);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::client::Body;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const PREDOWNLOAD: &str = "PreDownloadImageForInPlaceUpdate";

    /// The API server serves these resources of the two versions; the first questions are not answered.
    #[rstest]
    #[case::all("clonesets ephemeraljobs persistentpodstates uniteddeployments", "advancedcronjobs broadcastjobs daemonsets sidecarsets statefulsets", 0, &[], 0)]
    #[case::late("clonesets ephemeraljobs persistentpodstates uniteddeployments", "advancedcronjobs broadcastjobs daemonsets sidecarsets statefulsets", 2, &[], 2)]
    #[case::of_an_older_installation("clonesets ephemeraljobs persistentpodstates uniteddeployments", "advancedcronjobs broadcastjobs daemonsets statefulsets", 0, &["sidecarset"], 15)]
    #[case::several_are_waited_for_together("clonesets ephemeraljobs persistentpodstates uniteddeployments", "broadcastjobs daemonsets statefulsets", 0, &["advancedcronjob", "sidecarset"], 15)]
    #[tokio::test(start_paused = true)]
    async fn kinds_without_a_definition_are_left_out(
        #[case] alpha: &'static str,
        #[case] beta: &'static str,
        #[case] unanswered: usize,
        #[case] want: &[&str],
        #[case] seconds: u64,
    ) {
        let asked = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let is_beta = request.uri().path().ends_with("v1beta1");
            let names = if is_beta { beta } else { alpha };
            let resources: Vec<_> = names
                .split_whitespace()
                .map(|name| json!({"name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": []}))
                .collect();
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "x/v1", "resources": resources});
            let is_answered = asked.fetch_add(1, Ordering::Relaxed) >= unanswered;
            let answer = hyper::Response::builder().status(if is_answered { 200 } else { 404 });
            std::future::ready(answer.body(Body::from(list.to_string().into_bytes())))
        });
        let began = tokio::time::Instant::now();
        let left_out = wait_for_definitions(&Client::new(service, "default")).await;
        assert_eq!((left_out, began.elapsed().as_secs()), (want.to_vec(), seconds));
    }

    /// The API server serves these resources from the question of that number on.
    #[rstest]
    #[case::there(Some((0, "clonesets imagepulljobs")), true, 1)]
    #[case::established_meanwhile(Some((2, "clonesets imagepulljobs")), true, 3)]
    #[case::missing(Some((0, "clonesets")), false, 4)]
    #[case::no_answer(None, true, 1)]
    #[tokio::test(start_paused = true)]
    async fn a_gate_whose_definition_is_missing_is_off(
        #[case] served: Option<(usize, &'static str)>,
        #[case] on: bool,
        #[case] expected: usize,
    ) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let service = tower::service_fn(move |_: hyper::Request<Body>| {
            let number = counter.fetch_add(1, Ordering::Relaxed);
            let names = served.map(|(from, names)| if number < from { "clonesets" } else { names });
            let resources: Vec<_> = names
                .unwrap_or_default()
                .split_whitespace()
                .map(|name| json!({"name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": []}))
                .collect();
            let list = json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "apps.kruise.io/v1alpha1", "resources": resources,
            });
            let answer = hyper::Response::builder().status(if names.is_some() { 200 } else { 503 });
            std::future::ready(answer.body(Body::from(list.to_string().into_bytes())))
        });
        let needed = definitions().flat_map(|definition| definition.needed_by);
        let others = needed.filter(|gate| **gate != PREDOWNLOAD);
        let others: Vec<String> = others.map(|gate| format!("{gate}=false")).collect();
        let text = format!("{PREDOWNLOAD}=true,{}", others.join(","));
        let mut gates = FeatureGates::parse(&text).unwrap();
        settle_gates(&Client::new(service, "default"), &mut gates).await;
        assert_eq!(gates.is_on(PREDOWNLOAD), on);
        assert_eq!(asked.load(Ordering::Relaxed), expected);
    }

    /// The API server serves these resources of every version; none where it knows no version.
    #[rstest]
    #[case::all(Some("containerrecreaterequests nodeimages nodepodprobes podprobemarkers podunavailablebudgets workloadspreads"), "", &[], 0)]
    #[case::missing(Some("nodeimages nodepodprobes podprobemarkers podunavailablebudgets workloadspreads"), "", &["containerrecreaterequest"], 15)]
    #[case::missing_and_off(Some("podunavailablebudgets workloadspreads"), "KruiseDaemon=false", &[], 0)]
    #[case::not_asked_for(Some("clonesets containerrecreaterequests nodeimages nodepodprobes podprobemarkers podunavailablebudgets workloadspreads"),
        "ImagePullJobGate=false", &[], 0)]
    #[case::no_such_version(None, "", &[], 0)]
    #[tokio::test(start_paused = true)]
    async fn kinds_of_a_gate_without_a_definition_are_left_out(
        #[case] served: Option<&'static str>,
        #[case] gates: &str,
        #[case] want: &[&str],
        #[case] seconds: u64,
    ) {
        let service = tower::service_fn(move |_: hyper::Request<Body>| {
            let names = served.unwrap_or_default().split_whitespace();
            let resources: Vec<_> = names
                .map(|name| json!({"name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": []}))
                .collect();
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "x/v1", "resources": resources});
            let answer = hyper::Response::builder().status(if served.is_some() { 200 } else { 404 });
            std::future::ready(answer.body(Body::from(list.to_string().into_bytes())))
        });
        let options = Options {
            gates: FeatureGates::parse(gates).unwrap(),
            ..Options::default()
        };
        let began = tokio::time::Instant::now();
        let left_out = kinds_without_definition(&Client::new(service, "default"), &options).await;
        assert_eq!((left_out, began.elapsed().as_secs()), (want.to_vec(), seconds));
    }
}
