//! Starting a container: its image, its configuration, its program.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Credential, EventType, Seed, credentials};
use machinery::meta::{ObjectMeta, at};
use machinery::types::rfc3339;
use network::Variables;
use shared_json::{Text, Value};
use tokio::time::Instant;

use super::account::{self, is_named_in};
use super::backoff::{go_duration, go_fraction};
use super::environment::expand;
use super::events::field_path;
use super::hooks::strings;
use super::sync::Pass;
use super::volumes::SHARED_MEMORY;
use super::worker::{Gone, PodWorker};
use crate::containers::{ContainerInfo, Handle, Place};
use crate::images;
use crate::nic::Nic;
use crate::programs::{
    Agnhost, ContainerProgram, Exit, Files, ImageProgram, Launch, NativeLaunch, OutsideContainer,
    Surroundings, Volume, argv_of, asks_api_server, document_root, files_of_image, is_agnhost, launch,
    own_ports, page_program, privileges_program, program_of, task_of, words_of,
};
use crate::status::{Instance, Kind, items, name_of, should_restart};
use crate::timing::vary;

/// Why a container was not started: the reason and message that are shown.
#[derive(Clone)]
pub(super) struct Blocked {
    pub reason: String,
    pub message: String,
}

impl Blocked {
    pub(super) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// Why images that are volumes are not there, by the volume's name.
pub(super) type Missing = BTreeMap<String, Blocked>;

fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl PodWorker {
    /// Tries to start a container. Whether anything runs that did not.
    pub(super) async fn start(&mut self, name: &str, done: &mut Pass) -> Result<bool, Gone> {
        let Some(container) = self
            .record
            .containers
            .iter()
            .find(|container| container.name == name)
        else {
            return Ok(false);
        };
        let (kind, Some(spec)) = (container.kind, self.spec_of(name).cloned()) else {
            return Ok(false);
        };
        let may_begin = self.back_off(name, kind, &spec, done).and_then(|()| {
            self.lacks_volume(kind, name, &spec, &done.missing)
                .map_or(Ok(()), Err)
        });
        let result = match may_begin {
            Err(blocked) => Err(blocked),
            Ok(()) => match self.pull(kind, name, &spec).await? {
                Err(blocked) => Err(blocked),
                Ok(()) => self.create(kind, name, &spec).await?,
            },
        };
        let started = result.is_ok();
        if let Some(container) = self
            .record
            .containers
            .iter_mut()
            .find(|container| container.name == name)
        {
            container.blocked = result.err().map(|blocked| (blocked.reason, blocked.message));
        }
        Ok(started)
    }

    /// A container that ends too often waits longer each time. The end that counts is the one that the pass saw when it began: a
    /// container that the pass has killed itself begins again as if it had not run after the end before.
    fn back_off(&mut self, name: &str, kind: Kind, spec: &Value, done: &mut Pass) -> Result<(), Blocked> {
        let ended = match done.killed.get(name) {
            // Where it is known how long a change of the definition took, nothing else waits.
            Some(_) if self.known_redefinition().is_some() => return Ok(()),
            Some(before) => *before,
            None => self.ended_at.get(name).copied(),
        };
        let Some(ended) = ended else {
            return Ok(());
        };
        let now = Instant::now();
        // The delay belongs to a container as it is defined.
        let resources = spec.get("resources").map(Value::to_string).unwrap_or_default();
        let key = format!("{name}/{}/{resources}", text_of(spec, "image"));
        let Err(delay) = self.restarts.restart(&key, ended, now) else {
            return Ok(());
        };
        if self.has_waited_as_known(now) {
            return Ok(());
        }
        let over = ended + delay;
        done.waits_until = Some(done.waits_until.map_or(over, |known| known.min(over)));
        let pod = format!("{}_{}({})", self.pod.name(), self.pod.namespace(), self.pod.uid());
        self.warning(
            kind,
            name,
            "BackOff",
            format!("Back-off restarting failed container {name} in pod {pod}"),
        );
        let delay = go_duration(delay);
        let message = format!("back-off {delay} restarting failed container={name} pod={pod}");
        Err(Blocked::new("CrashLoopBackOff", message))
    }

    /// Gets the image of a container onto the node.
    async fn pull(&mut self, kind: Kind, name: &str, spec: &Value) -> Result<Result<(), Blocked>, Gone> {
        let (image, policy) = (text_of(spec, "image"), text_of(spec, "imagePullPolicy"));
        let path = Some(field_path(kind, name));
        let pulled = self.pull_image(path, image, policy).await?;
        if let Err(blocked) = &pulled {
            self.warning(kind, name, "Failed", format!("Error: {}", blocked.reason));
        }
        Ok(pulled)
    }

    /// Gets the images onto the node that are volumes of the pod. Those that do not come, by the volume's name.
    pub(super) async fn pull_volumes(&mut self) -> Result<Missing, Gone> {
        let images: Vec<Value> = items(&self.pod, "volumes")
            .iter()
            .filter(|volume| volume.get("image").is_some())
            .cloned()
            .collect();
        let mut missing = BTreeMap::new();
        for volume in images {
            let image = volume.get("image").unwrap_or(&Value::Null);
            let (reference, policy) = (text_of(image, "reference"), text_of(image, "pullPolicy"));
            if let Err(blocked) = self.pull_image(None, reference, policy).await? {
                missing.insert(name_of(&volume).to_owned(), blocked);
            }
        }
        Ok(missing)
    }

    /// Why a container cannot have the images that it mounts, if it cannot: the error of the last missing one.
    fn lacks_volume(&self, kind: Kind, name: &str, spec: &Value, missing: &Missing) -> Option<Blocked> {
        let mounts = spec.get("volumeMounts").and_then(Value::as_array);
        let lacking = mounts
            .into_iter()
            .flatten()
            .filter_map(|mount| missing.get(name_of(mount)));
        let mut last = None;
        for blocked in lacking {
            self.warning(kind, name, "Failed", format!("Error: {}", blocked.reason));
            last = Some(blocked.clone());
        }
        last
    }

    /// Gets an image onto the node. `path`: the field of the pod that asks for it, if that is a container.
    async fn pull_image(
        &mut self,
        path: Option<String>,
        image: &str,
        policy: &str,
    ) -> Result<Result<(), Blocked>, Gone> {
        let say = |worker: &Self, severity: EventType, reason: &str, message: String| {
            worker.write_event(path.clone(), severity, reason, message);
        };
        if let Some(blocked) = invalid_name(image) {
            say(self, EventType::Warning, "InspectFailed", blocked.message.clone());
            return Ok(Err(blocked));
        }
        let node = self.kubelet.spec.name.clone();
        let known = self.kubelet.images.get(image);
        let present = self.kubelet.images.is_on(&node, image) && known.failure.is_none();
        if policy == "Never" && !present {
            let message = format!("Container image \"{image}\" is not present with pull policy of Never");
            say(self, EventType::Warning, "ErrImageNeverPull", message.clone());
            return Ok(Err(Blocked::new("ErrImageNeverPull", message)));
        }
        if policy != "Always" && present {
            let text = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            say(self, EventType::Normal, "Pulled", text);
            return Ok(Ok(()));
        }
        if self.pulls.waits(image, Instant::now()) {
            let message = format!("Back-off pulling image \"{image}\"");
            say(self, EventType::Normal, "BackOff", message.clone());
            let why = self.pull_failures.get(image).map_or("", String::as_str);
            return Ok(Err(Blocked::new(
                "ImagePullBackOff",
                format!("{message}: ErrImagePull: {why}"),
            )));
        }
        say(
            self,
            EventType::Normal,
            "Pulling",
            format!("Pulling image \"{image}\""),
        );
        let asked = Instant::now();
        let kubelet = Arc::clone(&self.kubelet);
        // A registry that has nothing to send answers many at once; what has to come comes one after the other.
        let turn = match present {
            true => None,
            false => Some(kubelet.pulling.lock().await),
        };
        // Of what is there by now only the name is asked for.
        let pull = kubelet.images.pull_time(&node, image);
        let took = vary(pull, &mut self.random);
        tokio::time::sleep(took).await;
        self.pause(Duration::ZERO).await?;
        let credentials = match known.credential.is_some() {
            true => self.credentials(image).await,
            false => Vec::new(),
        };
        let pulled = kubelet.images.pulled(&node, image, &credentials);
        drop(turn);
        if let Err(error) = pulled {
            let why = error.of_kubelet();
            self.pulls.failed(image, Instant::now(), Instant::now());
            self.pull_failures.insert(image.to_owned(), why.clone());
            let message = format!("Failed to pull image \"{image}\": {why}");
            say(self, EventType::Warning, "Failed", message);
            return Ok(Err(Blocked::new("ErrImagePull", why)));
        }
        self.pulls.forget(image);
        self.pull_failures.remove(image);
        let (pulled, waited) = (go_fraction(took), go_fraction(asked.elapsed()));
        let size = known.size_bytes;
        let text = format!(
            "Successfully pulled image \"{image}\" in {pulled} ({waited} including waiting). Image size: {size} bytes."
        );
        say(self, EventType::Normal, "Pulled", text);
        Ok(Ok(()))
    }

    /// Creates the container and starts its program.
    async fn create(&mut self, kind: Kind, name: &str, spec: &Value) -> Result<Result<(), Blocked>, Gone> {
        let (env, mounts) = match self.surroundings(name, spec).await {
            Ok(surroundings) => surroundings,
            Err(message) => {
                self.warning(kind, name, "Failed", format!("Error: {message}"));
                return Ok(Err(Blocked::new("CreateContainerConfigError", message)));
            }
        };
        self.pause(self.timing().create).await?;
        self.normal(kind, name, "Created", "Container created");
        self.pause(self.timing().start).await?;
        self.normal(kind, name, "Started", "Container started");
        self.run_program(name, spec, env, mounts);
        self.began_at = Instant::now();
        self.waits_since = None;
        self.changes += 1;
        if let Err(blocked) = self.post_start(kind, name, spec).await? {
            return Ok(Err(blocked));
        }
        Ok(Ok(()))
    }

    /// The variables of a container and its mounts; the error says why it cannot be made.
    async fn surroundings(
        &mut self,
        name: &str,
        spec: &Value,
    ) -> Result<(BTreeMap<String, String>, Vec<(String, Volume)>), String> {
        let env = self.environment(spec).await?;
        let words = [strings(spec.get("command")), strings(spec.get("args"))].concat();
        let image = text_of(spec, "image");
        // A program in Rust may read any file, and nobody sees which.
        let reads_any = self.kubelet.programs.get(image).is_some();
        let is_client = is_agnhost(image) && asks_api_server(&words);
        if reads_any || is_client || is_named_in(words.iter().map(String::as_str)) {
            self.fill_account().await;
        }
        let mounts = self.mounts_of(spec, &env)?;
        if is_root_against_its_word(&self.pod, spec) {
            let pod = format!("{}_{}({})", self.pod.name(), self.pod.namespace(), self.pod.uid());
            return Err(format!(
                "container's runAsUser breaks non-root policy (pod: \"{pod}\", container: {name})"
            ));
        }
        Ok((env, mounts))
    }

    /// The credentials of the pod's Secrets for an image.
    async fn credentials(&self, image: &str) -> Vec<Credential> {
        let mut found = Vec::new();
        for reference in items(&self.pod, "imagePullSecrets") {
            let name = name_of(reference);
            let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.pod.namespace());
            let secret = self.get(&path).await;
            let secret = secret.and_then(|secret| shared_json::from_value(secret).ok());
            found.extend(secret.iter().flat_map(|secret| credentials(secret, image)));
        }
        found
    }

    /// Says so if credentials for images are missing. Images come nevertheless.
    pub(super) async fn look_for_pull_secrets(&self) {
        let mut missing = Vec::new();
        for reference in items(&self.pod, "imagePullSecrets") {
            let name = name_of(reference);
            let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.pod.namespace());
            if !name.is_empty() && self.get(&path).await.is_none() {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let message = format!(
                "Unable to retrieve some image pull secrets ({missing}); attempting to pull the image may not succeed."
            );
            self.pod_event(EventType::Warning, "FailedToRetrieveImagePullSecret", message);
        }
    }

    fn run_program(
        &mut self,
        name: &str,
        spec: &Value,
        env: BTreeMap<String, String>,
        mounts: Vec<(String, Volume)>,
    ) {
        let mut bytes = [0_u8; 32];
        self.random.fill(&mut bytes);
        let id = client_kit::hex(&bytes);
        let image = spec.get("image").and_then(Value::as_str).unwrap_or_default();
        let instance = Instance {
            id: format!("containerd://{id}").into(),
            image: images::canonical(image).into(),
            image_id: self.kubelet.images.image_id(image).into(),
            started: rfc3339(self.kubelet.clock.now_seconds()).into(),
            ended: None,
        };
        let id = instance.id.clone();
        let stop = vary(self.timing().stop, &mut self.random);
        let links = self.links();
        let Some(container) = self
            .record
            .containers
            .iter_mut()
            .find(|container| container.name == name)
        else {
            return;
        };
        if let Some(before) = container.current.replace(instance) {
            container.previous = Some(Box::new(before));
            container.restarts += 1;
        }
        container.spec_image = image.into();
        let given = container.allocated.as_ref().or_else(|| spec.get("resources"));
        container.resources = given.cloned().unwrap_or(Value::Null);
        let simple = container.kind == Kind::Init || container.kind == Kind::Ephemeral;
        container.started = simple || spec.get("startupProbe").is_none();
        container.ready = simple || spec.get("readinessProbe").is_none();
        let run = container.restarts;
        let registered = self.kubelet.images.registered(image);
        let is_registered = registered.is_some();
        let mut program = program_of(&self.pod, name)
            .or_else(|| registered?.program)
            .or_else(|| page_program(image))
            .or_else(|| privileges_program(image, spec));
        // An init container without a command of its own is taken to do its work and end.
        let known: BTreeMap<String, String> = links
            .iter()
            .chain(&env)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let argv: Option<Vec<String>> = argv_of(spec)
            .map(|argv| argv.iter().map(|word| expand(word, &known)).collect())
            .or_else(|| (container.kind == Kind::Init && program.is_none()).then(|| vec!["true".to_owned()]));
        let image_program = if program.is_none() && !is_registered {
            self.image_program(spec, &known)
        } else {
            None
        };
        let native = self.native(spec, &known);
        let is_known = image_program.is_some() || native.is_some() || argv.is_some();
        if program.is_none() && !is_known && !is_registered {
            program = task_of(&self.pod, spec);
        }
        self.kubelet.access.arrived(&self.pod, &self.record.pod_ip);
        let nic = self.nic();
        let files = Files::with_mounts(mounts)
            .with_pages(document_root(image))
            .with_image(files_of_image(image))
            .with_network(&nic, Text::from(name))
            .with_read_only_root(
                at(spec, "securityContext.readOnlyRootFilesystem").and_then(Value::as_bool) == Some(true),
            );
        let outside = self.kubelet.outside.as_ref().and_then(|programs| {
            programs.program(&OutsideContainer {
                pod: &self.pod,
                spec,
                command: words(spec, "command", &known),
                args: words(spec, "args", &known),
                env: &env,
                files: &|| files.in_mounts(|path| path != SHARED_MEMORY),
            })
        });
        let hostname = at(&self.pod, "spec.hostname")
            .and_then(Value::as_str)
            .unwrap_or_else(|| self.pod.name());
        let flag = |field: &str| spec.get(field).and_then(Value::as_bool).unwrap_or_default();
        // A script of the cluster, or a program elsewhere, listens where it likes.
        let own_ports = own_ports(spec).filter(|_| program.is_none() && outside.is_none());
        let process = launch(
            Launch {
                run,
                program,
                argv,
                image_program,
                native,
                outside,
                env,
                nic,
                links,
                hostname: hostname.to_owned(),
                own_ports,
                clock: Arc::clone(&self.kubelet.clock),
                files,
                stdin: flag("stdin"),
                tty: flag("tty"),
                stdin_once: flag("stdinOnce"),
                stop,
            },
            (name.to_owned(), run),
            self.exits.0.clone(),
        );
        self.kubelet
            .access
            .started(self.pod.uid(), name, &id, Arc::clone(&process.run));
        if let Some(containers) = &self.kubelet.containers {
            let info = ContainerInfo {
                name: name.to_owned(),
                id: id.to_string(),
                image: image.to_owned(),
                restarts: run,
                env: process.run.env.clone(),
                pre_stop: at(spec, "lifecycle.preStop").cloned().unwrap_or_default(),
                started: self.kubelet.clock.now(),
                running: true,
            };
            let place = Place {
                node: self.kubelet.spec.name.clone(),
                address: self.record.pod_ip.to_string(),
                pod: (self.pod.namespace().to_owned(), self.pod.name().to_owned()),
                spec: spec.clone(),
            };
            let handle = Handle {
                place,
                run: Arc::clone(&process.run),
                term: process.term(),
                serves: process.serves,
                exits: self.exits.0.clone(),
            };
            containers.started(self.pod.uid(), info, handle);
        }
        self.probes.add(name, spec, &process);
        self.processes.insert(name, Box::new(process));
    }

    /// The program of a container's image, if that is known by name.
    fn image_program(&self, spec: &Value, env: &BTreeMap<String, String>) -> Option<ImageProgram> {
        let image = text_of(spec, "image");
        if !ImageProgram::is_known(image) {
            return None;
        }
        let mut seed = [0; 8];
        self.random.clone().fill(&mut seed);
        let surroundings = Surroundings {
            objects: self.kubelet.objects.clone(),
            clock: Arc::clone(&self.kubelet.clock),
            random: Seed(u64::from_le_bytes(seed)).random(),
        };
        ImageProgram::of(
            &words(spec, "command", env),
            words(spec, "args", env),
            surroundings,
        )
    }

    /// Fills the volume of the pod's service account.
    async fn fill_account(&self) {
        let volumes = items(&self.pod, "volumes").iter();
        for volume in volumes.filter(|volume| account::is_usual(volume)) {
            if let Some(content) = self.volumes.get(name_of(volume)) {
                account::fill(&self.kubelet.client, &self.pod, volume, content).await;
            }
        }
    }

    /// The program in Rust of a container's image, if there is one.
    fn native(&self, spec: &Value, env: &BTreeMap<String, String>) -> Option<NativeLaunch> {
        let image = text_of(spec, "image");
        let given = self.kubelet.programs.get(image);
        if given.is_none() && !is_agnhost(image) {
            return None;
        }
        let (command, args) = (words(spec, "command", env), words(spec, "args", env));
        let runs = words_of(&command, &args).is_some();
        let built_in = || runs.then(|| Arc::new(Agnhost) as Arc<dyn ContainerProgram>);
        let program = given.or_else(built_in)?;
        let mut seed = [0; 8];
        self.random.clone().fill(&mut seed);
        Some(NativeLaunch {
            program,
            command,
            args,
            random: Seed(u64::from_le_bytes(seed)).random(),
        })
    }

    async fn post_start(
        &mut self,
        kind: Kind,
        name: &str,
        spec: &Value,
    ) -> Result<Result<(), Blocked>, Gone> {
        let Some(hook) = at(spec, "lifecycle.postStart")
            .filter(|hook| hook.is_object())
            .cloned()
        else {
            return Ok(Ok(()));
        };
        let result = self.hook(name, &hook).await;
        self.pause(Duration::ZERO).await?;
        let Err(message) = result else {
            return Ok(Ok(()));
        };
        self.event(
            kind,
            name,
            EventType::Warning,
            "FailedPostStartHook",
            "PostStartHook failed".to_owned(),
        );
        self.normal(kind, name, "Killing", "FailedPostStartHook");
        self.stop(vec![name.to_owned()], None).await?;
        let goes_on = self
            .record
            .containers
            .iter()
            .any(|container| container.name == name && should_restart(container, &self.pod));
        if !goes_on {
            return Ok(Ok(()));
        }
        Ok(Err(Blocked::new("PostStartHookError", message)))
    }

    /// The pod's network.
    pub(super) fn nic(&self) -> Nic {
        Nic::new(&self.kubelet.host, self.pod.meta_text("uid"))
    }

    /// The variables of Services, as of now.
    pub(super) fn links(&self) -> Variables {
        self.nic().service_variables()
    }

    /// Ends a container as a signal that cannot be caught does.
    pub(super) fn kill(&mut self, name: &str) {
        self.end(
            name,
            Exit {
                code: 137,
                ..Exit::default()
            },
        );
    }
}

/// The words of a container's `command` or `args`, with their variables filled in.
fn words(spec: &Value, field: &str, env: &BTreeMap<String, String>) -> Vec<String> {
    let words = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    words
        .filter_map(Value::as_str)
        .map(|word| expand(word, env))
        .collect()
}

/// Whether a container is to run as root, and is not to, too.
fn is_root_against_its_word(pod: &Value, container: &Value) -> bool {
    let of = |field: &str| {
        let of = |object: &Value| {
            object
                .get("securityContext")
                .and_then(|context| context.get(field))
                .cloned()
        };
        of(container).or_else(|| of(pod.get("spec")?))
    };
    of("runAsNonRoot") == Some(Value::from(true)) && of("runAsUser") == Some(Value::from(0))
}

/// A reference that cannot be one.
fn invalid_name(image: &str) -> Option<Blocked> {
    let name = image.split('@').next().unwrap_or_default();
    let repository = match name.rfind('/') {
        Some(at) => &name[..at + name[at..].find(':').unwrap_or(name.len() - at)],
        None => name.split(':').next().unwrap_or_default(),
    };
    let path = repository.split_once('/').map_or(repository, |(first, rest)| {
        if first.contains(['.', ':']) {
            rest
        } else {
            repository
        }
    });
    let valid = !path.is_empty()
        && path.chars().all(|c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '/' | ':')
        });
    if valid {
        return None;
    }
    let why = if path.chars().any(|c| c.is_ascii_uppercase()) && !path.contains(char::is_whitespace) {
        let full = if path.contains('/') {
            path.to_owned()
        } else {
            format!("library/{path}")
        };
        format!("invalid reference format: repository name ({full}) must be lowercase")
    } else {
        "invalid reference format".to_owned()
    };
    Some(Blocked::new(
        "InvalidImageName",
        format!(
            "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": {why}"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::nothing(json!({}), json!({}), false)]
    #[case::both(json!({}), json!({"runAsNonRoot": true, "runAsUser": 0}), true)]
    #[case::root_alone(json!({}), json!({"runAsUser": 0}), false)]
    #[case::another_user(json!({}), json!({"runAsNonRoot": true, "runAsUser": 1}), false)]
    #[case::may_be_root(json!({}), json!({"runAsNonRoot": false, "runAsUser": 0}), false)]
    #[case::of_the_pod(json!({"runAsNonRoot": true, "runAsUser": 0}), json!({}), true)]
    #[case::half_of_the_pod(json!({"runAsNonRoot": true}), json!({"runAsUser": 0}), true)]
    #[case::its_own_counts(json!({"runAsNonRoot": true, "runAsUser": 0}), json!({"runAsUser": 1}), false)]
    #[case::its_own_word_counts(json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false, "runAsUser": 0}), false)]
    #[case::image_unknown(json!({"runAsNonRoot": true}), json!({}), false)]
    fn root_or_not(#[case] pod: Value, #[case] container: Value, #[case] expected: bool) {
        let pod = json!({"spec": {"securityContext": pod}});
        let container = json!({"name": "a", "securityContext": container});
        assert_eq!(is_root_against_its_word(&pod, &container), expected);
    }

    #[rstest]
    #[case("nginx:1.7.9", true)]
    #[case("registry.example.com:5000/a/b_c:Tag", true)]
    #[case("docker.io/library/busybox@sha256:aa", true)]
    #[case("Nginx", false)]
    #[case("a b", false)]
    #[case("", false)]
    #[case("localhost:5000/x", true)]
    fn names_of_images(#[case] image: &str, #[case] valid: bool) {
        assert_eq!(invalid_name(image).is_none(), valid);
    }
}
