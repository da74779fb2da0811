//! The choice of a container's program: by a pod's annotation, by its image, or by its command.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use machinery::meta::string_map;
use serde::Deserialize;
use shared_json::Value;

use super::{agnhost, builtins, web};

/// The annotation that scripts a container: this, and the container's name. Its value is a [`Program`] as JSON.
const ANNOTATION: &str = "program.fake-apiserver/";

/// Images without a program of their own: the arguments are the command.
const BARE_IMAGES: [&str; 7] = [
    "busybox", "alpine", "bash", "debian", "ubuntu", "fedora", "centos",
];

/// Images of programs that are known to serve: they run until they are stopped also in a pod that is to end.
const SERVERS: [&str; 36] = [
    "agnhost",
    "apache",
    "caddy",
    "cassandra",
    "consul",
    "coredns",
    "echo-server",
    "echoserver",
    "elasticsearch",
    "envoy",
    "etcd",
    "grafana",
    "haproxy",
    "hello-app",
    "http-echo",
    "httpbin",
    "httpd",
    "kafka",
    "mariadb",
    "memcached",
    "minio",
    "mongo",
    "mysql",
    "nats",
    "nginx",
    "nginx-unprivileged",
    "node-exporter",
    "pause",
    "postgres",
    "prometheus",
    "rabbitmq",
    "redis",
    "registry",
    "tomcat",
    "traefik",
    "whoami",
];

/// How long a program of which nothing is known runs in a pod that is to end, in milliseconds.
const TASK_MS: u64 = 100;

/// Commands that the shell runs itself, besides its table.
const SHELL_WORDS: [&str; 14] = [
    "sh", "bash", "ash", "dash", "sleep", "tail", "exit", "exec", "wait", "timeout", "env", "tini", "nohup",
    "time",
];

/// A scripted program: its exit, the answers to its probes, its output.
///
/// ```
/// let program: nodes::Program = shared_json::from_str(
///     r#"{"exits": [{"afterMs": 2000, "code": 1}], "readiness": [{"fromMs": 500, "ok": true}]}"#,
/// )?;
/// assert_eq!(program.exits[0].code, 1);
/// # Ok::<(), shared_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Program {
    /// How its runs end, the first run first; the last entry holds for all further runs. Without any it runs until stopped.
    pub exits: Vec<ExitScript>,
    /// Whether it goes on when asked to end, so that it is killed after its grace period.
    pub ignores_term: bool,
    /// Its exit code when asked to end.
    pub term_code: i32,
    /// The time that it takes to end on request, in milliseconds; by default that of the node's timing.
    pub stop_ms: Option<u64>,
    /// The results of its readiness probe, by time since its start. Before the first entry, and without any: success.
    pub readiness: Vec<ProbeAnswer>,
    /// The same for its liveness probe.
    pub liveness: Vec<ProbeAnswer>,
    /// The same for its startup probe.
    pub startup: Vec<ProbeAnswer>,
    /// Its output at the start.
    pub logs: String,
    /// A line that it prints again and again, this often in milliseconds.
    pub log_line: String,
    /// See `log_line`.
    pub log_every_ms: Option<u64>,
    /// The results of `exec`, by the command and its arguments in one line; all other commands are those of every container.
    pub commands: BTreeMap<String, Reply>,
    /// Its answers to HTTP requests on its ports, by path; without any it answers with its own name.
    pub pages: BTreeMap<String, String>,
}

/// A command's output, and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Reply {
    /// On its standard output.
    pub out: String,
    /// On its standard error.
    pub err: String,
    /// Its exit code.
    pub code: i32,
    /// What it gives instead later on, the earliest first.
    pub later: Vec<LaterReply>,
}

/// A command's output and exit code from some time on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaterReply {
    /// Milliseconds from the program's start.
    pub from_ms: u64,
    /// On its standard output.
    #[serde(default)]
    pub out: String,
    /// On its standard error.
    #[serde(default)]
    pub err: String,
    /// Its exit code.
    #[serde(default)]
    pub code: i32,
}

impl Reply {
    /// The output, the error output and the exit code so long after the program's start.
    pub(crate) fn after(&self, since: Duration) -> (&str, &str, i32) {
        let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        match self.later.iter().rev().find(|later| later.from_ms <= now_ms) {
            Some(later) => (&later.out, &later.err, later.code),
            None => (&self.out, &self.err, self.code),
        }
    }
}

/// How a run of a [`Program`] ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExitScript {
    /// Milliseconds from its start.
    pub after_ms: u64,
    /// Its exit code.
    pub code: i32,
    /// The reason shown; by default `Completed` or `Error`; `OOMKilled` can be given here.
    pub reason: String,
    /// Its termination message.
    pub message: String,
}

/// The result of a probe from some time on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProbeAnswer {
    /// Milliseconds from the program's start.
    pub from_ms: u64,
    /// Whether it succeeds.
    pub ok: bool,
    /// The text of a failure's event after "probe failed: "; by default that of a server that answers 500.
    #[serde(default)]
    pub output: String,
}

/// The script that a pod's annotation gives a container. One that cannot be read is logged and left out.
pub(crate) fn program_of(pod: &Value, container: &str) -> Option<Program> {
    let key = format!("{ANNOTATION}{container}");
    let text = string_map(pod, "annotations").get(&key)?.as_str()?;
    shared_json::from_str(text)
        .inspect_err(|error| tracing::warn!(%error, container, "read a program's annotation"))
        .ok()
}

/// Whether every container has this command.
pub(super) fn is_command(name: &str) -> bool {
    SHELL_WORDS.contains(&builtins::base_name(name))
        || web::is_command(builtins::base_name(name))
        || agnhost::is_own_name(name)
        || builtins::call(name).is_some()
}

/// The command that the shell is to run for a container; none for a program that serves until it is stopped.
pub(crate) fn argv_of(spec: &Value) -> Option<Vec<String>> {
    let list = |field: &str| -> Vec<String> {
        let items = spec.get(field).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let (command, arguments) = (list("command"), list("args"));
    let image = spec.get("image").and_then(Value::as_str).unwrap_or_default();
    let bare = BARE_IMAGES.contains(&short_name(image));
    let mut argv = command;
    if !argv.is_empty() || bare {
        argv.extend(arguments);
    }
    if argv.is_empty() && bare {
        argv.push("sh".to_owned());
    }
    let first = argv.first()?;
    let known = is_command(first);
    // What a bare image does not have cannot be run; another image has its own programs.
    (known || (bare && !first.contains('/'))).then_some(argv)
}

/// `nginx` of `registry.example.com/library/nginx:1.7.9`.
pub(super) fn short_name(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next().unwrap_or_default()
}

/// The ports of a server's image as it is made. None for other images, and where the container may have told the server other
/// ones: by a command, by arguments or by a mount over its configuration.
pub(crate) fn own_ports(spec: &Value) -> Option<&'static [u16]> {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let image = text("image");
    let (ports, configuration): (&[u16], &str) = match short_name(image) {
        "nginx" => (&[80], "/etc/nginx"),
        "httpd" => (&[80], "/usr/local/apache2/conf"),
        "memcached" => (&[11211], "/etc"),
        "redis" => (&[6379], "/etc"),
        "tomcat" => (&[8080], "/usr/local/tomcat/conf"),
        _ => return None,
    };
    // Other publishers' images of one name have ports of their own.
    let publisher = image.rsplit('/').nth(1).unwrap_or("library");
    let is_known = matches!(publisher, "library" | "e2e-test-images") || publisher.contains(['.', ':']);
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let is_plain = list("command").chain(list("args")).next().is_none();
    let is_configured = list("volumeMounts")
        .filter_map(|mount| mount.get("mountPath").and_then(Value::as_str))
        .map(|path| (Path::new(path), Path::new(configuration)))
        .any(|(path, configuration)| path.starts_with(configuration) || configuration.starts_with(path));
    (is_known && is_plain && !is_configured).then_some(ports)
}

/// Where the image of a known web server keeps its pages.
pub(crate) fn document_root(image: &str) -> Option<&'static str> {
    match short_name(image) {
        "nginx" => Some("/usr/share/nginx/html"),
        "httpd" => Some("/usr/local/apache2/htdocs"),
        _ => None,
    }
}

/// The files below the root that an image of Kubernetes' tests is known for: a page of the demonstration of updates, and the
/// certificate of `agnhost`, whose probes ask for it.
pub(crate) fn files_of_image(image: &str) -> &'static [(&'static str, &'static str)] {
    match short_name(image) {
        "kitten" => &[
            ("data.json", "{\n  \"image\": \"kitten.jpg\"\n}\n"),
            ("etc/os-release", "NAME=\"Alpine Linux\"\nID=alpine\n"),
        ],
        "nautilus" => &[
            ("data.json", "{\n  \"image\": \"nautilus.jpg\"\n}\n"),
            ("etc/os-release", "NAME=\"Alpine Linux\"\nID=alpine\n"),
        ],
        "agnhost" => &[
            (
                "localhost.crt",
                "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            ),
            (
                "localhost.key",
                "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
            ),
        ],
        _ => &[],
    }
}

/// The program of an image of the demonstration of updates: it serves its page.
pub(crate) fn page_program(image: &str) -> Option<Program> {
    let (name, text) = files_of_image(image)
        .first()
        .filter(|(name, _)| *name == "data.json")?;
    Some(Program {
        pages: BTreeMap::from([(format!("/{name}"), (*text).to_owned())]),
        ..Program::default()
    })
}

/// The program of the image that says which user it is after it has asked for root: it is root unless the container forbids that.
pub(crate) fn privileges_program(image: &str, spec: &Value) -> Option<Program> {
    let context = |field: &str| spec.get("securityContext")?.get(field);
    if short_name(image) != "nonewprivs" {
        return None;
    }
    let forbids = context("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false);
    let user = context("runAsUser").and_then(Value::as_u64).filter(|_| forbids);
    let exit = ExitScript {
        after_ms: TASK_MS,
        ..ExitScript::default()
    };
    Some(Program {
        logs: format!("Effective uid: {}\n", user.unwrap_or_default()),
        exits: vec![exit],
        ..Program::default()
    })
}

/// The program of a container in a pod that is to end (`restartPolicy` `Never` or `OnFailure`) whose image and command are
/// unknown: it does its work for a moment and ends well, so that a Job completes. None if the pod is to serve, or if the image
/// is one of a known server.
pub(crate) fn task_of(pod: &Value, spec: &Value) -> Option<Program> {
    let text = |object: &Value, field: &str| -> String {
        let value = object.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let restarts = pod.get("spec").map(|spec| text(spec, "restartPolicy"));
    let is_to_end = restarts.is_some_and(|policy| matches!(policy.as_str(), "Never" | "OnFailure"));
    // A container may restart by a rule of its own: a sidecar does.
    let ends = is_to_end && text(spec, "restartPolicy") != "Always";
    let exit = ExitScript {
        after_ms: TASK_MS,
        ..ExitScript::default()
    };
    (ends && !SERVERS.contains(&short_name(&text(spec, "image")))).then(|| Program {
        exits: vec![exit],
        ..Program::default()
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"image": "nginx:alpine"}), None)]
    #[case(json!({"image": "busybox"}), Some("sh"))]
    #[case(json!({"image": "docker.io/library/busybox:1.36", "args": ["sleep", "1"]}), Some("sleep 1"))]
    #[case(json!({"image": "nginx", "args": ["-g", "daemon off;"]}), None)]
    #[case(json!({"image": "nginx", "command": ["/bin/sh", "-c"], "args": ["sleep 1"]}), Some("/bin/sh -c sleep 1"))]
    #[case(json!({"image": "app:1", "command": ["/app/server"]}), None)]
    #[case(json!({"image": "app:1", "command": ["true"]}), Some("true"))]
    fn what_a_container_runs(#[case] spec: Value, #[case] expected: Option<&str>) {
        assert_eq!(argv_of(&spec).map(|argv| argv.join(" ")).as_deref(), expected);
    }

    #[rstest]
    #[case(json!({"image": "nginx:alpine"}), Some(80))]
    #[case(json!({"image": "registry.example.com/library/httpd"}), Some(80))]
    #[case(json!({"image": "registry.k8s.io/e2e-test-images/nginx:1.14-4", "ports": [{"containerPort": 8080}]}), Some(80))]
    #[case(json!({"image": "localhost:5000/redis", "volumeMounts": [{"mountPath": "/data"}]}), Some(6379))]
    #[case(json!({"image": "redis", "args": ["--port", "7000"]}), None)]
    #[case(json!({"image": "nginx", "command": ["/bin/server"]}), None)]
    #[case(json!({"image": "nginx", "volumeMounts": [{"mountPath": "/etc/nginx/conf.d"}]}), None)]
    #[case(json!({"image": "nginx", "volumeMounts": [{"mountPath": "/etc"}]}), None)]
    #[case(json!({"image": "nginx", "volumeMounts": [{"mountPath": "/etc/nginx/"}]}), None)]
    #[case(json!({"image": "nginx", "volumeMounts": [{"mountPath": "/etc/nginx-certs"}]}), Some(80))]
    #[case(json!({"image": "redis", "volumeMounts": [{"mountPath": "/etcetera"}]}), Some(6379))]
    #[case(json!({"image": "bitnami/nginx"}), None)]
    #[case(json!({"image": "app:1"}), None)]
    fn a_known_server_has_its_own_ports(#[case] spec: Value, #[case] port: Option<u16>) {
        let ports = own_ports(&spec).map(<[u16]>::to_vec);
        assert_eq!(ports, port.map(|port| vec![port]));
    }

    #[rstest]
    #[case("Never", json!({"image": "registry.example.com/certgen:v1"}), true)]
    #[case("OnFailure", json!({"image": "app:1", "command": ["/app/migrate"]}), true)]
    #[case("Always", json!({"image": "app:1"}), false)]
    #[case("Never", json!({"image": "nginx:1.7.9"}), false)]
    #[case("Never", json!({"image": "registry.k8s.io/pause:3.10"}), false)]
    #[case("Never", json!({"image": "app:1", "restartPolicy": "Always"}), false)]
    fn unknown_programs_of_pods_that_are_to_end(
        #[case] policy: &str,
        #[case] container: Value,
        #[case] ends: bool,
    ) {
        let pod = json!({"spec": {"restartPolicy": policy}});
        let task = task_of(&pod, &container);
        assert_eq!(task.is_some_and(|task| task.exits.len() == 1), ends);
    }

    #[rstest]
    #[case(0, ("", "not yet", 1))]
    #[case(1999, ("", "not yet", 1))]
    #[case(2000, ("data", "", 0))]
    #[case(60_000, ("gate", "", 0))]
    fn what_a_command_gives_by_time(#[case] since_ms: u64, #[case] expected: (&str, &str, i32)) {
        let reply: Reply = shared_json::from_value(json!({
            "err": "not yet", "code": 1, "later": [{"fromMs": 2000, "out": "data"}, {"fromMs": 9000, "out": "gate"}],
        }))
        .expect("a reply");
        assert_eq!(reply.after(Duration::from_millis(since_ms)), expected);
    }

    #[test]
    fn an_annotation_scripts_a_container() {
        let pod = json!({"metadata": {"annotations": {
            "program.fake-apiserver/a": "{\"ignoresTerm\": true}", "program.fake-apiserver/b": "{\"nonsense\": 1}",
        }}});
        assert!(program_of(&pod, "a").is_some_and(|program| program.ignores_term));
        assert_eq!(program_of(&pod, "b"), None);
        assert_eq!(program_of(&pod, "c"), None);
    }
}
