//! The API `metrics.k8s.io`, as metrics-server answers it: the usage of pods and nodes, by the annotations that a test sets on pods.
//!
//! It stands behind the Service `kube-system/metrics-server` of an APIService, and is a client of the API.

mod usage;

use std::sync::Arc;

use bytes::Bytes;
use client_kit::SharedClock;
use futures::FutureExt as _;
use http::{Request, Response, StatusCode};
use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use machinery::types::rfc3339;
use server::{Extension, Server};
use shared_json::{Value, json};

const GROUP: &str = "metrics.k8s.io";
const GROUP_VERSION: &str = "metrics.k8s.io/v1beta1";
const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "metrics-server";
/// The time that a figure is the average of (metrics-server: `--metric-resolution`).
const WINDOW: &str = "15s";

/// Answers for the APIService, and gives the objects that lead to it.
pub(crate) fn install(server: &Server, clock: SharedClock) -> Vec<Value> {
    let api = MetricsApi {
        client: server.client_named("metrics-server"),
        clock,
    };
    let extension: Extension = Arc::new(move |request| api.clone().answer(request).boxed());
    server.add_extension(NAMESPACE, SERVICE, extension);
    vec![
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {
                "group": GROUP, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": {"namespace": NAMESPACE, "name": SERVICE},
            },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": "system:aggregated-metrics-reader",
                "labels": {
                    "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                    "rbac.authorization.k8s.io/aggregate-to-edit": "true",
                    "rbac.authorization.k8s.io/aggregate-to-view": "true",
                },
            },
            "rules": [{"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
        }),
    ]
}

#[derive(Clone)]
struct MetricsApi {
    client: kube::Client,
    clock: SharedClock,
}

/// A request for figures.
#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Resources,
    Nodes(Option<&'a str>),
    Pods {
        namespace: Option<&'a str>,
        name: Option<&'a str>,
    },
    Nothing,
}

impl<'a> Asked<'a> {
    fn of(path: &'a str) -> Self {
        let Some(below) = path.strip_prefix("/apis/metrics.k8s.io/v1beta1") else {
            return Self::Nothing;
        };
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
        match *parts.as_slice() {
            [] => Self::Resources,
            ["nodes"] => Self::Nodes(None),
            ["nodes", name] => Self::Nodes(Some(name)),
            ["pods"] => Self::Pods {
                namespace: None,
                name: None,
            },
            ["namespaces", namespace, "pods"] => Self::Pods {
                namespace: Some(namespace),
                name: None,
            },
            ["namespaces", namespace, "pods", name] => Self::Pods {
                namespace: Some(namespace),
                name: Some(name),
            },
            _ => Self::Nothing,
        }
    }
}

fn resources() -> Value {
    let entry = |name: &str, kind: &str, is_namespaced: bool| {
        json!({
            "name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get", "list"],
        })
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION,
        "resources": [entry("nodes", "NodeMetrics", false), entry("pods", "PodMetrics", true)],
    })
}

/// An answer of an API server behind an APIService.
pub(crate) fn json_response(code: StatusCode, value: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(format!("{value}\n")));
    *response.status_mut() = code;
    let kind = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}

impl MetricsApi {
    async fn answer(self, request: Request<Bytes>) -> Response<Bytes> {
        let answer = if request.method() == http::Method::GET {
            self.get(request.uri()).await
        } else {
            Err(ApiError::method_not_allowed())
        };
        let (code, value) = match answer {
            Ok(value) => (StatusCode::OK, value),
            Err(error) => (error.code, error.to_status()),
        };
        json_response(code, &value)
    }

    async fn get(&self, uri: &http::Uri) -> Result<Value, ApiError> {
        let query = uri.query().unwrap_or_default();
        match Asked::of(uri.path()) {
            Asked::Resources => Ok(resources()),
            Asked::Nothing => Err(ApiError::no_such_resource()),
            Asked::Nodes(name) => {
                let pods = self.list("/api/v1/pods", "").await?;
                let nodes = self.list("/api/v1/nodes", query).await?;
                let figure = |node: &Value| self.node(node, &pods);
                chosen("NodeMetrics", "nodes", name, nodes.iter().map(figure).collect())
            }
            Asked::Pods { namespace, name } => {
                let path = match namespace {
                    Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
                    None => "/api/v1/pods".to_owned(),
                };
                let pods = self.list(&path, query).await?;
                let figures = pods.iter().filter_map(|pod| self.pod(pod)).collect();
                chosen("PodMetrics", "pods", name, figures)
            }
        }
    }

    /// The objects of a collection that the selectors of a query select.
    async fn list(&self, path: &str, query: &str) -> Result<Vec<Value>, ApiError> {
        let is_selector =
            |pair: &&str| pair.starts_with("labelSelector=") || pair.starts_with("fieldSelector=");
        let selectors: Vec<&str> = query.split('&').filter(is_selector).collect();
        let request = Request::get(format!("{path}?{}", selectors.join("&"))).body(Vec::new());
        let request = request.map_err(|error| ApiError::bad_request(error.to_string()))?;
        let list: Value = self.client.request(request).await.map_err(|error| match error {
            kube::Error::Api(status) => ApiError::bad_request(status.message.clone()),
            error => ApiError::internal(error.to_string()),
        })?;
        let items = list.get("items").and_then(Value::as_array);
        Ok(items.map(|items| items.to_vec()).unwrap_or_default())
    }

    fn figures(&self, kind: &str, object: &Value) -> Value {
        let now = rfc3339(self.clock.now_seconds());
        let mut metadata = json!({"name": object.name(), "creationTimestamp": now});
        if !object.namespace().is_empty() {
            metadata["namespace"] = Value::from(object.namespace());
        }
        if let Some(labels) = object.pointer("/metadata/labels") {
            metadata["labels"] = labels.clone();
        }
        json!({
            "kind": kind, "apiVersion": GROUP_VERSION, "metadata": metadata, "timestamp": now, "window": WINDOW,
        })
    }

    /// The figures of a pod; none of one that does not run, or says nothing.
    fn pod(&self, pod: &Value) -> Option<Value> {
        let used = usage::of_pod(pod)?;
        let mut figures = self.figures("PodMetrics", pod);
        let containers: Vec<Value> = used
            .iter()
            .map(|(name, usage)| json!({"name": name, "usage": usage.written()}))
            .collect();
        figures["containers"] = Value::from(containers);
        Some(figures)
    }

    /// The figures of a node: those of its pods together.
    fn node(&self, node: &Value, pods: &[Value]) -> Value {
        let mut figures = self.figures("NodeMetrics", node);
        figures["usage"] = usage::of_node(node.name(), pods).written();
        figures
    }
}

/// The figures as a list, or the one of that name.
fn chosen(kind: &str, resource: &str, name: Option<&str>, mut all: Vec<Value>) -> Result<Value, ApiError> {
    let Some(name) = name else {
        return Ok(
            json!({"kind": format!("{kind}List"), "apiVersion": GROUP_VERSION, "metadata": {}, "items": all}),
        );
    };
    let place = all.iter().position(|figures| figures.name() == name);
    let table = store::GroupResource::new(GROUP, resource);
    place
        .map(|place| all.swap_remove(place))
        .ok_or_else(|| ApiError::not_found(&table, name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Asked::Resources)]
    #[case("/nodes", Asked::Nodes(None))]
    #[case("/nodes/node1", Asked::Nodes(Some("node1")))]
    #[case("/pods", Asked::Pods { namespace: None, name: None })]
    #[case("/namespaces/a/pods", Asked::Pods { namespace: Some("a"), name: None })]
    #[case("/namespaces/a/pods/b", Asked::Pods { namespace: Some("a"), name: Some("b") })]
    #[case("/things", Asked::Nothing)]
    fn paths(#[case] below: &str, #[case] expected: Asked<'_>) {
        let path = format!("/apis/metrics.k8s.io/v1beta1{below}");
        assert_eq!(Asked::of(&path), expected);
    }
}
