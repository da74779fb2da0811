//! A small kubelet: runs the pods of the node by CRI, starts their containers again, and writes their status.
//!
//! It gives sandboxes and containers the labels and annotations of a real kubelet, which are all that the daemon knows of a pod.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use controller::daemon::container_hash;
use cri::messages::{
    Container, ContainerConfig, ContainerFilter, ContainerMetadata, ContainerState, ContainerStatusRequest,
    CreateContainerRequest, ImageSpec, KeyValue, LinuxContainerConfig, LinuxContainerSecurityContext,
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, ListContainersRequest, NamespaceMode,
    NamespaceOption, PodSandboxConfig, PodSandboxMetadata, PullImageRequest, RemovePodSandboxRequest,
    RunPodSandboxRequest, StartContainerRequest, StopPodSandboxRequest,
};
use cri::{Call, Client};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as Spec, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::NODE;

/// How long between two looks at the pods.
const LOOK: Duration = Duration::from_millis(200);
/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The kubelet.
pub(crate) struct Kubelet {
    client: kube::Client,
    runtime: Client,
    logs: PathBuf,
    /// The sandboxes by the uids of their pods.
    sandboxes: BTreeMap<String, (String, PodSandboxConfig)>,
    /// The statuses that were written last.
    written: BTreeMap<String, Value>,
}

impl Kubelet {
    /// A kubelet whose containers log below `logs`.
    pub(crate) fn new(client: kube::Client, runtime: Client, logs: &Path) -> Self {
        Self {
            client,
            runtime,
            logs: logs.to_owned(),
            sandboxes: BTreeMap::new(),
            written: BTreeMap::new(),
        }
    }

    /// Runs pods until dropped. A failure is reported once and tried again.
    pub(crate) async fn run(mut self) {
        let mut told = String::new();
        loop {
            if let Err(error) = self.look().await {
                let text = error.to_string();
                if text != told {
                    eprintln!("kubelet: {text}");
                    told = text;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn call<C: Call>(&self, request: C) -> Result<C::Answer, Failure> {
        let answer = self.runtime.call(&request, Some(LIMIT)).await;
        Ok(answer.map_err(|status| format!("{}: {status}", C::METHOD))?)
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let own = ListParams::default().fields(&format!("spec.nodeName={NODE}"));
        for pod in pods.list(&own).await? {
            if pod.metadata.deletion_timestamp.is_some() {
                self.end(&pod).await?;
            } else {
                self.keep(&pod).await?;
            }
        }
        Ok(())
    }

    async fn end(&mut self, pod: &Pod) -> Result<(), Failure> {
        if let Some((id, _)) = self.sandboxes.remove(&pod.uid().unwrap_or_default()) {
            self.call(StopPodSandboxRequest {
                pod_sandbox_id: id.clone(),
            })
            .await?;
            self.call(RemovePodSandboxRequest { pod_sandbox_id: id }).await?;
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
            .await?;
        Ok(())
    }

    /// Brings a pod up, starts containers that have ended, and writes the status.
    async fn keep(&mut self, pod: &Pod) -> Result<(), Failure> {
        let uid = pod.uid().unwrap_or_default();
        if !self.sandboxes.contains_key(&uid) {
            let config = self.sandbox(pod)?;
            let request = RunPodSandboxRequest {
                config: Some(config.clone()),
            };
            let id = self.call(request).await?.pod_sandbox_id;
            self.sandboxes.insert(uid.clone(), (id, config));
        }
        let Some((sandbox, config)) = self.sandboxes.get(&uid).cloned() else {
            return Ok(());
        };
        let filter = ContainerFilter {
            pod_sandbox_id: sandbox.clone(),
            ..ContainerFilter::default()
        };
        let listed = self
            .call(ListContainersRequest { filter: Some(filter) })
            .await?
            .containers;
        let mut statuses = Vec::new();
        for spec in pod.spec.iter().flat_map(|pod| &pod.containers) {
            let attempt =
                |container: &&Container| container.metadata.as_ref().map(|metadata| metadata.attempt);
            let name = |container: &&Container| {
                container
                    .metadata
                    .as_ref()
                    .is_some_and(|metadata| metadata.name == spec.name)
            };
            let newest = listed.iter().filter(name).max_by_key(attempt);
            let next = newest.map_or(0, |newest| attempt(&newest).unwrap_or_default() + 1);
            let (id, restarts) = match newest {
                Some(newest) if newest.state() != ContainerState::Exited => (newest.id.clone(), next - 1),
                _ => (self.start(pod, spec, next, (&sandbox, &config)).await?, next),
            };
            statuses.push(self.status(spec, &id, restarts).await?);
        }
        self.write(pod, &statuses).await
    }

    fn sandbox(&self, pod: &Pod) -> Result<PodSandboxConfig, Failure> {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let uid = pod.uid().unwrap_or_default();
        let logs = self.logs.join(format!("{namespace}_{name}"));
        std::fs::create_dir_all(&logs)?;
        Ok(PodSandboxConfig {
            log_directory: logs.display().to_string(),
            labels: pod_labels(pod),
            linux: Some(LinuxPodSandboxConfig {
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces()),
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            metadata: Some(PodSandboxMetadata {
                name,
                uid,
                namespace,
                attempt: 0,
            }),
            ..PodSandboxConfig::default()
        })
    }

    /// Makes a container and starts it. Gives its id.
    async fn start(
        &self,
        pod: &Pod,
        spec: &Spec,
        attempt: u32,
        (sandbox, config): (&str, &PodSandboxConfig),
    ) -> Result<String, Failure> {
        let image = ImageSpec {
            image: spec.image.clone().unwrap_or_default(),
        };
        self.call(PullImageRequest {
            image: Some(image.clone()),
            ..PullImageRequest::default()
        })
        .await?;
        let mut labels = pod_labels(pod);
        labels.insert("io.kubernetes.container.name".to_owned(), spec.name.clone());
        let hash = container_hash(&spec.name, &image.image);
        let mut annotations = BTreeMap::from([
            ("io.kubernetes.container.hash".to_owned(), format!("{hash:x}")),
            (
                "io.kubernetes.container.restartCount".to_owned(),
                attempt.to_string(),
            ),
        ]);
        if let Some(hook) = spec
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.pre_stop.as_ref())
        {
            annotations.insert(
                "io.kubernetes.container.preStopHandler".to_owned(),
                serde_json::to_string(hook)?,
            );
        }
        let container = ContainerConfig {
            metadata: Some(ContainerMetadata {
                name: spec.name.clone(),
                attempt,
            }),
            image: Some(image),
            command: spec.command.clone().unwrap_or_default(),
            args: spec.args.clone().unwrap_or_default(),
            envs: environment(pod, spec),
            labels,
            annotations,
            log_path: format!("{}.{attempt}.log", spec.name),
            linux: Some(LinuxContainerConfig {
                security_context: Some(LinuxContainerSecurityContext {
                    namespace_options: Some(namespaces()),
                }),
            }),
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(container),
            sandbox_config: Some(config.clone()),
        };
        let id = self.call(request).await?.container_id;
        self.call(StartContainerRequest {
            container_id: id.clone(),
        })
        .await?;
        Ok(id)
    }

    /// The status of a container, as the pod's status has it.
    async fn status(&self, spec: &Spec, id: &str, restarts: u32) -> Result<Value, Failure> {
        let request = ContainerStatusRequest {
            container_id: id.to_owned(),
        };
        let status = self.call(request).await?.status.unwrap_or_default();
        let running = status.state() == ContainerState::Running;
        let started = Timestamp::from_nanosecond(i128::from(status.started_at))?;
        let started = Timestamp::from_second(started.as_second())?;
        let state = match running {
            true => json!({ "running": { "startedAt": started } }),
            false => json!({ "waiting": { "reason": "ContainerCreating" } }),
        };
        Ok(json!({
            "name": spec.name, "image": spec.image, "imageID": "", "containerID": format!("containerd://{id}"),
            "ready": running, "started": running, "restartCount": restarts, "state": state,
        }))
    }

    async fn write(&mut self, pod: &Pod, statuses: &[Value]) -> Result<(), Failure> {
        let ready = statuses.iter().all(|status| status["ready"] == true);
        let condition = |kind: &str, is_met: bool| json!({ "type": kind, "status": if is_met { "True" } else { "False" } });
        let status = json!({ "status": {
            "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }], "hostIP": "127.0.0.1",
            "conditions": [
                condition("Initialized", true), condition("Ready", ready),
                condition("ContainersReady", ready), condition("PodScheduled", true),
            ],
            "containerStatuses": statuses,
        } });
        let uid = pod.uid().unwrap_or_default();
        if self.written.get(&uid) != Some(&status) {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            let patch = Patch::Strategic(&status);
            pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch)
                .await?;
            self.written.insert(uid, status);
        }
        Ok(())
    }
}

/// The namespaces of all that runs: the network of the node, and processes of its own for each container.
fn namespaces() -> NamespaceOption {
    NamespaceOption {
        network: i32::from(NamespaceMode::Node),
        pid: i32::from(NamespaceMode::Container),
        ipc: i32::from(NamespaceMode::Pod),
    }
}

/// The labels of all that runs for a pod.
fn pod_labels(pod: &Pod) -> BTreeMap<String, String> {
    let label =
        |name: &str, value: Option<String>| (format!("io.kubernetes.pod.{name}"), value.unwrap_or_default());
    BTreeMap::from([
        label("name", pod.metadata.name.clone()),
        label("namespace", pod.namespace()),
        label("uid", pod.uid()),
    ])
}

/// The environment of a container: values, and references to annotations of the pod.
fn environment(pod: &Pod, spec: &Spec) -> Vec<KeyValue> {
    let reference = |path: &str| {
        let key = path.strip_prefix("metadata.annotations['")?.strip_suffix("']")?;
        pod.annotations().get(key).cloned()
    };
    let variables = spec.env.iter().flatten().map(|variable| {
        let source = variable
            .value_from
            .as_ref()
            .and_then(|source| source.field_ref.as_ref());
        let referred = source.and_then(|field| reference(&field.field_path));
        KeyValue {
            key: variable.name.clone(),
            value: referred.or_else(|| variable.value.clone()).unwrap_or_default(),
        }
    });
    variables.collect()
}
