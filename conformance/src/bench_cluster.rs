//! Measures how a cluster without OpenKruise grows: nodes, pods that run, pods that go, memory.

use std::fmt::Debug;
use std::io::Write;
use std::time::Duration;

use fake_apiserver::Cluster;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{PartialObjectMeta, Request};
use kube::{Client, Resource as _};
use serde::de::DeserializeOwned;
use shared_json::{Value, json};
use tokio::time::Instant;

use crate::bench::{ms, simulate_on};
use crate::error::Error;
use crate::report::stopwatch::Stopwatch;
use crate::suite::Simulate;

/// How many pods a node takes.
const PODS_PER_NODE: u32 = 110;
/// How long pods may take to run, or to go, in virtual time.
const VIRTUAL_LIMIT: Duration = Duration::from_secs(3600);
/// How long between two looks, in virtual time.
const STEP: Duration = Duration::from_millis(500);

/// The maker of the measured pods.
#[derive(Clone, Copy)]
pub enum Maker {
    /// The client, one after the other.
    Client,
    /// A Deployment has them all.
    Deployment,
    /// A DaemonSet has one on each node.
    DaemonSet,
    /// A Job has them all.
    Job,
    /// A StatefulSet has them all, and makes them at once.
    StatefulSet,
}

/// Measures clusters of each of `sizes`: nodes and pods.
///
/// # Errors
/// If a cluster does not start or does not come to where it should.
pub fn run(
    sizes: &[(u32, u32)],
    maker: Maker,
    out: &mut (dyn Write + Send),
    simulate: Simulate<'_>,
) -> Result<(), Error> {
    let mut before: Option<(u32, Figures)> = None;
    for (nodes, pods) in sizes {
        let figures = simulate_on(simulate, async || measure(*nodes, *pods, maker).await)?;
        let mut text = figures.text(*nodes, *pods);
        if let Some((smaller, then)) = before {
            text.push_str(&figures.growth(*pods, smaller, &then));
        }
        writeln!(out, "{text}").map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })?;
        before = Some((*pods, figures));
    }
    Ok(())
}

/// Wall time and virtual time.
#[derive(Clone, Copy)]
struct Took(Duration, Duration);

struct Figures {
    started: Took,
    run: Took,
    gone: Took,
    /// Bytes; none where the system does not report them.
    per_pod: Option<u64>,
}

impl Figures {
    fn text(&self, nodes: u32, pods: u32) -> String {
        let each = |took: Took| {
            let per = took.0.as_secs_f64() * 1e6 / f64::from(pods.max(1));
            format!(
                "{} ({per:.0} µs a pod, {} of virtual time)",
                ms(took.0),
                ms(took.1)
            )
        };
        let memory = match self.per_pod {
            Some(bytes) => format!("{:.1} KiB", bytes as f64 / 1024.0),
            None => "unknown on this system".to_owned(),
        };
        format!(
            "{nodes} nodes, {pods} pods\n  all nodes ready in  {} ({} of virtual time)\n  all pods running in {}\n  all pods gone in    {}\n  memory per pod      {memory}",
            ms(self.started.0),
            ms(self.started.1),
            each(self.run),
            each(self.gone),
        )
    }

    fn growth(&self, pods: u32, smaller: u32, then: &Self) -> String {
        let grows = |now: Took, then: Took| now.0.as_secs_f64() / then.0.as_secs_f64();
        format!(
            "\n  {smaller} -> {pods} pods ({:.1} times as many): running takes {:.1} times as long, going {:.1} times",
            f64::from(pods) / f64::from(smaller.max(1)),
            grows(self.run, then.run),
            grows(self.gone, then.gone),
        )
    }
}

/// The resident memory of this process, in bytes, where the system reports it.
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

pub(crate) fn defect(what: &str, why: impl ToString) -> Error {
    Error::Backend {
        what: what.to_owned(),
        why: why.to_string(),
        help: "this is a defect of Seatrial".to_owned(),
    }
}

async fn measure(nodes: u32, pods: u32, maker: Maker) -> Result<Figures, Error> {
    let virtually = Instant::now();
    let stopwatch = Stopwatch::start();
    let cluster = Cluster::builder().nodes(nodes).start().await;
    let cluster = cluster.map_err(|error| defect("start a cluster", error))?;
    let client = cluster.client();
    let all: Api<Node> = Api::all(client.clone());
    let ready = all
        .list(&ListParams::default())
        .await
        .map_err(|error| defect("list the nodes", error))?;
    if ready.items.len() != nodes as usize {
        return Err(defect(
            "start the nodes",
            format!("{} of {nodes} are there", ready.items.len()),
        ));
    }
    drop(ready);
    let started = Took(stopwatch.elapsed(), virtually.elapsed());

    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let empty = resident();
    let virtually = Instant::now();
    let stopwatch = Stopwatch::start();
    maker.create(&client, pods).await?;
    until_none(&api, "status.phase!=Running").await?;
    let run = Took(stopwatch.elapsed(), virtually.elapsed());
    let full = resident();

    let virtually = Instant::now();
    let stopwatch = Stopwatch::start();
    maker.delete(&client).await?;
    until_none(&api, "metadata.namespace=default").await?;
    let gone = Took(stopwatch.elapsed(), virtually.elapsed());
    let per_pod = empty
        .zip(full)
        .map(|(empty, full)| full.saturating_sub(empty) / u64::from(pods.max(1)));
    Ok(Figures {
        started,
        run,
        gone,
        per_pod,
    })
}

impl Maker {
    /// Asks for the pods. There are as many when this is over, whether they run or not.
    pub(crate) async fn create(self, client: &Client, pods: u32) -> Result<(), Error> {
        match self {
            Maker::Client => {
                let requests = Request::new(Pod::url_path(&(), Some("default")));
                for number in 0..pods {
                    let mut pod = template();
                    pod["metadata"]["name"] = json!(format!("pod-{number}"));
                    post(client, &requests, &pod).await?;
                }
                Ok(())
            }
            Maker::Deployment => {
                let spec = json!({"replicas": pods, "selector": selector(), "template": template()});
                own::<Deployment>(client, spec, pods, |it| it.status?.replicas).await
            }
            Maker::DaemonSet => {
                let spec = json!({"selector": selector(), "template": template()});
                own::<DaemonSet>(client, spec, pods, |it| Some(it.status?.current_number_scheduled)).await
            }
            Maker::Job => {
                let mut template = template();
                template["spec"]["restartPolicy"] = json!("Never");
                let spec = json!({"parallelism": pods, "completions": pods, "template": template});
                own::<Job>(client, spec, pods, |it| it.status?.active).await
            }
            Maker::StatefulSet => {
                let spec = json!({
                    "replicas": pods, "serviceName": "bench", "podManagementPolicy": "Parallel",
                    "selector": selector(), "template": template(),
                });
                own::<StatefulSet>(client, spec, pods, |it| Some(it.status?.replicas)).await
            }
        }
    }

    /// Asks for the end of the pods.
    async fn delete(self, client: &Client) -> Result<(), Error> {
        let (params, all) = (DeleteParams::background(), ListParams::default());
        let of = Some("default");
        let url = match self {
            Maker::Client => Pod::url_path(&(), of),
            Maker::Deployment => Deployment::url_path(&(), of),
            Maker::DaemonSet => DaemonSet::url_path(&(), of),
            Maker::Job => Job::url_path(&(), of),
            Maker::StatefulSet => StatefulSet::url_path(&(), of),
        };
        let request = Request::new(url).delete_collection(&params, &all);
        let request = request.map_err(|error| defect("ask for the end of the pods", error))?;
        let answer = client.request_text(request).await;
        answer.map_err(|error| defect("delete the pods", error))?;
        Ok(())
    }
}

/// An image that the nodes have already: a kubelet pulls one image after the other, and asks for one without a tag each time.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "bench"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
    })
}

/// The answer is read and not decoded: the cluster is measured, not the client.
async fn post(client: &Client, requests: &Request, object: &Value) -> Result<(), Error> {
    let request = requests
        .create(&PostParams::default(), object.to_string().into_bytes())
        .map_err(|error| defect("write an object", error))?;
    let answer = client.request_text(request).await;
    answer.map_err(|error| defect("create an object", error))?;
    Ok(())
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "bench"}})
}

/// Has an object of kind `K` make the pods, and waits until it says that it `has` as many as it should.
async fn own<K>(client: &Client, spec: Value, pods: u32, has: impl Fn(K) -> Option<i32>) -> Result<(), Error>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let requests = Request::new(K::url_path(&(), Some("default")));
    let owner = json!({"metadata": {"name": "bench"}, "spec": spec});
    post(client, &requests, &owner).await?;
    let api: Api<K> = Api::default_namespaced(client.clone());
    until_nothing_is_left(async || {
        let owner = api.get("bench").await;
        let owner = owner.map_err(|error| defect("read who has the pods", error))?;
        let made = has(owner).unwrap_or_default();
        let is_whole = u32::try_from(made).is_ok_and(|made| made == pods);
        Ok((!is_whole).then(|| format!("an owner that has {made} of {pods} pods")))
    })
    .await
}

/// Waits until no pod is selected any more.
pub(crate) async fn until_none(api: &Api<Pod>, selector: &str) -> Result<(), Error> {
    let one = ListParams::default().fields(selector).limit(1);
    until_nothing_is_left(async || {
        let left = api.list_metadata(&one).await;
        let left = left.map_err(|error| defect("list pods", error))?;
        let name = |pod: &PartialObjectMeta<Pod>| pod.metadata.name.clone().unwrap_or_default();
        Ok(left
            .items
            .first()
            .map(|pod| format!("{} ({selector})", name(pod))))
    })
    .await
}

/// Repeats a question until no object is left.
async fn until_nothing_is_left(look: impl AsyncFn() -> Result<Option<String>, Error>) -> Result<(), Error> {
    let deadline = Instant::now() + VIRTUAL_LIMIT;
    while let Some(left) = look().await? {
        if Instant::now() > deadline {
            return Err(defect(
                "wait for pods",
                format!("an hour of virtual time was not enough for {left}"),
            ));
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

/// So many nodes that the pods fit, with some room.
#[must_use]
pub fn nodes_for(pods: u32) -> u32 {
    pods / (PODS_PER_NODE * 9 / 10) + 1
}
