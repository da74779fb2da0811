//! Measures OpenKruise's manager: alone (passes, an update in place of a large set, memory), and as a program, kind by kind,
//! beside another manager.

mod beside;
mod daemons;
mod injection;
mod loads;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use controller::metrics::Metrics;
use controller::{Manager, Options};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::{Deserialize, Serialize};
use shared_json::{Value, json};

pub use beside::{ManagerProgram, run as run_beside};
pub use loads::{LOADS, Load};

use crate::action::Kubectl;
use crate::backend::{FakeCluster, FakeOptions};
use crate::bench::{ms, simulate_on};
use crate::bench_api::client_of;
use crate::bench_cluster::resident;
use crate::error::Error;
use crate::history::number;
use crate::report::stopwatch::Stopwatch;
use crate::suite::Simulate;

/// How many pods a node takes.
const PODS_PER_NODE: u32 = 100;
/// How many pods each of the small sets has.
const PODS_PER_SET: u32 = 5;
/// How long anything may take, in the cluster's time.
const LIMIT: Duration = Duration::from_secs(3600);
/// How long it takes until nothing follows from the last write any more, and how long nothing is asked for then.
const QUIET: Duration = Duration::from_secs(600);
const IDLE: Duration = Duration::from_secs(3600);
/// How long a manager is given to come to rest before its memory is looked at.
const SETTLED: Duration = Duration::from_secs(3);
/// The metric that counts passes.
const PASSES: &str = "controller_runtime_reconcile_total";
/// The controller whose passes are counted.
const CONTROLLER: &str = "cloneset-controller";

/// The figures of one size.
#[derive(Debug, Clone, Copy)]
struct Figures {
    passes: Passes,
    update: Duration,
    /// A manager in a cluster without pods.
    empty: Start,
    start: Start,
}

/// A manager over many small sets.
#[derive(Debug, Clone, Copy)]
struct Passes {
    per_s: f64,
    /// The number of passes in an hour without changes, and the wall time of that hour with all the cluster's own work.
    idle: f64,
    idle_wall: Duration,
}

/// The program that runs [`alone`], and whether it is to wait for a pass.
pub type Alone<'a> = dyn Fn(bool) -> Command + 'a;

/// Measures the manager with each number of pods, and prints the figures and their growth.
///
/// # Errors
/// If a cluster does not start, or does not come to where it should.
pub fn run(
    sizes: &[u32],
    program: &Alone<'_>,
    out: &mut (dyn Write + Send),
    simulate: Simulate<'_>,
) -> Result<(), Error> {
    let mut before: Option<(u32, Figures)> = None;
    for pods in sizes.iter().copied() {
        let passes = simulate_on(simulate, async || passes(pods).await)?;
        let (update, empty, start) = in_real_time(async || update(pods, program).await)?;
        let figures = Figures {
            passes,
            update,
            empty,
            start,
        };
        let text = figures.text(pods, before);
        writeln!(out, "{text}").map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })?;
        before = Some((pods, figures));
    }
    Ok(())
}

impl Figures {
    /// Bytes for each pod: beyond those of a manager without pods.
    fn memory(&self, pods: u32) -> Option<f64> {
        let (with, without) = self.start.resident.zip(self.empty.resident)?;
        Some(with.saturating_sub(without) as f64 / f64::from(pods.max(1)))
    }

    fn text(&self, pods: u32, before: Option<(u32, Self)>) -> String {
        let memory = match (self.start.resident, self.memory(pods)) {
            (Some(resident), Some(bytes)) => format!(
                "its process occupies {:.1} MiB, {:.2} KiB for each pod",
                resident as f64 / 1024.0 / 1024.0,
                bytes / 1024.0,
            ),
            _ => "what its process occupies this system does not tell".to_owned(),
        };
        let mut text = format!(
            "{pods} pods\n  passes over sets of {PODS_PER_SET}: {:.0} a second, each with the write that asks for it\n  an hour in which nobody wants anything: {:.0} passes, {} of this machine's time for the whole cluster\n  one set updated in place, all at once, in real time: {} ({:.0} µs a pod)\n  a manager that starts: first pass after {:.0} ms; {memory}",
            self.passes.per_s,
            self.passes.idle,
            ms(self.passes.idle_wall),
            ms(self.update),
            self.update.as_secs_f64() * 1e6 / f64::from(pods.max(1)),
            self.start.first_pass * 1e3,
        );
        if let Some((fewer, then)) = before {
            let times = self.update.as_secs_f64() / then.update.as_secs_f64();
            text.push_str(&format!(
                "\n  {fewer} -> {pods} pods ({:.0} times as many): updating takes {times:.1} times as long, passes are {:.1} times as fast",
                f64::from(pods) / f64::from(fewer.max(1)),
                self.passes.per_s / then.passes.per_s,
            ));
            if let (Some(now), Some(then)) = (self.memory(pods), then.memory(fewer)) {
                text.push_str(&format!(
                    ", a pod takes {:.1} times the memory",
                    now / then.max(1.0)
                ));
            }
        }
        text
    }
}

fn in_real_time<T>(body: impl AsyncFnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| defect("start a runtime", error))?;
    runtime.block_on(body())
}

fn defect(what: &str, why: impl ToString) -> Error {
    Error::Backend {
        what: what.to_owned(),
        why: why.to_string(),
        help: "this is a defect of Seatrial".to_owned(),
    }
}

fn set(name: &str, replicas: u32, image: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "100%"},
            "template": {
                "metadata": {"labels": {"set": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

fn sets(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "CloneSet"));
    Api::namespaced_with(client.clone(), "default", &kind)
}

async fn cluster(pods: u32, metrics: Option<Arc<Metrics>>) -> Result<FakeCluster, Error> {
    let options = FakeOptions {
        nodes: Some(pods / PODS_PER_NODE + 1),
        unrecorded: true,
        tweak: metrics.map(|metrics| -> crate::backend::ManagerTweak {
            Arc::new(move |options: Options| Options {
                metrics: Arc::clone(&metrics),
                ..options
            })
        }),
        ..FakeOptions::default()
    };
    FakeCluster::start(options).await
}

async fn create(client: &Client, name: &str, replicas: u32) -> Result<(), Error> {
    let kubectl = Kubectl::new(client.clone(), "default");
    let created = kubectl.create(&set(name, replicas, "nginx:1")).await;
    created.map_err(|error| defect("create a CloneSet", error))
}

async fn patch(client: &Client, name: &str, patch: &Value) -> Result<(), Error> {
    let patched = sets(client)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched
        .map(drop)
        .map_err(|error| defect("patch a CloneSet", error))
}

async fn until(client: &Client, name: &str, pointer: &str, wanted: u32) -> Result<(), Error> {
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let set = sets(client)
            .get(name)
            .await
            .map_err(|error| defect("get a CloneSet", error))?;
        if number(&set.data.clone().into(), pointer) == i64::from(wanted) {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return Err(defect(
                "wait for a CloneSet",
                format!("{} after an hour", set.data["status"]),
            ));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How many passes a second over sets that need nothing, each asked for by a write; and how many when nothing is.
async fn passes(pods: u32) -> Result<Passes, Error> {
    let metrics = Arc::new(Metrics::default());
    let cluster = cluster(pods, Some(Arc::clone(&metrics))).await?;
    let client = cluster.client();
    let count = (pods / PODS_PER_SET).max(1);
    let name = |number: u32| format!("set-{number}");
    for number in 0..count {
        create(&client, &name(number), PODS_PER_SET).await?;
    }
    for number in 0..count {
        until(&client, &name(number), "/status/readyReplicas", PODS_PER_SET).await?;
    }
    let before = metrics.total(PASSES, CONTROLLER);
    let stopwatch = Stopwatch::start();
    for number in 0..count {
        patch(
            &client,
            &name(number),
            &json!({"metadata": {"annotations": {"touched": "yes"}}}),
        )
        .await?;
    }
    let wanted = before + f64::from(count);
    let deadline = tokio::time::Instant::now() + LIMIT;
    while metrics.total(PASSES, CONTROLLER) < wanted {
        if tokio::time::Instant::now() > deadline {
            return Err(defect(
                "wait for passes",
                format!("{} of {wanted}", metrics.total(PASSES, CONTROLLER)),
            ));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let per_s = (metrics.total(PASSES, CONTROLLER) - before) / stopwatch.elapsed().as_secs_f64();
    tokio::time::sleep(QUIET).await;
    let before = metrics.total(PASSES, CONTROLLER);
    let stopwatch = Stopwatch::start();
    tokio::time::sleep(IDLE).await;
    Ok(Passes {
        per_s,
        idle: metrics.total(PASSES, CONTROLLER) - before,
        idle_wall: stopwatch.elapsed(),
    })
}

/// A manager that starts in a process of its own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Start {
    /// Seconds until it has made as many passes as it was to.
    first_pass: f64,
    /// Bytes that its process occupies then; none where the system does not report them.
    resident: Option<u64>,
}

/// Runs a manager on the cluster whose kubeconfig (JSON) is read from `input`, until it has made a pass, if there is one to make,
/// and gives its figures, in the form that [`run`] reads. Meant for a process that does nothing else; must be called within a
/// runtime whose time is real.
///
/// # Errors
/// If the kubeconfig is none, or the cluster cannot be reached.
pub async fn alone(input: impl Read, wait_for_pass: bool) -> Result<String, Error> {
    let kubeconfig = shared_json::from_reader(input).map_err(|error| defect("read a kubeconfig", error))?;
    let client = client_of(kubeconfig).await?;
    let metrics = Arc::new(Metrics::default());
    let options = Options {
        metrics: Arc::clone(&metrics),
        ..Options::default()
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopwatch = Stopwatch::start();
    let manager = tokio::spawn(Manager::new(client, options).run(stopped));
    while wait_for_pass && metrics.total(PASSES, CONTROLLER) < 1.0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let first_pass = stopwatch.elapsed().as_secs_f64();
    tokio::time::sleep(SETTLED).await;
    let resident = resident();
    let _gone = stop.send(());
    let _ended = manager.await;
    let start = Start { first_pass, resident };
    shared_json::to_string(&start).map_err(|error| defect("tell what a manager took", error))
}

/// Has `program` run [`alone`] on a cluster.
async fn start(cluster: &FakeCluster, program: &Alone<'_>, wait_for_pass: bool) -> Result<Start, Error> {
    use fake_apiserver::serve::{self, Identity, Transport};
    let failed = |error: &dyn std::fmt::Display| defect("start a manager", error);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| failed(&error))?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let transport = Transport {
        identity: Some(Arc::new(Identity::generate(&[]).map_err(|error| failed(&error))?)),
        tokens: Vec::new(),
    };
    let kubeconfig = serve::kubeconfig(address, &transport).to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ended = async {
        let _ = stopped.await;
    };
    let serving = tokio::spawn(serve::serve(cluster.server(), listener, transport, ended));
    let (tell, told) = tokio::sync::oneshot::channel();
    let program = program(wait_for_pass);
    // This runtime's thread is the server's.
    std::thread::spawn(move || tell.send(output_of(program, kubeconfig.as_bytes())));
    let output = told.await.map_err(|error| failed(&error))?;
    let output = output.map_err(|error| failed(&error))?;
    let _gone = stop.send(());
    let _ended = serving.await;
    shared_json::from_slice(&output).map_err(|error| failed(&error))
}

/// The output of a program with this `input`.
fn output_of(mut program: Command, input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    Ok(child.wait_with_output()?.stdout)
}

/// The wall time of the update in place of one set, the nodes' own time included. And the figures of a manager
/// that starts before there are pods, and one that starts at the end.
async fn update(pods: u32, program: &Alone<'_>) -> Result<(Duration, Start, Start), Error> {
    let cluster = cluster(pods, None).await?;
    let client = cluster.client();
    let empty = start(&cluster, program, false).await?;
    create(&client, "large", pods).await?;
    until(&client, "large", "/status/readyReplicas", pods).await?;
    let stopwatch = Stopwatch::start();
    let template = set("large", pods, "nginx:2")["spec"]["template"].clone();
    patch(&client, "large", &json!({"spec": {"template": template}})).await?;
    until(&client, "large", "/status/observedGeneration", 2).await?;
    until(&client, "large", "/status/updatedReadyReplicas", pods).await?;
    let took = stopwatch.elapsed();
    Ok((took, empty, start(&cluster, program, true).await?))
}
