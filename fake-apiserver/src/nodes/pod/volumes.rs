//! A pod's volumes: what must exist before its containers start, and what they then see.

use std::time::Duration;

use client_kit::EventType;
use shared_json::Value;
use tokio::time::Instant;

use super::environment::{data_of, is_optional};
use super::worker::PodWorker;
use crate::nodes::programs::{Files, Volume};
use crate::nodes::status::items;

/// How long the first retry of a mount waits, and the longest that any waits (the kubelet's).
const MOUNT_DELAY_MIN: Duration = Duration::from_millis(500);
const MOUNT_DELAY_MAX: Duration = Duration::from_secs(122);
/// Shared by all containers of a pod.
const SHARED_MEMORY: &str = "/dev/shm";

impl PodWorker {
    /// Mounts the pod's volumes. False if one cannot be; then it is tried again later.
    pub(super) async fn mount(&mut self) -> bool {
        if self.mounted {
            return true;
        }
        let mut problems = Vec::new();
        let volumes: Vec<Value> = items(&self.pod, "volumes").to_vec();
        for volume in &volumes {
            let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            match self.content(volume).await {
                Ok(content) => {
                    self.volumes.insert(name.to_owned(), content);
                }
                Err(why) => problems.push(format!("MountVolume.SetUp failed for volume \"{name}\" : {why}")),
            }
        }
        for problem in &problems {
            self.pod_event(EventType::Warning, "FailedMount", problem.clone());
        }
        self.mounted = problems.is_empty();
        if !self.mounted {
            let delay = MOUNT_DELAY_MIN.saturating_mul(2_u32.saturating_pow(self.mount_tries));
            self.mount_tries = self.mount_tries.saturating_add(1);
            self.retry_at = Some(Instant::now() + delay.min(MOUNT_DELAY_MAX));
        }
        self.mounted
    }

    async fn content(&self, volume: &Value) -> Result<Volume, String> {
        let content = Volume::default();
        let mut sources: Vec<(&Value, &str)> = Vec::new();
        for (field, kind) in [("configMap", "configmap"), ("secret", "secret")] {
            sources.extend(volume.get(field).map(|source| (source, kind)));
        }
        let projected = volume.pointer("/projected/sources").and_then(Value::as_array);
        let is_token = projected.is_some_and(|list| {
            list.iter()
                .any(|entry| entry.get("serviceAccountToken").is_some())
        });
        if is_token {
            // Every pod has one, and it is always there: asking for its parts would cost a request per pod.
            return Ok(content);
        }
        for entry in projected.into_iter().flatten() {
            for (field, kind) in [("configMap", "configmap"), ("secret", "secret")] {
                sources.extend(entry.get(field).map(|source| (source, kind)));
            }
        }
        for (source, kind) in sources {
            self.fill(&content, source, kind).await?;
        }
        Ok(content)
    }

    /// Puts the entries of a ConfigMap or Secret into a volume.
    async fn fill(&self, content: &Volume, source: &Value, kind: &str) -> Result<(), String> {
        use crate::meta::ObjectMeta as _;
        let text = |field: &str| source.get(field).and_then(Value::as_str);
        let name = text("name").or_else(|| text("secretName")).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/{kind}s/{name}", self.pod.namespace());
        let Some(object) = self.get(&path).await else {
            if is_optional(source) {
                return Ok(());
            }
            return Err(format!("{kind} \"{name}\" not found"));
        };
        let data = data_of(&object, kind);
        let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
        let chosen = source.get("items").and_then(Value::as_array);
        match chosen {
            None => {
                for (key, value) in &data {
                    // A key is a valid file name.
                    let _ = files.write(&format!("/v/{key}"), value.as_bytes(), false);
                }
            }
            Some(list) => {
                for item in list {
                    let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
                    let Some(value) = data.get(field("key")) else {
                        if is_optional(source) {
                            continue;
                        }
                        return Err(format!(
                            "references non-existent {} key: {}",
                            word(kind),
                            field("key")
                        ));
                    };
                    let _ = files.write(&format!("/v/{}", field("path")), value.as_bytes(), false);
                }
            }
        }
        Ok(())
    }

    /// Where a container sees which volume.
    pub(super) fn mounts_of(&mut self, spec: &Value) -> Vec<(String, Volume)> {
        let shared = self.volumes.entry(SHARED_MEMORY.to_owned()).or_default().clone();
        let mut out = vec![(SHARED_MEMORY.to_owned(), shared)];
        let mounts = spec.get("volumeMounts").and_then(Value::as_array);
        for mount in mounts.into_iter().flatten() {
            let field = |name: &str| mount.get(name).and_then(Value::as_str).unwrap_or_default();
            if let Some(volume) = self.volumes.get(field("name")) {
                let path = field("mountPath").trim_end_matches('/').to_owned();
                out.push((path, volume.clone()));
            }
        }
        out
    }
}

fn word(kind: &str) -> &str {
    if kind == "secret" { "secret" } else { "config" }
}
