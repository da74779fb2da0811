//! Measures: wall time of the tutorial, of a cluster's start, and of large CloneSets.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

use crate::action::Kubectl;
use crate::backend::{Backend, FakeCluster, FakeOptions};
use crate::error::Error;
use crate::history::{number, text};
use crate::report::stopwatch::Stopwatch;
use crate::run::scenario as player;
use crate::scenario::Scenario;
use crate::suite::{Job, Simulate};

/// How often the short ones are measured; the fastest counts.
const REPEATS: usize = 10;
/// How long a large CloneSet may take, in virtual time.
const VIRTUAL_LIMIT: Duration = Duration::from_secs(3600 * 24);

pub(crate) fn simulate_on<T: Send>(
    simulate: Simulate<'_>,
    body: impl AsyncFnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    simulate_seed(client_kit::Seed(1), simulate, body)
}

/// Runs `body` in virtual time, on a thread whose entropy follows the seed.
pub(crate) fn simulate_seed<T: Send>(
    seed: client_kit::Seed,
    simulate: Simulate<'_>,
    body: impl AsyncFnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let mut result = None;
    let job: Job<'_> = Box::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        result = runtime.ok().map(|runtime| runtime.block_on(body()));
    });
    simulate(seed, job);
    result.unwrap_or_else(|| {
        Err(Error::Backend {
            what: "run a measurement".to_owned(),
            why: "its thread ended early".to_owned(),
            help: "this is a defect of Seatrial".to_owned(),
        })
    })
}

fn fastest(mut measure: impl FnMut() -> Result<Duration, Error>) -> Result<Duration, Error> {
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        best = best.min(measure()?);
    }
    Ok(best)
}

pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Measures everything and prints it.
///
/// # Errors
/// If a cluster does not start or a run does not come to its end.
pub fn run(
    scenarios: &Path,
    sizes: &[u32],
    out: &mut (dyn Write + Send),
    simulate: Simulate<'_>,
) -> Result<(), Error> {
    let print = |out: &mut (dyn Write + Send), line: String| {
        writeln!(out, "{line}").map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })
    };
    let start = fastest(|| {
        simulate_on(simulate, async || {
            let stopwatch = Stopwatch::start();
            let cluster = fake_apiserver::Cluster::builder().start().await;
            let took = stopwatch.elapsed();
            drop(cluster);
            Ok(took)
        })
    })?;
    print(
        out,
        format!("start a cluster of three nodes               {}", ms(start)),
    )?;
    let with_manager = fastest(|| {
        simulate_on(simulate, async || {
            let stopwatch = Stopwatch::start();
            FakeCluster::start(FakeOptions::default()).await?;
            Ok(stopwatch.elapsed())
        })
    })?;
    print(
        out,
        format!(
            "start it with OpenKruise installed           {}",
            ms(with_manager)
        ),
    )?;
    let tutorial = Scenario::read(scenarios, &scenarios.join("tutorial/chainsaw-test.yaml"))?;
    let whole = fastest(|| {
        simulate_on(simulate, async || {
            let stopwatch = Stopwatch::start();
            let backend = Backend::Fake(FakeCluster::start(FakeOptions::default()).await?);
            player::run(&tutorial, &backend, &[], true, &mut |_| {}).await?;
            Ok(stopwatch.elapsed())
        })
    })?;
    print(
        out,
        format!("the whole tutorial, cluster start included   {}", ms(whole)),
    )?;
    let mut before: Option<(u32, Duration, Duration)> = None;
    for size in sizes {
        let (create, update) = simulate_on(simulate, async || large(*size).await)?;
        let per = |total: Duration| {
            format!(
                "{:.0} µs a pod",
                total.as_secs_f64() * 1e6 / f64::from((*size).max(1))
            )
        };
        print(
            out,
            format!(
                "{size} pods: created in {} ({}), updated in place in {} ({})",
                ms(create),
                per(create),
                ms(update),
                per(update)
            ),
        )?;
        if let Some((smaller, created, updated)) = before {
            let grows = |now: Duration, then: Duration| now.as_secs_f64() / then.as_secs_f64();
            print(
                out,
                format!(
                    "{smaller} -> {size} pods ({:.0} times as many): creating takes {:.1} times as long, updating {:.1} times",
                    f64::from(*size) / f64::from(smaller),
                    grows(create, created),
                    grows(update, updated)
                ),
            )?;
        }
        before = Some((*size, create, update));
    }
    Ok(())
}

/// Creates a CloneSet and updates it in place; the wall time of each.
async fn large(replicas: u32) -> Result<(Duration, Duration), Error> {
    let cluster = FakeCluster::start(FakeOptions {
        nodes: Some(replicas / 100 + 1),
        unrecorded: true,
        ..FakeOptions::default()
    })
    .await?;
    let client = cluster.client();
    let set = |image: &str| {
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
            "metadata": {"name": "large", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "large"}},
                "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%"},
                "template": {
                    "metadata": {"labels": {"app": "large"}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        })
    };
    let failed = |error: crate::action::ActionError| Error::Backend {
        what: "create a large CloneSet".to_owned(),
        why: error.to_string(),
        help: "this is a defect of Seatrial".to_owned(),
    };
    let kubectl = Kubectl::new(client.clone(), "default");
    let stopwatch = Stopwatch::start();
    kubectl.create(&set("nginx:1")).await.map_err(failed)?;
    until(&client, |set| {
        number(set, "/status/readyReplicas") == i64::from(replicas)
    })
    .await?;
    let create = stopwatch.elapsed();
    let stopwatch = Stopwatch::start();
    let patch = json!({"spec": {"template": set("nginx:2")["spec"]["template"]}});
    let api = clonesets(&client);
    let patched = api
        .patch("large", &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    patched.map_err(|error| Error::refused("patch", None, &error))?;
    until(&client, |set| {
        number(set, "/status/updatedReadyReplicas") == i64::from(replicas)
            && text(set, "/status/currentRevision") == text(set, "/status/updateRevision")
            && number(set, "/status/observedGeneration") > 1
    })
    .await?;
    Ok((create, stopwatch.elapsed()))
}

fn clonesets(client: &kube::Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "CloneSet"));
    Api::namespaced_with(client.clone(), "default", &kind)
}

async fn until(client: &kube::Client, done: impl Fn(&Value) -> bool) -> Result<(), Error> {
    let deadline = tokio::time::Instant::now() + VIRTUAL_LIMIT;
    loop {
        let set = clonesets(client)
            .get("large")
            .await
            .map_err(|error| Error::refused("get", None, &error))?;
        let set = shared_json::to_value(set).unwrap_or_default();
        if done(&set) {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Error::Backend {
                what: "wait for a large CloneSet".to_owned(),
                why: format!("a day of virtual time was not enough: {}", set["status"]),
                help: "this is a defect of Seatrial".to_owned(),
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
