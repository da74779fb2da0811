//! Measures an API server: requests and watch events per second, of one client after the other and of several at once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use shared_json::{Value, json};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::report::stopwatch::Stopwatch;

/// How many requests are under way at once: as many as when kube-apiserver's figures were taken.
const CLIENTS: usize = 16;
/// The number of watches that get each change in the measure of watches.
const WATCHES: usize = 100;
/// How often the whole list is read.
const LISTS: usize = 20;
const MIB: f64 = 1_048_576.0;

/// The measures and their units: of configuration, and of pods without a scheduler.
const MEASURES: [(&str, &str); 11] = [
    ("create", "requests/s"),
    ("get", "requests/s"),
    ("patch", "requests/s"),
    ("apply", "requests/s"),
    ("list", "objects/s"),
    ("watch", "events/s"),
    ("create pod", "requests/s"),
    ("get pod", "requests/s"),
    ("patch status", "requests/s"),
    ("list pods", "objects/s"),
    ("delete", "requests/s"),
];

const JSON: &str = "application/json";

/// A request that is made for each object of a collection, below whose path that of the object is if it has a `name`.
#[derive(Clone, Copy)]
struct Each {
    method: &'static str,
    name: Option<fn(usize) -> String>,
    content_type: &'static str,
    body: fn(usize) -> Option<Value>,
}

impl Each {
    const fn create(body: fn(usize) -> Option<Value>) -> Self {
        Self {
            method: "POST",
            name: None,
            content_type: JSON,
            body,
        }
    }

    /// A request without a body.
    const fn plain(method: &'static str, name: fn(usize) -> String) -> Self {
        Self {
            method,
            name: Some(name),
            content_type: JSON,
            body: |_| None,
        }
    }

    const fn patch(
        name: fn(usize) -> String,
        content_type: &'static str,
        body: fn(usize) -> Option<Value>,
    ) -> Self {
        Self {
            method: "PATCH",
            name: Some(name),
            content_type,
            body,
        }
    }
}

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const CONFIGMAPS: [Each; 4] = [
    Each::create(|index| Some(configmap(index))),
    Each::plain("GET", configmap_name),
    Each::patch(configmap_name, MERGE, |index| {
        Some(json!({"data": {"key-1": index.to_string()}}))
    }),
    Each::patch(
        |index| format!("{}?fieldManager=bench&force=true", configmap_name(index)),
        APPLY,
        |index| Some(configmap(index)),
    ),
];

/// The changes while watches are open.
const CHANGE: Each = Each::patch(configmap_name, MERGE, |index| {
    Some(json!({"data": {"key-2": index.to_string()}}))
});

const DELETE: Each = Each::plain("DELETE", configmap_name);

const PODS: [Each; 3] = [
    Each::create(|index| Some(pod(index))),
    Each::plain("GET", |index| format!("p{index}")),
    Each::patch(
        |index| format!("p{index}/status"),
        STRATEGIC,
        |index| {
            Some(
                json!({"status": {"conditions": [{"type": "Bench", "status": "True", "reason": index.to_string()}]}}),
            )
        },
    ),
];

fn configmap_name(index: usize) -> String {
    format!("m{index}")
}

fn configmap(index: usize) -> Value {
    let data: Value = (0..8)
        .map(|key| (format!("key-{key}"), json!("a value of some length")))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": configmap_name(index), "labels": {"app": "bench"}}, "data": data})
}

fn pod(index: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{index}"), "labels": {"app": "bench"}}, "spec": {
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "nginx:1.7.9", "ports": [{"containerPort": 80}], "env": [{"name": "KEY", "value": "value"}]}],
    }})
}

/// The figures of one server, in the order of [`MEASURES`].
struct Figures {
    name: String,
    per_second: Vec<f64>,
    /// The memory of its process before and after, in bytes, if the server reports it.
    memory: Option<[f64; 2]>,
}

fn failed(what: &str, why: impl ToString) -> Error {
    Error::Backend {
        what: what.to_owned(),
        why: why.to_string(),
        help: "the server must answer an administrator".to_owned(),
    }
}

/// Measures a server of this process, the same behind a socket, and those of the kubeconfigs; prints a table, with the ratios of the
/// first two to each of the others. Must be called within a runtime whose time is real.
///
/// # Errors
/// If a server does not answer as it should.
pub async fn run(objects: usize, kubeconfigs: &[PathBuf], out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let cluster = fake_apiserver::Cluster::builder()
        .nodes(0)
        .controllers(false)
        .start()
        .await
        .map_err(|error| failed("start a cluster", error))?;
    let mut all = vec![measure("in process", &cluster.client(), objects).await?];
    let (client, _server) = served().await?;
    all.push(measure("served", &client, objects).await?);
    for path in kubeconfigs {
        let client = connect(path).await?;
        all.push(measure(&path.display().to_string(), &client, objects).await?);
    }
    table(&all, out).map_err(|source| Error::Write {
        path: "standard output".into(),
        source,
    })
}

/// A server on a thread of its own, which ends with the sender.
async fn served() -> Result<(Client, tokio::sync::oneshot::Sender<()>), Error> {
    use fake_apiserver::serve::{self, Identity, Transport};
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let serving = async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let identity = Identity::generate(&[]).map_err(std::io::Error::other)?;
            let transport = Transport {
                identity: Some(std::sync::Arc::new(identity)),
                tokens: Vec::new(),
            };
            let cluster = fake_apiserver::Cluster::builder().nodes(0).controllers(false);
            let cluster = cluster.start().await.map_err(std::io::Error::other)?;
            // If nobody wants to know, nobody will ask.
            let _ = tell.send(serve::kubeconfig(address, &transport));
            let ended = async {
                let _ = stopped.await;
            };
            serve::serve(cluster.server().clone(), listener, transport, ended).await
        };
        if let Err(error) = runtime.and_then(|runtime| runtime.block_on(serving)) {
            tracing::error!(%error, "serve a cluster");
        }
    });
    let kubeconfig = told.await.map_err(|error| failed("serve a cluster", error))?;
    let parsed: Kubeconfig =
        shared_json::from_value(kubeconfig).map_err(|error| failed("serve a cluster", error))?;
    Ok((client_of(parsed).await?, stop))
}

async fn connect(path: &Path) -> Result<Client, Error> {
    let parsed = Kubeconfig::read_from(path).map_err(|error| failed("read a kubeconfig", error))?;
    client_of(parsed).await
}

pub(crate) async fn client_of(parsed: Kubeconfig) -> Result<Client, Error> {
    let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| failed("read a kubeconfig", error))?;
    Client::try_from(config).map_err(|error| failed("connect", error))
}

/// One request; its answer is read.
async fn ask(
    client: &Client,
    method: &str,
    path: String,
    kind: &str,
    body: Option<Value>,
) -> Result<(), Error> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body)
        .map_err(|error| failed("ask", error))?;
    let answered = client.request_text(request).await;
    answered.map(|_| ()).map_err(|error| failed("ask", error))
}

/// Makes a namespace of its own: one that an earlier measure has used may still be there.
async fn namespace(client: &Client) -> Result<String, Error> {
    let wanted = json!({"metadata": {"generateName": "bench-api-"}}).to_string();
    let request = http::Request::post("/api/v1/namespaces").header("content-type", "application/json");
    let request = request.body(wanted.into_bytes());
    let made: Value = client
        .request(request.map_err(|error| failed("ask", error))?)
        .await
        .map_err(|error| failed("make a namespace", error))?;
    let name = made.pointer("/metadata/name").and_then(Value::as_str);
    name.map(str::to_owned)
        .ok_or_else(|| failed("make a namespace", "it has no name"))
}

/// The memory of a server's process, in bytes, by its metrics.
async fn resident(client: &Client) -> Option<f64> {
    let request = http::Request::get("/metrics").body(Vec::new()).ok()?;
    let metrics = client.request_text(request).await.ok()?;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "))?;
    line.parse().ok()
}

/// Makes a request for each object, several at once; gives objects per second.
async fn each(client: &Client, objects: usize, root: &str, request: Each) -> Result<f64, Error> {
    let stopwatch = Stopwatch::start();
    let mut tasks = JoinSet::new();
    for first in 0..CLIENTS {
        let (client, root) = (client.clone(), root.to_owned());
        tasks.spawn(async move {
            for index in (first..objects).step_by(CLIENTS) {
                let path = match request.name {
                    Some(name) => format!("{root}/{}", name(index)),
                    None => root.clone(),
                };
                let body = (request.body)(index);
                ask(&client, request.method, path, request.content_type, body).await?;
            }
            Ok::<(), Error>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| failed("ask", error))??;
    }
    Ok(rate(objects, stopwatch.elapsed()))
}

/// Reads the whole collection again and again; gives objects per second.
async fn lists(client: &Client, objects: usize, root: &str) -> Result<f64, Error> {
    let stopwatch = Stopwatch::start();
    for _ in 0..LISTS {
        ask(client, "GET", root.to_owned(), JSON, None).await?;
    }
    Ok(rate(LISTS * objects, stopwatch.elapsed()))
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

async fn measure(name: &str, client: &Client, objects: usize) -> Result<Figures, Error> {
    let before = resident(client).await;
    let namespace = namespace(client).await?;
    let namespace = format!("/api/v1/namespaces/{namespace}");
    let (configmaps, pods) = (format!("{namespace}/configmaps"), format!("{namespace}/pods"));
    let mut per_second = Vec::new();
    for request in CONFIGMAPS {
        per_second.push(each(client, objects, &configmaps, request).await?);
    }
    per_second.push(lists(client, objects, &configmaps).await?);
    per_second.push(watches(client, &configmaps, objects).await?);
    // Pods want it. Where controllers run, it may be there already.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = format!("{namespace}/serviceaccounts");
    let _there = ask(client, "POST", accounts, JSON, Some(account)).await;
    for request in PODS {
        per_second.push(each(client, objects, &pods, request).await?);
    }
    per_second.push(lists(client, objects, &pods).await?);
    let after = resident(client).await;
    per_second.push(each(client, objects, &configmaps, DELETE).await?);
    for collection in [pods, namespace] {
        ask(client, "DELETE", collection, JSON, None).await?;
    }
    Ok(Figures {
        name: name.to_owned(),
        per_second,
        memory: before.zip(after).map(|(before, after)| [before, after]),
    })
}

/// Events per second that reach watches of the same objects.
async fn watches(client: &Client, root: &str, objects: usize) -> Result<f64, Error> {
    let request = http::Request::get(format!("{root}?limit=1")).body(Vec::new());
    let list: Value = client
        .request(request.map_err(|error| failed("list", error))?)
        .await
        .map_err(|error| failed("list", error))?;
    let version = list
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut readers = JoinSet::new();
    for _ in 0..WATCHES {
        let request =
            http::Request::get(format!("{root}?watch=1&resourceVersion={version}")).body(Vec::new());
        let stream = client
            .request_stream(request.map_err(|error| failed("watch", error))?)
            .await;
        let stream = stream.map_err(|error| failed("watch", error))?;
        readers.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            let mut seen = 0;
            // Each line is an event. They are counted and not read: the server is measured, and not its client.
            while seen < objects {
                let bytes = stream.fill_buf().await.map_err(|error| failed("watch", error))?;
                if bytes.is_empty() {
                    return Err(failed("watch", "the watch has ended"));
                }
                let length = bytes.len();
                seen += memchr::memchr_iter(b'\n', bytes).count();
                stream.as_mut().consume_unpin(length);
            }
            Ok(())
        });
    }
    let stopwatch = Stopwatch::start();
    each(client, objects, root, CHANGE).await?;
    while let Some(done) = readers.join_next().await {
        done.map_err(|error| failed("watch", error))??;
    }
    Ok(rate(WATCHES * objects, stopwatch.elapsed()))
}

fn table(all: &[Figures], out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    for figures in all {
        writeln!(out, "{}", figures.name)?;
        for ((measure, unit), figure) in MEASURES.iter().zip(&figures.per_second) {
            writeln!(out, "  {measure:<12} {figure:>12.0} {unit}")?;
        }
        if let Some([before, after]) = figures.memory.map(|bytes| bytes.map(|bytes| bytes / MIB)) {
            writeln!(
                out,
                "  memory       {after:>12.0} MiB, of which {:.0} came with the load",
                (after - before).max(0.0)
            )?;
        }
    }
    let [in_process, served, others @ ..] = all else {
        return Ok(());
    };
    for other in others {
        for one in [in_process, served] {
            writeln!(out, "{} : {}", one.name, other.name)?;
            let figures = one.per_second.iter().zip(&other.per_second);
            for ((measure, _), (one, other)) in MEASURES.iter().zip(figures) {
                writeln!(out, "  {measure:<12} {:>12.1}", one / other.max(1e-9))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_measure_is_taken_of_both_servers() -> Result<(), Box<dyn std::error::Error>> {
        let mut out = Vec::new();
        run(20, &[], &mut out).await?;
        let out = String::from_utf8(out)?;
        for (measure, unit) in MEASURES {
            let lines = out
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix(measure))
                .filter_map(|rest| rest.strip_suffix(unit)?.trim().parse::<f64>().ok())
                .filter(|figure| *figure > 0.0);
            assert_eq!(lines.count(), 2, "{measure}: {out}");
        }
        Ok(())
    }
}
