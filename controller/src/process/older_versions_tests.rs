use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use rstest::rstest;

use super::*;

/// What a server was asked: method, path with query, body.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A client in known versions of a server that serves these resources of `apps.kruise.io`, by version, and answers every other request with
/// `answer`.
fn client(served: &[(&'static str, &'static str)], answer: &str) -> (Client, Asked) {
    let served: BTreeMap<&str, &str> = served.iter().copied().collect();
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let answer = answer.to_owned();
    let server = service_fn(move |request: Request<Body>| {
        let (log, answer, served) = (Arc::clone(&log), answer.clone(), served.clone());
        async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path().to_owned();
            if let Target::Resources { version, .. } = Target::of(&path) {
                let Some(names) = served.get(version) else {
                    let unknown = Response::builder().status(StatusCode::NOT_FOUND);
                    return Ok::<_, Infallible>(
                        unknown.body(Body::from(b"404 page not found".to_vec())).unwrap(),
                    );
                };
                let resources: Vec<_> = names
                    .split_whitespace()
                    .map(|name| json!({ "name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": [] }))
                    .collect();
                let list =
                    json!({ "groupVersion": format!("apps.kruise.io/{version}"), "resources": resources });
                return Ok(Response::new(Body::from(list.to_string().into_bytes())));
            }
            let bytes = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let target = parts.uri.path_and_query().unwrap().as_str().to_owned();
            log.lock().unwrap().push((parts.method.to_string(), target, body));
            Ok(Response::new(Body::from(answer.into_bytes())))
        }
    });
    (in_known_versions(Client::new(server, "default")), asked)
}

fn sets(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apps.kruise.io", "v1beta1", "DaemonSet");
    Api::namespaced_with(
        client,
        "ns",
        &ApiResource::from_gvk_with_plural(&kind, "daemonsets"),
    )
}

fn set(version: &str, status: Value) -> Value {
    let version = format!("apps.kruise.io/{version}");
    json!({ "apiVersion": version, "kind": "DaemonSet", "metadata": { "name": "s", "namespace": "ns" }, "status": status })
}

const OLD: &[(&str, &str)] = &[("v1alpha1", "clonesets daemonsets daemonsets/status")];
const BOTH: &[(&str, &str)] = &[("v1alpha1", "daemonsets"), ("v1beta1", "daemonsets")];

#[rstest]
#[case::older_alone(OLD, "v1alpha1", json!({ "daemonSetHash": "x" }))]
#[case::both(BOTH, "v1beta1", json!({ "updateRevision": "x" }))]
// As the API server would refuse it.
#[case::neither(&[("v1alpha1", "clonesets")], "v1beta1", json!({ "updateRevision": "x" }))]
#[tokio::test(start_paused = true)]
async fn objects_are_brought_to_the_version_that_is_served(
    #[case] served: &[(&'static str, &'static str)],
    #[case] version: &str,
    #[case] status: Value,
) {
    let answer = set(version, status.clone()).to_string();
    let (client, asked) = client(served, &answer);
    let api = sets(client);
    let known: DynamicObject =
        serde_json::from_value(set("v1beta1", json!({ "updateRevision": "x" }))).unwrap();
    assert_eq!(api.create(&PostParams::default(), &known).await.unwrap(), known);
    assert_eq!(api.get("s").await.unwrap(), known);
    let patch = Patch::Merge(json!({ "status": { "updateRevision": "x" } }));
    assert_eq!(
        api.patch_status("s", &PatchParams::default(), &patch)
            .await
            .unwrap(),
        known
    );
    let path = format!("/apis/apps.kruise.io/{version}/namespaces/ns/daemonsets");
    let expect = [
        (
            "POST".to_owned(),
            format!("{path}?"),
            set(version, status.clone()),
        ),
        ("GET".to_owned(), format!("{path}/s"), Value::Null),
        (
            "PATCH".to_owned(),
            format!("{path}/s/status?"),
            json!({ "status": status }),
        ),
    ];
    assert_eq!(*asked.lock().unwrap(), expect);
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_come_in_the_known_version() {
    let list = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSetList", "metadata": { "resourceVersion": "7" },
        "items": [set("v1alpha1", json!({ "daemonSetHash": "x" }))],
    });
    let (client_of_list, _) = client(OLD, &list.to_string());
    let listed = sets(client_of_list).list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].data["status"], json!({ "updateRevision": "x" }));

    let line =
        |kind: &str| json!({ "type": kind, "object": set("v1alpha1", json!({ "daemonSetHash": kind })) });
    let lines = format!("{}\n{}\n", line("ADDED"), line("MODIFIED"));
    let (client_of_watch, asked) = client(OLD, &lines);
    let stream = sets(client_of_watch)
        .watch(&WatchParams::default(), "7")
        .await
        .unwrap();
    let events: Vec<_> = futures::TryStreamExt::try_collect(stream).await.unwrap();
    let told = events.into_iter().map(|event| match event {
        WatchEvent::Added(set) | WatchEvent::Modified(set) => {
            (set.types.unwrap().api_version, set.data["status"].clone())
        }
        other => panic!("{other:?}"),
    });
    let known = |hash: &str| {
        (
            "apps.kruise.io/v1beta1".to_owned(),
            json!({ "updateRevision": hash }),
        )
    };
    assert_eq!(told.collect::<Vec<_>>(), [known("ADDED"), known("MODIFIED")]);
    assert!(
        asked.lock().unwrap()[0]
            .1
            .starts_with("/apis/apps.kruise.io/v1alpha1/namespaces/ns/daemonsets?")
    );
}

/// A line may come in pieces.
#[rstest]
#[case::at_once(1)]
#[case::in_pieces(7)]
#[tokio::test]
async fn pieces_of_a_watch(#[case] pieces: usize) {
    let line = json!({ "type": "ADDED", "object": set("v1alpha1", json!({})) });
    let text = format!("{line}\n{line}\n");
    let chunks: Vec<_> = text.as_bytes().chunks(text.len().div_ceil(pieces)).collect();
    let frames: Vec<Result<_, kube::Error>> = chunks
        .into_iter()
        .map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk))))
        .collect();
    let body = StreamBody::new(futures::stream::iter(frames));
    let kind = KINDS.iter().find(|kind| kind.kind == "DaemonSet").unwrap();
    let converted = converted_lines(body, kind, kind.known_version())
        .collect()
        .await
        .unwrap()
        .to_bytes();
    let expect = json!({ "type": "ADDED", "object": set("v1beta1", json!({})) });
    assert_eq!(converted, format!("{expect}\n{expect}\n"));
}

#[tokio::test(start_paused = true)]
async fn owners_are_named_in_the_version_that_is_served() {
    let owner = |version: &str, kind: &str| json!({ "apiVersion": format!("apps.kruise.io/{version}"), "kind": kind, "name": "o", "uid": "u" });
    let pod = |version: &str| {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "ns",
            "ownerReferences": [owner(version, "DaemonSet"), owner("v1beta1", "SidecarSet")] } })
    };
    let (client, asked) = client(OLD, &pod("v1alpha1").to_string());
    let pods: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "ns",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")),
    );
    let object: DynamicObject = serde_json::from_value(pod("v1beta1")).unwrap();
    let sent = async || {
        pods.create(&PostParams::default(), &object).await.unwrap();
        asked.lock().unwrap().pop().unwrap().2
    };
    // Nothing is known of the kind yet.
    assert_eq!(sent().await, pod("v1beta1"));
    let _answer = sets(client).get("s").await;
    assert_eq!(sent().await, pod("v1alpha1"));
}

/// Discovery shows a kind in the version that the controllers know.
#[rstest]
#[case::version_unknown(OLD, &["daemonsets", "daemonsets/status"])]
#[case::some(&[("v1alpha1", "clonesets daemonsets sidecarsets"), ("v1beta1", "statefulsets sidecarsets")], &["statefulsets", "sidecarsets", "daemonsets"])]
#[case::as_it_is(BOTH, &["daemonsets"])]
#[tokio::test(start_paused = true)]
async fn discovery(#[case] served: &[(&'static str, &'static str)], #[case] expect: &[&str]) {
    let (client, _) = client(served, "{}");
    let list = client
        .list_api_group_resources("apps.kruise.io/v1beta1")
        .await
        .unwrap();
    let names: Vec<_> = list.resources.into_iter().map(|resource| resource.name).collect();
    assert_eq!(names, expect);
}

#[test]
fn the_kinds_with_older_versions() {
    let shown: Vec<_> = KINDS
        .iter()
        .map(
            |Kind {
                 plural, known, older, ..
             }| format!("{plural} {known} {older:?}"),
        )
        .collect();
    let expect = [
        "advancedcronjobs",
        "broadcastjobs",
        "daemonsets",
        "imagelistpulljobs",
        "imagepulljobs",
        "nodeimages",
        "sidecarsets",
        "statefulsets",
    ];
    let mut sorted = shown;
    sorted.sort();
    assert_eq!(
        sorted,
        expect.map(|plural| format!("{plural} v1beta1 [\"v1alpha1\"]"))
    );
}
