//! Random requests: some that a careful client sends, and some invalid ones.

use client_kit::Random;
use http::Method;
use kube::Client;
use shared_json::{Value, json};

/// The collections that are written to, and watched. Names are drawn from a few, so that there are never many objects.
pub(super) const COLLECTIONS: [&str; 8] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/pods",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
];
const NAMES: u64 = 24;
const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
];
/// Queries of lists, good and bad.
const QUERIES: [&str; 14] = [
    "",
    "?limit=3",
    "?limit=3&continue=nonsense",
    "?labelSelector=a%3Db,c%20in%20(d)",
    "?labelSelector=((",
    "?fieldSelector=metadata.name%3Dn1",
    "?fieldSelector=spec.nothing%3D1",
    "?resourceVersion=1",
    "?resourceVersion=999999999",
    "?resourceVersion=x&resourceVersionMatch=Exact",
    "?resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "?watch=1&timeoutSeconds=1",
    "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "?watch=1&resourceVersion=-4",
];
/// The values of `Accept`.
const ACCEPTS: [&str; 6] = [
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/yaml",
    "text/nonsense",
];

pub(super) struct Requests {
    random: Random,
}

impl Requests {
    pub(super) fn new(random: Random) -> Self {
        Self { random }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let index = self.random.below(choices.len() as u64);
        choices.get(usize::try_from(index).unwrap_or_default()).copied()
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    /// Sends the next request and reads its answer; gives the status.
    ///
    /// # Errors
    /// The problem if there is no answer, or one of a failed server.
    pub(super) async fn send(&mut self, client: &Client) -> Result<u16, String> {
        let request = self.draw();
        let told = format!(
            "{} {} {}",
            request.method(),
            request.uri(),
            String::from_utf8_lossy(request.body())
        );
        let (head, body) = request.into_parts();
        let request = http::Request::from_parts(head, kube::client::Body::from(body));
        let response = client
            .send(request)
            .await
            .map_err(|error| format!("{told}: {error}"))?;
        let code = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect_bytes()
            .await
            .map_err(|error| format!("{told}: {error}"))?;
        // The real server, too, fails at patches whose directives make no sense, at new objects that name a version and at watches
        // from a version that is none (`watch/refused`), and waits in vain for a revision yet to come.
        const OF_VERSIONS: [&str; 2] = [
            "resourceVersion should not be set on objects to be created",
            "resourceVersion: Invalid value: ",
        ];
        let answer = String::from_utf8_lossy(&bytes);
        let of_a_version = OF_VERSIONS.iter().any(|text| answer.contains(text));
        let as_it_should = code == 504 || told.starts_with("PATCH ") || of_a_version;
        if code >= 500 && !as_it_should {
            return Err(format!("{told}: {code} {answer}"));
        }
        Ok(code)
    }

    fn draw(&mut self) -> http::Request<Vec<u8>> {
        let collection = self.one_of(&COLLECTIONS).unwrap_or_default();
        let name = format!("n{}", self.random.below(NAMES));
        let object = format!("{collection}/{name}");
        let accept = if self.chance(4) {
            self.one_of(&ACCEPTS)
        } else {
            None
        }
        .unwrap_or("application/json");
        let json = "application/json";
        let (method, path, content_type, body) = match self.random.below(20) {
            0..=5 => (
                Method::POST,
                collection.to_owned(),
                json,
                self.object(collection, &name).to_string(),
            ),
            6..=7 => (Method::GET, object, json, String::new()),
            8..=9 => {
                let query = self.one_of(&QUERIES).unwrap_or_default();
                (Method::GET, format!("{collection}{query}"), json, String::new())
            }
            10..=12 => {
                let kind = self.one_of(&PATCHES).unwrap_or_default();
                let query = if kind.contains("apply") {
                    "?fieldManager=soak&force=true"
                } else {
                    ""
                };
                (
                    Method::PATCH,
                    format!("{object}{query}"),
                    kind,
                    self.patch(collection, &name, kind),
                )
            }
            13..=14 => (
                Method::PUT,
                object,
                json,
                self.object(collection, &name).to_string(),
            ),
            15..=17 => (Method::DELETE, object, json, self.delete_options()),
            18 if self.chance(8) => (Method::DELETE, collection.to_owned(), json, String::new()),
            18 => (Method::GET, self.odd_path(), json, String::new()),
            _ => (Method::POST, collection.to_owned(), json, self.garbage()),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept);
        // All parts come from the tables above.
        request.body(body.into_bytes()).unwrap_or_default()
    }

    /// An object that fits the collection, now and then with something wrong in it.
    fn object(&mut self, collection: &str, name: &str) -> Value {
        let number = self.random.below(1000);
        let pod = json!({"containers": [{"name": "c", "image": format!("i:{}", number % 5)}], "terminationGracePeriodSeconds": 0});
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": pod});
        let mut object = match collection.rsplit('/').next().unwrap_or_default() {
            "configmaps" => json!({"data": {"k": number.to_string()}}),
            "secrets" => json!({"stringData": {"k": number.to_string()}}),
            "services" => json!({"spec": {"ports": [{"port": 80 + number}]}}),
            "pods" => json!({"spec": pod}),
            "deployments" => {
                json!({"spec": {"replicas": number % 3, "selector": {"matchLabels": {"app": name}}, "template": template}})
            }
            "jobs" => json!({"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1"]}]}}}}),
            "leases" => json!({"spec": {"holderIdentity": number.to_string()}}),
            _ => json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        };
        object["metadata"] = json!({"name": name, "labels": {"a": (number % 3).to_string()}});
        match self.random.below(16) {
            0 => object["metadata"]["name"] = json!("Not A Name"),
            1 => object["metadata"]["labels"] = json!({"a": 1}),
            2 => object["spec"] = json!("text"),
            3 => object["unknown"] = json!({"field": [null]}),
            4 => object["metadata"]["resourceVersion"] = json!(number.to_string()),
            5 => object["kind"] = json!("Other"),
            6 => object["metadata"]["annotations"] = json!({"long": "x".repeat(3000)}),
            _ => {}
        }
        object
    }

    fn patch(&mut self, collection: &str, name: &str, kind: &str) -> String {
        let number = self.random.below(1000);
        if self.chance(8) {
            return self.garbage();
        }
        let patch = match kind {
            "application/json-patch+json" => match self.random.below(3) {
                0 => json!([{"op": "add", "path": "/metadata/labels/p", "value": number.to_string()}]),
                1 => json!([{"op": "remove", "path": "/metadata/labels/none"}]),
                _ => json!([{"op": "test", "path": "/metadata/name", "value": "other"}]),
            },
            "application/apply-patch+yaml" => {
                let (version, kind) = match collection.rsplit('/').next().unwrap_or_default() {
                    "configmaps" => ("v1", "ConfigMap"),
                    "services" => ("v1", "Service"),
                    "leases" => ("coordination.k8s.io/v1", "Lease"),
                    _ => ("v1", "Secret"),
                };
                json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"q": number.to_string()}}})
            }
            _ => match self.random.below(3) {
                0 => json!({"metadata": {"labels": {"p": number.to_string()}}}),
                1 => json!({"metadata": {"labels": null}, "spec": {"$patch": "replace"}}),
                _ => json!({"metadata": {"finalizers": []}, "data": {"k": null}}),
            },
        };
        patch.to_string()
    }

    fn delete_options(&mut self) -> String {
        let options = match self.random.below(6) {
            0 => json!({"propagationPolicy": "Foreground"}),
            1 => json!({"propagationPolicy": "Orphan"}),
            2 => json!({"preconditions": {"uid": "other"}}),
            3 => json!({"propagationPolicy": "Nonsense"}),
            _ => return String::new(),
        };
        options.to_string()
    }

    fn odd_path(&mut self) -> String {
        const PATHS: [&str; 9] = [
            "/",
            "/api/v2/pods",
            "/apis/none/v1/things",
            "/api/v1/namespaces/default/pods/%00",
            "/api/v1/namespaces/default/pods/n1/log?tailLines=x",
            "/api/v1/namespaces/default/pods/n1/exec?command=ls",
            "/openapi/v3/apis/apps/v1",
            "/apis",
            "/api/v1/nodes/node1/status",
        ];
        self.one_of(&PATHS).unwrap_or_default().to_owned()
    }

    /// An invalid object: broken JSON, deep nesting, bytes of another kind.
    fn garbage(&mut self) -> String {
        match self.random.below(6) {
            0 => "{\"metadata\": {\"name\": \"x\"".to_owned(),
            1 => "[".repeat(2000),
            2 => "null".to_owned(),
            3 => "k8s\u{0}\n\u{fffd}".to_owned(),
            4 => "{\"metadata\": {\"name\": \"x\", \"name\": \"y\"}, \"data\": {\"a\": 1e999}}".to_owned(),
            _ => String::new(),
        }
    }
}
