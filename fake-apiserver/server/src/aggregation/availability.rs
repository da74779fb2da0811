//! Whether the servers behind APIServices answer. The rules, the texts and the times are those of kube-aggregator.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use client_kit::{Jumps, ObjectClient, SharedClock};
use futures::future::join_all;
use http::{Request, StatusCode};
use machinery::meta::at;
use machinery::types::rfc3339;
use network::Network;
use shared_json::{Value, json};
use store::{GroupResource, ObjectKey, Revision, Scope, Store, Watcher};
use tokio::time::Instant;

use super::api_service::{self, ApiService, available};
use super::backend::Ways;
use super::{Aggregation, Description, lock};
use crate::openapi;

/// How long a server may take to describe itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after an answer a server is asked again.
const PERIOD: Duration = Duration::from_secs(30);
/// How long after the first failure a server is asked again; twice as long after each further one.
const RETRY_MIN: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_secs(30);
const RETRY_DOUBLINGS_MAX: u32 = 16;

/// The parts of this server that the checks need.
pub(crate) struct Checks {
    pub store: Arc<Store>,
    pub aggregation: Arc<Aggregation>,
    pub jumps: Arc<Jumps>,
    pub clock: SharedClock,
    /// Empty until there are nodes.
    pub network: Arc<OnceLock<Network>>,
    /// Writes statuses.
    pub client: ObjectClient,
}

/// The knowledge of one server.
struct Seen {
    service: ApiService,
    /// The revisions of its Service and of the slices of that.
    behind: Vec<Revision>,
    due: Instant,
    failures: u32,
}

/// The watches of the objects that a server's availability depends on.
struct Watches {
    registered: Watcher,
    behind: [Watcher; 2],
}

fn services() -> GroupResource {
    GroupResource::new("", "services")
}

fn slices() -> GroupResource {
    GroupResource::new("discovery.k8s.io", "endpointslices")
}

impl Watches {
    /// Of changes from now on; none if the store has forgotten now already.
    fn begin(store: &Arc<Store>) -> Option<Self> {
        let watch = |table: &GroupResource| store.watch(table, Scope::All, store.revision(), false).ok();
        Some(Self {
            registered: watch(&api_service::table())?,
            behind: [watch(&services())?, watch(&slices())?],
        })
    }

    /// Waits for a change, or until then. Nothing but an APIService counts as long as there is none.
    async fn changed(&mut self, until: Option<Instant>) {
        let Some(until) = until else {
            return self.registered.changed().await;
        };
        let [services, slices] = &mut self.behind;
        tokio::select! {
            biased;
            () = self.registered.changed() => {}
            () = services.changed() => {}
            () = slices.changed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }
}

/// Asks the servers of all APIServices whether they answer, whenever something changes, and writes it down; until dropped.
pub(crate) async fn check_all(checks: Checks) {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    loop {
        let Some(mut watches) = Watches::begin(&checks.store) else {
            return tracing::warn!(
                "API servers behind Services are not asked any more: the history has no now"
            );
        };
        let all = api_service::all(&checks.store);
        seen.retain(|name, _| all.iter().any(|service| service.name == *name));
        lock(&checks.aggregation.described).retain(|name, _| seen.contains_key(name));
        // A server that does not answer must not keep the others from being asked.
        let looks = all.into_iter().map(|service| {
            let before = seen.get(&service.name);
            checks.look(before, service)
        });
        for known in join_all(looks).await.into_iter().flatten() {
            seen.insert(known.service.name.clone(), known);
        }
        watches.changed(seen.values().map(|seen| seen.due).min()).await;
    }
}

/// The outcome of a check.
struct Outcome {
    status: &'static str,
    reason: &'static str,
    message: String,
}

fn no(reason: &'static str, message: String) -> Outcome {
    Outcome {
        status: "False",
        reason,
        message,
    }
}

impl Checks {
    fn ways(&self) -> Ways<'_> {
        Ways {
            store: &self.store,
            aggregation: &self.aggregation,
            jumps: &self.jumps,
            network: self.network.get(),
        }
    }

    /// Checks one if it is due, or if something that it depends on has changed. Gives the knowledge of it then.
    async fn look(&self, before: Option<&Seen>, service: ApiService) -> Option<Seen> {
        let behind = self.behind(&service);
        let now = Instant::now();
        if before.is_some_and(|seen| seen.service == service && seen.behind == behind && now < seen.due) {
            return None;
        }
        let failures = before.map_or(0, |seen| seen.failures);
        let outcome = self.outcome(&service).await;
        let passed = outcome.status == "True";
        let (failures, wait) = match passed {
            true => (0, PERIOD),
            false => (
                failures + 1,
                RETRY_MIN * 2_u32.pow(failures.min(RETRY_DOUBLINGS_MAX)),
            ),
        };
        self.write(&service, &outcome).await;
        Some(Seen {
            behind,
            due: Instant::now() + wait.min(RETRY_MAX),
            failures,
            service,
        })
    }

    /// The revisions of a Service and of its slices.
    fn behind(&self, service: &ApiService) -> Vec<Revision> {
        let target = &service.service;
        let key = ObjectKey::new(&target.namespace, &target.name);
        let own = self.store.get(&services(), &key).map(|stored| stored.revision);
        let slices = self.slices(service).into_iter().map(|stored| stored.revision);
        own.into_iter().chain(slices).collect()
    }

    fn slices(&self, service: &ApiService) -> Vec<Arc<store::Stored>> {
        let target = &service.service;
        let list = self.store.list(&slices(), Some(&target.namespace), None, None);
        let mut items = list.map(|list| list.items).unwrap_or_default();
        items.retain(|stored| {
            let labels = at(&stored.value, "metadata.labels");
            let of = labels.and_then(|labels| labels.get("kubernetes.io/service-name")?.as_str());
            of == Some(target.name.as_str())
        });
        items
    }

    async fn outcome(&self, service: &ApiService) -> Outcome {
        let target = &service.service;
        let is_here = self
            .aggregation
            .extension(&target.namespace, &target.name)
            .is_some();
        if !is_here && let Some(missing) = self.missing(service) {
            return missing;
        }
        match self.describe(service).await {
            Ok(()) => Outcome {
                status: "True",
                reason: "Passed",
                message: "all checks passed".to_owned(),
            },
            Err(why) => {
                if let Some(known) = lock(&self.aggregation.described).get_mut(&service.name) {
                    known.is_fresh = false;
                }
                no("FailedDiscoveryCheck", why)
            }
        }
    }

    /// Which part of the way to a server is missing.
    fn missing(&self, service: &ApiService) -> Option<Outcome> {
        let target = &service.service;
        let named = format!("service/{} in {:?}", target.name, target.namespace);
        let key = ObjectKey::new(&target.namespace, &target.name);
        let Some(found) = self.store.get(&services(), &key) else {
            return Some(no("ServiceNotFound", format!("{named} is not present")));
        };
        if at(&found.value, "spec.type").and_then(Value::as_str) != Some("ClusterIP") {
            return None;
        }
        let ports = at(&found.value, "spec.ports").and_then(Value::as_array);
        let of_number = |port: &&Value| port.get("port").and_then(Value::as_u64) == Some(target.port.into());
        let Some(port) = ports.into_iter().flatten().find(of_number) else {
            let message = format!("{named} is not listening on port {}", target.port);
            return Some(no("ServicePortError", message));
        };
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        let slices = self.slices(service);
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for {named}");
            return Some(no("EndpointsNotFound", message));
        }
        if slices.iter().any(|slice| has_address(&slice.value, name)) {
            return None;
        }
        let message = format!("endpointslices for {named} have no addresses with port name {name:?}");
        Some(no("MissingEndpoints", message))
    }

    /// Asks a server for its resources and documents, and keeps them.
    async fn describe(&self, service: &ApiService) -> Result<(), String> {
        let path = service.path();
        let target = &service.service;
        let url = format!(
            "https://{}.{}.svc:{}{path}",
            target.name, target.namespace, target.port
        );
        let asked = self
            .jumps
            .real_timeout(PATIENCE, self.ways().ask(service, &path))
            .await;
        let answer = match asked {
            None => Err("context deadline exceeded".to_owned()),
            Some(answer) => answer.map_err(|error| error.to_string()),
        };
        let answer =
            answer.map_err(|why| format!("failing or missing response from {url}: Get {url:?}: {why}"))?;
        let code = answer.status();
        if !(StatusCode::OK..StatusCode::MULTIPLE_CHOICES).contains(&code) {
            return Err(format!("bad status from {url}: {}", code.as_u16()));
        }
        let resources = shared_json::from_slice(answer.body()).unwrap_or_default();
        let open_api = self.open_api(service).await;
        let known = lock(&self.aggregation.described).get(&service.name).cloned();
        // The document is large: it is asked for again once the index, where there is one, says that it is another one.
        let spec = match known
            .filter(|known| !open_api.is_empty() && known.open_api == open_api)
            .and_then(|known| known.spec)
        {
            Some(spec) => Some(spec),
            None => self.spec(service).await,
        };
        let description = Description {
            resources,
            open_api,
            spec,
            is_fresh: true,
        };
        lock(&self.aggregation.described).insert(service.name.clone(), description);
        Ok(())
    }

    /// The entries of a server's `/openapi/v3` for its group version; none if it has no such document.
    async fn open_api(&self, service: &ApiService) -> Vec<(String, Value)> {
        let asked = self
            .jumps
            .real_timeout(PATIENCE, self.ways().ask(service, "/openapi/v3"))
            .await;
        let Some(Ok(answer)) = asked else {
            return Vec::new();
        };
        let document: Value = shared_json::from_slice(answer.body()).unwrap_or_default();
        let wanted = format!("apis/{}/{}", service.group, service.version);
        let paths = document.get("paths").and_then(Value::as_object);
        let found = paths.and_then(|paths| paths.get(&wanted));
        found.map(|entry| (wanted, entry.clone())).into_iter().collect()
    }

    /// A server's document of its group version, if it has one.
    async fn spec(&self, service: &ApiService) -> Option<Arc<Value>> {
        let asked = self
            .jumps
            .real_timeout(PATIENCE, self.ways().ask(service, "/openapi/v2"))
            .await;
        let document: Value = shared_json::from_slice(asked?.ok()?.body()).ok()?;
        let prefix = format!("/apis/{}/{}/", service.group, service.version);
        openapi::part(&document, &prefix).map(Arc::new)
    }

    /// Writes the condition into the status of an APIService, if that says something else.
    async fn write(&self, service: &ApiService, outcome: &Outcome) {
        let Some(found) = self
            .store
            .get(&api_service::table(), &ObjectKey::new("", &service.name))
        else {
            return;
        };
        let mut object = Value::clone(&found.local());
        let before = available(&object);
        let says = |field: &str| before.and_then(|condition| condition.get(field)?.as_str());
        let is_new_status = says("status") != Some(outcome.status);
        if !is_new_status
            && says("reason") == Some(outcome.reason)
            && says("message") == Some(outcome.message.as_str())
        {
            return;
        }
        let since = match says("lastTransitionTime").filter(|_| !is_new_status) {
            Some(since) => since.to_owned(),
            None => rfc3339(self.clock.now_seconds()),
        };
        let condition = json!({
            "type": "Available", "status": outcome.status, "lastTransitionTime": since,
            "reason": outcome.reason, "message": outcome.message,
        });
        object["apiVersion"] = Value::from("apiregistration.k8s.io/v1");
        object["kind"] = Value::from("APIService");
        object["status"]["conditions"] = json!([condition]);
        let path = format!(
            "/apis/apiregistration.k8s.io/v1/apiservices/{}/status",
            service.name
        );
        let Ok(request) = Request::put(path).body(object) else {
            return;
        };
        // A conflict is an event that wakes the checks.
        if let Err(error) = self.client.send(request).await {
            tracing::debug!(%error, "write whether an API server answers");
        }
    }
}

/// Whether a slice has a ready address with a port of this name.
fn has_address(slice: &Value, port: &str) -> bool {
    let list = |field: &str| slice.get(field).and_then(Value::as_array).into_iter().flatten();
    let named = |entry: &Value| entry.get("name").and_then(Value::as_str).unwrap_or_default() == port;
    list("ports").any(named)
        && list("endpoints").any(|endpoint| {
            let ready = at(endpoint, "conditions.ready").and_then(Value::as_bool);
            ready.unwrap_or(true) && endpoint.pointer("/addresses/0").is_some()
        })
}
