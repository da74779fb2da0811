//! A pod's volumes: the objects that must exist before its containers start, and the files in the volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client_kit::EventType;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Array, Value};
use tokio::time::Instant;

use super::account;
use super::environment::{expand_with, files_of, is_optional};
use super::worker::PodWorker;
use crate::programs::{Files, Volume, files_of_image};
use crate::status::{items, name_of};

/// How long the first retry of a mount waits (the kubelet's).
const MOUNT_DELAY_MIN: Duration = Duration::from_millis(500);
/// The least period between updates of the volumes of running containers; up to half as much is added (the kubelet's sync of a
/// pod).
const REFRESH_PERIOD_MS: u64 = 60_000;
/// The ConfigMap in every namespace.
const ROOT_CA: &str = "kube-root-ca.crt";
/// Shared by all containers of a pod.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

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
                    self.volumes.insert(name, content);
                }
                Err(why) => problems.push(failed_mount(name, &why)),
            }
        }
        for problem in &problems {
            self.pod_event(EventType::Warning, "FailedMount", problem.clone());
        }
        self.mounted = problems.is_empty();
        if !self.mounted {
            let delay = MOUNT_DELAY_MIN.saturating_mul(2_u32.saturating_pow(self.mount_tries));
            self.mount_tries = self.mount_tries.saturating_add(1);
            self.retry_at = Some(Instant::now() + delay.min(self.timing().mount_retry_max));
        }
        self.mounted
    }

    /// Updates the contents of ConfigMaps, Secrets and the downward API in volumes of running containers.
    pub(super) async fn refresh_volumes(&mut self) {
        self.plan_refresh();
        if self.refresh_at.is_none() {
            return;
        }
        let volumes: Vec<Value> = items(&self.pod, "volumes").to_vec();
        for volume in volumes.into_iter().filter(changes) {
            let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            match self.content(&volume).await {
                Ok(content) => {
                    if let Some(known) = self.volumes.get(name) {
                        known.become_like(&content);
                    }
                }
                Err(why) => self.pod_event(EventType::Warning, "FailedMount", failed_mount(name, &why)),
            }
        }
    }

    /// When that is done next.
    pub(super) fn plan_refresh(&mut self) {
        self.refresh_at = None;
        if items(&self.pod, "volumes").iter().any(changes) {
            let extra = self.random.below(REFRESH_PERIOD_MS / 2);
            self.refresh_at = Some(Instant::now() + Duration::from_millis(REFRESH_PERIOD_MS + extra));
        }
    }

    async fn content(&self, volume: &Value) -> Result<Volume, String> {
        let disks = &self.kubelet.disks;
        if let Some(persistent) = self.claimed.get(name_of(volume)) {
            return Ok(disks.of_volume(persistent));
        }
        if let Some(path) = volume.pointer("/hostPath/path").and_then(Value::as_str) {
            let kind = volume.pointer("/hostPath/type").and_then(Value::as_str);
            let is_file = matches!(kind, Some("File" | "FileOrCreate"));
            return Ok(disks.of_node(&self.kubelet.spec.name, path, is_file));
        }
        let content = Volume::default();
        let projected = volume.pointer("/projected/sources").and_then(Value::as_array);
        if projected.is_some() && account::is_usual(volume) {
            return Ok(content);
        }
        if let Some(reference) = volume.get("image") {
            let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
            let image = reference
                .get("reference")
                .and_then(Value::as_str)
                .unwrap_or_default();
            for (path, text) in files_of_image(image) {
                put(&files, path, text.as_bytes(), 0o644);
            }
            return Ok(content.read_only());
        }
        let sources = projected.map_or(std::slice::from_ref(volume), Array::as_slice);
        let modes = Modes::of_pod(&self.pod, volume);
        let mut problems: Vec<String> = Vec::new();
        for source in sources {
            for (field, kind) in [("configMap", "configmap"), ("secret", "secret")] {
                let Some(reference) = source.get(field) else {
                    continue;
                };
                if let Err(why) = self.fill(&content, reference, kind, modes).await
                    && !problems.contains(&why)
                {
                    problems.push(why);
                }
            }
            self.tell(&content, source, modes);
            if let Some(asked) = source.get("serviceAccountToken") {
                let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
                account::put_token(&self.kubelet.client, &self.pod, asked, &files, modes).await;
            }
        }
        match problems.as_slice() {
            [] => Ok(content),
            [why] => Err(why.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    /// Puts the fields of a downward API source into a volume.
    fn tell(&self, content: &Volume, source: &Value, modes: Modes) {
        let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
        let items = source.pointer("/downwardAPI/items").and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
            let Some(path) = text("/path") else { continue };
            let value = match (text("/fieldRef/fieldPath"), item.get("resourceFieldRef")) {
                (Some("metadata.labels"), _) => lines(&self.pod, "labels"),
                (Some("metadata.annotations"), _) => lines(&self.pod, "annotations"),
                (Some(field), _) => self.field(field),
                (None, Some(reference)) => {
                    let name = reference.get("containerName").and_then(Value::as_str);
                    let container = name.and_then(|name| self.spec_of(name));
                    container.map_or_else(String::new, |container| self.amount(container, reference))
                }
                (None, None) => continue,
            };
            put(&files, path, value.as_bytes(), modes.of(item));
        }
    }

    /// Puts the entries of a ConfigMap or Secret into a volume.
    async fn fill(&self, content: &Volume, source: &Value, kind: &str, modes: Modes) -> Result<(), String> {
        let text = |field: &str| source.get(field).and_then(Value::as_str);
        let name = text("name").or_else(|| text("secretName")).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/{kind}s/{name}", self.pod.namespace());
        let Some(object) = self.get(&path).await else {
            if is_optional(source) {
                return Ok(());
            }
            return Err(format!("{kind} \"{name}\" not found"));
        };
        let data = files_of(&object, kind);
        let files = Files::with_mounts(vec![("/v".to_owned(), content.clone())]);
        let chosen = source.get("items").and_then(Value::as_array);
        match chosen {
            None => {
                for (key, value) in &data {
                    put(&files, key, value, modes.of(&Value::Null));
                }
            }
            Some(list) => {
                for item in list {
                    let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
                    let Some(value) = data.get(field("key")) else {
                        if is_optional(source) {
                            continue;
                        }
                        let key = field("key");
                        return Err(if kind == "secret" {
                            format!("references non-existent secret key: {key}")
                        } else {
                            format!("configmap references non-existent config key: {key}")
                        });
                    };
                    put(&files, field("path"), value, modes.of(item));
                }
            }
        }
        Ok(())
    }

    /// The mounts of a container, by path; the error is the kubelet's for a missing subpath.
    pub(super) fn mounts_of(
        &mut self,
        spec: &Value,
        env: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, Volume)>, String> {
        let shared = self.volumes.get(SHARED_MEMORY).cloned().unwrap_or_default();
        self.volumes.insert(SHARED_MEMORY, shared.clone());
        let mut out = vec![(SHARED_MEMORY.to_owned(), shared)];
        let mounts = spec.get("volumeMounts").and_then(Value::as_array);
        for mount in mounts.into_iter().flatten() {
            let field = |name: &str| mount.get(name).and_then(Value::as_str).unwrap_or_default();
            if let Some(volume) = self.volumes.get(field("name")) {
                let path = field("mountPath").trim_end_matches('/').to_owned();
                let part = match field("subPathExpr") {
                    "" => field("subPath").to_owned(),
                    expression => named_part(expression, env)?,
                };
                let part = checked_part(part)?;
                let changing = |known: &Value| name_of(known) == field("name") && changes(known);
                let content = if !part.is_empty() && items(&self.pod, "volumes").iter().any(changing) {
                    // A part stays as it is when the container starts: the volume gets other files.
                    volume.copy()
                } else {
                    volume.clone()
                };
                let content = content.part(&part);
                let read_only = mount.get("readOnly").and_then(Value::as_bool) == Some(true);
                out.push((path, if read_only { content.read_only() } else { content }));
            }
        }
        Ok(out)
    }
}

fn failed_mount(name: &str, why: &str) -> String {
    format!("MountVolume.SetUp failed for volume \"{name}\" : {why}")
}

/// Whether the contents of a volume may change while containers run.
fn changes(volume: &Value) -> bool {
    let sources = volume.pointer("/projected/sources").and_then(Value::as_array);
    match sources {
        Some(sources) => !is_of_account(sources),
        None => ["configMap", "secret", "downwardAPI"]
            .iter()
            .any(|kind| volume.get(kind).is_some()),
    }
}

/// The path that variables give a part of a volume.
fn named_part(expression: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let mut missing = BTreeSet::new();
    let part = expand_with(expression, |name| {
        let value = env.get(name).cloned().unwrap_or_default();
        if value.is_empty() {
            missing.insert(name.to_owned());
        }
        Some(value)
    });
    if missing.is_empty() {
        return Ok(part);
    }
    let missing: Vec<String> = missing.into_iter().collect();
    Err(format!("missing value for {}", missing.join(", ")))
}

/// A part of a volume stays within it; the error is the kubelet's.
fn checked_part(part: String) -> Result<String, String> {
    if part.starts_with('/') {
        return Err(format!("error SubPath `{part}` must not be an absolute path"));
    }
    if part.split('/').any(|step| step == "..") {
        return Err(format!(
            "unable to provision SubPath `{part}`: must not contain '..'"
        ));
    }
    Ok(part)
}

/// Writes a file of a volume, in folders that are made for it. Its path has been validated.
pub(super) fn put(files: &Files, path: &str, content: &[u8], mode: u16) {
    let path = format!("/v/{path}");
    if let Some((folder, _)) = path.rsplit_once('/') {
        let _ = files.make_dir(folder, true);
    }
    let _ = files.write(&path, content, false);
    let _ = files.set_mode(&path, mode);
}

/// The modes of a volume's files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    usual: u16,
    /// The bits that a group gets to which the volume belongs.
    group: u16,
}

impl Modes {
    /// The modes of the files that come from objects. A volume that belongs to a group (`fsGroup`) can be read by it.
    pub(super) fn of_pod(pod: &Value, volume: &Value) -> Self {
        let kinds = ["configMap", "secret", "downwardAPI", "projected"];
        let given = kinds
            .iter()
            .find_map(|kind| volume.get(kind)?.get("defaultMode")?.as_u64());
        let has_group = at(pod, "spec.securityContext.fsGroup").is_some();
        Self {
            usual: given.and_then(|mode| u16::try_from(mode).ok()).unwrap_or(0o644),
            group: if has_group { 0o440 } else { 0 },
        }
    }

    /// The mode of the file that an item describes.
    pub(super) fn of(self, item: &Value) -> u16 {
        let own = item.get("mode").and_then(Value::as_u64);
        own.and_then(|mode| u16::try_from(mode).ok())
            .unwrap_or(self.usual)
            | self.group
    }
}

/// Whether a projected volume is the one that every pod has for its account. It is always there: asking for its parts would cost
/// a request per pod.
fn is_of_account(sources: &[Value]) -> bool {
    let is_token = |source: &Value| source.get("serviceAccountToken").is_some();
    let is_known = |source: &Value| {
        source
            .pointer("/configMap/name")
            .is_none_or(|name| name == ROOT_CA)
    };
    sources.iter().any(is_token)
        && sources
            .iter()
            .all(|source| is_known(source) && source.get("secret").is_none())
}

/// Labels or annotations as a file has them.
fn lines(pod: &Value, field: &str) -> String {
    let mut lines: Vec<String> = string_map(pod, field)
        .iter()
        .map(|(key, value)| format!("{key}={:?}", value.as_str().unwrap_or_default()))
        .collect();
    lines.sort();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a/b", None)]
    #[case("a..b", None)]
    #[case("/tmp", Some("error SubPath `/tmp` must not be an absolute path"))]
    #[case(
        "a/../..",
        Some("unable to provision SubPath `a/../..`: must not contain '..'")
    )]
    fn parts(#[case] part: &str, #[case] why: Option<&str>) {
        assert_eq!(checked_part(part.to_owned()).err().as_deref(), why);
    }
}
