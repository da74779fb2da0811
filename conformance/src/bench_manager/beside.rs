//! Measures managers as programs, one after the other, each on a cluster of its own in real time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::serve::{self, Identity, Transport};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::daemons::Daemons;
use super::loads::{Awaited, Load, NAMESPACE, Step, sidecar_set};
use super::{PODS_PER_NODE, defect, injection};
use crate::action::{ActionError, Kubectl};
use crate::bench::ms;
use crate::bench_api::client_of;
use crate::error::Error;
use crate::history::number;
use crate::manifest;
use crate::report::stopwatch::Stopwatch;

/// How long a manager may take to answer its first webhook.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a step may take.
pub(super) const STEP_LIMIT: Duration = Duration::from_secs(1800);
/// How long between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(200);
/// How long a manager is left alone after the last step before its idle time is measured, and for how long that is.
const QUIET: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(30);
/// How many lines of a manager's log are shown when it ends by itself.
const LAST_LINES: usize = 20;

/// A manager to measure.
#[derive(Debug, Clone)]
pub struct ManagerProgram {
    /// Its name in the output.
    pub name: String,
    /// The shell's command that starts it. Its environment has `KUBECONFIG`, `WEBHOOK_PORT`, `WEBHOOK_HOST`, `POD_NAMESPACE` and
    /// `FEATURE_GATES`, which the measured kind needs.
    pub command: String,
    /// Manifests that are applied before it starts.
    pub installation: Option<PathBuf>,
}

/// The figures of one step.
struct Figures {
    wall: Duration,
    cpu: Duration,
    /// Bytes that the process occupies after it.
    resident: u64,
}

/// Measures each load of each size with each manager, and prints the figures beside each other.
///
/// # Errors
/// If a manager does not start, or does not come to where it should.
pub fn run(
    loads: &[Load],
    sizes: &[u32],
    managers: &[ManagerProgram],
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let mut say = |text: String| {
        writeln!(out, "{text}").map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })
    };
    for load in loads {
        for pods in sizes {
            say(format!("{}, {} objects", load.name(), load.size(*pods)))?;
            for manager in managers {
                let text = super::in_real_time(async || measure(*load, *pods, manager).await)?;
                say(text)?;
            }
        }
    }
    Ok(())
}

async fn measure(load: Load, pods: u32, manager: &ManagerProgram) -> Result<String, Error> {
    let cluster = Cluster::builder()
        .nodes(load.nodes(pods, PODS_PER_NODE))
        .start()
        .await
        .map_err(|error| defect("start a cluster", error))?;
    let served = Served::start(&cluster).await?;
    let kubectl = Kubectl::new(served.client.clone(), NAMESPACE);
    if let Some(path) = &manager.installation {
        apply_all(&kubectl, path).await?;
    }
    let mut program = Program::start(manager, load, &served.kubeconfig)?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    create(&served.client, &namespace).await?;
    for object in load.before(pods) {
        create(&served.client, &object).await?;
    }
    let steps = load.steps(pods);
    if let Some(object) = steps.first().and_then(|step| step.objects.first()) {
        create_by(&served.client, object, true).await?;
    }
    let daemons = match load {
        Load::ImagePullJob => Some(Daemons::start(&served.client, load.size(pods)).await?),
        _ => None,
    };
    let mut text = format!("  {}", manager.name);
    for (number, step) in steps.into_iter().enumerate() {
        let figures = measure_step(&served.client, &mut program, &step, number == 0).await?;
        let size = f64::from(load.size(pods));
        text.push_str(&format!(
            "\n    {} in {} ({:.0} a second), its own time {} ({:.0} µs each), then {:.1} MiB",
            step.name,
            ms(figures.wall),
            size / figures.wall.as_secs_f64(),
            ms(figures.cpu),
            figures.cpu.as_secs_f64() * 1e6 / size,
            figures.resident as f64 / 1024.0 / 1024.0,
        ));
    }
    if let Some(daemons) = &daemons {
        let writes = daemons.writes_of_others().await?;
        text.push_str(&format!("\n    writes of each NodeImage: {writes:.2}"));
    }
    sleep(QUIET).await;
    let before = program.usage()?.0;
    sleep(IDLE).await;
    let idle = program.usage()?.0.saturating_sub(before);
    text.push_str(&format!("\n    idle: {} in {} s", ms(idle), IDLE.as_secs()));
    if load == Load::SidecarSet {
        for number in 1..injection::SETS {
            let set = sidecar_set(&format!("side-{number}"), "sidecar:1");
            create(&served.client, &set).await?;
        }
        sleep(QUIET).await;
        let times = injection::measure(&served.client).await?;
        text.push_str(&format!(
            "\n    injection of {} sidecars: half of the reviews within {:.2} ms, 99 % within {:.2} ms",
            injection::SETS,
            times.within(500).as_secs_f64() * 1e3,
            times.within(990).as_secs_f64() * 1e3,
        ));
    }
    Ok(text)
}

async fn measure_step(
    client: &Client,
    program: &mut Program,
    step: &Step,
    creates: bool,
) -> Result<Figures, Error> {
    let (cpu, _) = program.usage()?;
    let stopwatch = Stopwatch::start();
    for object in &step.objects {
        if creates {
            create(client, object).await?;
        } else {
            let kubectl = Kubectl::new(client.clone(), NAMESPACE);
            let api = kubectl
                .api_of(object)
                .await
                .map_err(|error| defect("find a kind", error))?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let change = json!({"spec": object["spec"].clone()});
            let patch = kube::api::Patch::Merge(&change);
            api.patch(name, &kube::api::PatchParams::default(), &patch)
                .await
                .map_err(|error| defect("change an object", error))?;
        }
    }
    until(client, program, &step.awaited).await?;
    let wall = stopwatch.elapsed();
    let (now, resident) = program.usage()?;
    Ok(Figures {
        wall,
        cpu: now.saturating_sub(cpu),
        resident,
    })
}

/// Creates an object, as often as it takes until the manager's webhooks answer.
async fn create(client: &Client, object: &Value) -> Result<(), Error> {
    create_by(client, object, false).await
}

/// The same; a dry run waits for the manager alone, and creates nothing.
async fn create_by(client: &Client, object: &Value, is_dry: bool) -> Result<(), Error> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        // A kind that was not there yet is asked for again.
        let kubectl = Kubectl::new(client.clone(), NAMESPACE);
        let created = match is_dry {
            true => dry_run(&kubectl, object).await,
            false => kubectl.create(object).await,
        };
        match created {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                return Err(defect(&format!("create {} {name}", object["kind"]), error));
            }
            Err(_) => sleep(LOOK).await,
        }
    }
}

async fn dry_run(kubectl: &Kubectl, object: &Value) -> Result<(), ActionError> {
    let api = kubectl.api_of(object).await?;
    kubectl.dry_run(&api, "create", None, object).await.map(drop)
}

async fn until(client: &Client, program: &mut Program, awaited: &Awaited) -> Result<(), Error> {
    let (version, kind) = awaited.kind;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let deadline = Instant::now() + STEP_LIMIT;
    loop {
        program.still_runs()?;
        let list = api.list(&ListParams::default()).await;
        let objects = list.map_err(|error| defect("list objects", error))?.items;
        let wrong = objects.into_iter().find_map(|object| {
            let object: Value = object.data.into();
            let mut numbers = awaited.numbers.iter();
            let fits = numbers.all(|(pointer, wanted)| number(&object, pointer) >= i64::from(*wanted));
            (!fits).then(|| object["status"].clone())
        });
        let Some(status) = wrong else { return Ok(()) };
        if Instant::now() > deadline {
            return Err(defect(&format!("wait for a {kind}"), status));
        }
        sleep(LOOK).await;
    }
}

async fn apply_all(kubectl: &Kubectl, path: &Path) -> Result<(), Error> {
    for document in manifest::read(path)? {
        // The definitions of a release are too large for the annotation of `kubectl apply`.
        kubectl
            .create(&document.object)
            .await
            .map_err(|error| defect(&format!("install {}", path.display()), error))?;
    }
    Ok(())
}

/// A cluster that programs reach.
struct Served {
    client: Client,
    /// The file; removed in the end.
    kubeconfig: PathBuf,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Served {
    async fn start(cluster: &Cluster) -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| defect("serve a cluster", error);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let transport = Transport {
            identity: Some(Arc::new(Identity::generate(&[]).map_err(|error| failed(&error))?)),
            tokens: Vec::new(),
        };
        let text = serve::kubeconfig(address, &transport);
        let serving = tokio::spawn(serve::serve(
            cluster.server().clone(),
            listener,
            transport,
            std::future::pending::<()>(),
        ));
        let kubeconfig = std::env::temp_dir().join(format!("seatrial-bench-{}", std::process::id()));
        std::fs::write(&kubeconfig, text.to_string()).map_err(|error| failed(&error))?;
        let parsed = shared_json::from_value(text).map_err(|error| failed(&error))?;
        Ok(Self {
            client: client_of(parsed).await?,
            kubeconfig,
            serving,
        })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
        let _gone = std::fs::remove_file(&self.kubeconfig);
    }
}

/// A manager that runs.
struct Program {
    child: Child,
    /// Its standard error.
    log: PathBuf,
}

impl Program {
    fn start(manager: &ManagerProgram, load: Load, kubeconfig: &Path) -> Result<Self, Error> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.map_err(|error| defect("find a free port", error))?.port();
        let log = kubeconfig.with_extension("log");
        let stderr = std::fs::File::create(&log).map_err(|error| defect("keep the manager's log", error))?;
        let child = Command::new("sh")
            .args(["-c", &format!("exec {}", manager.command)])
            .env("KUBECONFIG", kubeconfig)
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", port.to_string())
            .env("POD_NAMESPACE", "kruise-system")
            .env("FEATURE_GATES", load.feature_gates())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn();
        child
            .map(|child| Self { child, log })
            .map_err(|error| defect(&format!("start {}", manager.command), error))
    }

    /// # Errors
    /// If it has ended, with the last lines of its log.
    fn still_runs(&mut self) -> Result<(), Error> {
        let Ok(Some(status)) = self.child.try_wait() else {
            return Ok(());
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(LAST_LINES)..);
        let last = last.unwrap_or_default().join("\n");
        Err(defect(
            "measure the manager",
            format!("it has ended ({status}):\n{last}"),
        ))
    }

    /// The processor's time that it has taken, and the bytes that it occupies.
    fn usage(&self) -> Result<(Duration, u64), Error> {
        let id = self.child.id();
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/{id}/{file}")).map_err(|error| {
                defect(
                    "look at the manager's process, which is possible on Linux only",
                    error,
                )
            })
        };
        usage_of(&read("stat")?, &read("status")?)
            .ok_or_else(|| defect("look at the manager", "it has ended"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
        let _gone = std::fs::remove_file(&self.log);
    }
}

/// Reads a process's time (in ticks of ten milliseconds) and its resident memory out of its `stat` and `status`.
fn usage_of(stat: &str, status: &str) -> Option<(Duration, u64)> {
    // The name may have blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let cpu = Duration::from_millis((ticks()? + ticks()?) * 10);
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((cpu, kib * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert_eq!(
            usage_of(stat, "Name:\tx\nVmRSS:\t   2048 kB\n"),
            Some((Duration::from_secs(2), 2048 * 1024))
        );
        assert_eq!(usage_of(stat, "Name:\tx\n"), None, "a process that has ended");
    }
}
