//! Pods whose programs are processes of this machine.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use shared_json::{Value, json};

use crate::process::{Directory, Program, client, real_time, serve};
use crate::served::ask;
use crate::streams::exec;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A server whose images are these, with one node.
async fn start(directory: &Directory, images: Value) -> (Program, Client) {
    let file = directory.0.join("images.yaml");
    // JSON is YAML.
    std::fs::write(&file, json!({"images": images}).to_string()).expect("a file");
    let kubeconfig = directory.0.join("kubeconfig");
    let file = file.to_str().expect("a path");
    let server = serve(&kubeconfig, &["--nodes", "1", "--run-images", file]);
    (server, client(&kubeconfig).await)
}

async fn run(client: &Client, name: &str, container: Value, more: Value) {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [crate::support::with(json!({"name": "c"}), container)]},
    });
    pod["spec"] = crate::support::with(pod["spec"].take(), more);
    let (code, made) = ask(client, "POST", PODS, pod, &[]).await;
    assert_eq!(code, 201, "{made}");
}

/// The pod once `is_so` says so.
async fn until(client: &Client, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let (_, pod) = ask(client, "GET", &format!("{PODS}/{name}"), Value::Null, &[]).await;
        if is_so(&pod) {
            return pod;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Ends a server as a terminal does, so that it ends the processes of its pods: one that is killed leaves them behind.
fn ask_to_end(server: &mut Program) {
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &server.0.id().to_string()])
        .status();
    assert!(asked.expect("to ask").success());
    assert_eq!(server.0.wait().expect("an end").code(), Some(0));
}

fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

async fn log(client: &Client, name: &str) -> String {
    let request = http::Request::get(format!("{PODS}/{name}/log"));
    let text = client
        .request_text(request.body(Vec::new()).expect("a request"))
        .await;
    text.expect("a log")
}

fn exit_code(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
}

#[test]
fn a_program_has_its_words_variables_files_and_ends() {
    let directory = Directory::new("program");
    real_time(async {
        let script = "echo \"$0 $1 $A $B $(pwd)\"; cat \"$VOLUMES_DIR/etc/m/key\" \"$SERVICE_ACCOUNT_DIR/namespace\"; \
                      echo; test -s \"$SERVICE_ACCOUNT_DIR/token\" && echo token; echo wrong >&2; exit 3";
        let (_server, client) = start(
            &directory,
            json!([{"name": "example.com/tool:*", "command": ["sh", "-c", script, "tool"], "env": {"A": "file", "B": "file of $(HOSTNAME)"}, "directory": "/"}]),
        )
        .await;
        let map = json!({"metadata": {"name": "m"}, "data": {"key": "value of key, "}});
        assert_eq!(
            ask(&client, "POST", "/api/v1/namespaces/default/configmaps", map, &[])
                .await
                .0,
            201
        );
        let container = json!({
            "image": "example.com/tool:1", "command": ["/in/image"], "args": ["$(B)-arg"],
            "env": [{"name": "B", "value": "pod"}], "volumeMounts": [{"name": "v", "mountPath": "/etc/m"}],
        });
        run(
            &client,
            "p",
            container,
            json!({"volumes": [{"name": "v", "configMap": {"name": "m"}}]}),
        )
        .await;
        let pod = until(&client, "p", is_over).await;
        assert_eq!(
            (&pod["status"]["phase"], exit_code(&pod)),
            (&json!("Failed"), &json!(3)),
            "{pod}"
        );
        let log = log(&client, "p").await;
        // The lines of the two streams come in any order.
        let (errors, lines): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| *line == "wrong");
        assert_eq!(
            (errors.len(), lines.as_slice()),
            (
                1,
                ["tool pod-arg file file of p /", "value of key, default", "token"].as_slice()
            )
        );
    });
}

/// The program `fake-apiserver` itself asks the server, as the pod's service account.
#[test]
fn a_program_is_its_service_account() {
    let directory = Directory::new("account");
    real_time(async {
        let command = [
            env!("CARGO_BIN_EXE_fake-apiserver"),
            "clock",
            "status",
            "--kubeconfig",
            "$(KUBECONFIG)",
        ];
        let (_server, client) = start(&directory, json!([{"name": "clock", "command": command}])).await;
        run(&client, "p", json!({"image": "clock"}), json!({})).await;
        let pod = until(&client, "p", is_over).await;
        let log = log(&client, "p").await;
        assert_eq!(exit_code(&pod), &json!(1), "{log}");
        assert!(
            log.contains("User \"system:serviceaccount:default:default\" cannot get path \"/fake/clock\""),
            "{log}"
        );
    });
}

#[test]
fn a_program_that_is_not_there_fails() {
    let directory = Directory::new("absent");
    real_time(async {
        let (_server, client) = start(
            &directory,
            json!([{"name": "none", "command": ["/no/such/program"]}]),
        )
        .await;
        run(&client, "p", json!({"image": "none"}), json!({})).await;
        let pod = until(&client, "p", is_over).await;
        assert_eq!(exit_code(&pod), &json!(127), "{pod}");
        let log = log(&client, "p").await;
        assert!(
            log.starts_with("failed to start the container: run /no/such/program: "),
            "{log}"
        );
    });
}

/// The program has a copy of a volume's files. A command of `exec` runs in the simulation: it has the volume, and none of the program's
/// files.
#[test]
fn commands_do_not_run_beside_a_program() {
    let directory = Directory::new("beside");
    real_time(async {
        let script = "mkdir -p \"$VOLUMES_DIR/data\"; touch \"$VOLUMES_DIR/data/by-program\"; echo ready; \
                      while [ ! -e \"$VOLUMES_DIR/data/by-exec\" ]; do sleep 0.02; done; echo seen";
        let (mut server, client) = start(
            &directory,
            json!([{"name": "tool", "command": ["sh", "-c", script]}]),
        )
        .await;
        let container = json!({"image": "tool", "volumeMounts": [{"name": "v", "mountPath": "/data"}]});
        let volumes = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
        run(&client, "p", container, volumes).await;
        assert_eq!(printed(&client, "p", "ready").await, "");
        let pods = kube::Api::default_namespaced(client.clone());
        let (files, _, end) = exec(&pods, "p", &["sh", "-c", "touch /data/by-exec; ls /data"], None).await;
        assert_eq!((files.as_str(), end.as_str()), ("by-exec\n", ""));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(log(&client, "p").await, "ready\n");
        ask_to_end(&mut server);
    });
}

/// Whether a process of this id runs.
fn runs(pid: &str) -> bool {
    if std::path::Path::new("/proc/self/stat").exists() {
        // A process that has ended may still be listed.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().map(str::trim_start).unwrap_or_default();
        return !state.is_empty() && !state.starts_with(['Z', 'X']);
    }
    let status = std::process::Command::new("kill")
        .args(["-0", pid])
        .stderr(std::process::Stdio::null())
        .status();
    status.expect("to ask").success()
}

async fn printed(client: &Client, name: &str, word: &str) -> String {
    loop {
        let (code, _) = ask(client, "GET", &format!("{PODS}/{name}/log"), Value::Null, &[]).await;
        if code == 200 {
            let text = log(client, name).await;
            if let Some(line) = text.lines().find_map(|line| line.strip_prefix(word)) {
                return line.to_owned();
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// `TERM` comes first, and is heard by what the program has started, too; the end of the grace period ends the rest.
#[test]
fn programs_end_with_their_pods_and_with_the_server() {
    let directory = Directory::new("ends");
    real_time(async {
        let end = directory.0.join("end");
        let polite = format!(
            "trap 'echo heard > {}; exit 0' TERM; echo pid $$; while :; do sleep 0.02; done",
            end.display()
        );
        let stubborn = "trap '' TERM; echo pid $$; while :; do sleep 0.02; done";
        let (mut server, client) = start(
            &directory,
            json!([{"name": "polite", "command": ["sh", "-c", polite]}, {"name": "stubborn", "command": ["sh", "-c", stubborn]}]),
        )
        .await;
        for (name, image) in [("a", "polite"), ("b", "stubborn"), ("c", "stubborn")] {
            run(
                &client,
                name,
                json!({"image": image}),
                json!({"terminationGracePeriodSeconds": 1}),
            )
            .await;
        }
        let polite = printed(&client, "a", "pid ").await;
        let stubborn = printed(&client, "b", "pid ").await;
        let last = printed(&client, "c", "pid ").await;
        assert!(runs(&polite) && runs(&stubborn) && runs(&last));
        for (name, pid) in [("a", &polite), ("b", &stubborn)] {
            assert_eq!(
                ask(&client, "DELETE", &format!("{PODS}/{name}"), Value::Null, &[])
                    .await
                    .0,
                200
            );
            until(&client, name, |pod| pod["code"] == 404).await;
            while runs(pid) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert_eq!(std::fs::read_to_string(&end).expect("a file"), "heard\n");
        ask_to_end(&mut server);
        while runs(&last) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// A pod whose program listens on a port of this machine is ready once it does, and its annotation has the port.
#[test]
fn ports_are_ports_of_this_machine() {
    let directory = Directory::new("ports");
    real_time(async {
        let command: Vec<PathBuf> = [
            env!("CARGO_BIN_EXE_fake-apiserver"),
            "serve",
            "--insecure-http",
            "--nodes=0",
            "--listen=127.0.0.1:$(PORT_8080)",
        ]
        .map(PathBuf::from)
        .to_vec();
        let command: Vec<&str> = command.iter().filter_map(|word| word.to_str()).collect();
        let kubeconfig = format!("--kubeconfig={}", directory.0.join("inner").display());
        let args = [kubeconfig.as_str()];
        let (mut server, client) = start(
            &directory,
            json!([{"name": "server", "command": command, "args": args, "ports": {"8080": 0}}]),
        )
        .await;
        let container = json!({
            "image": "server", "ports": [{"containerPort": 8080, "name": "http"}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 1},
        });
        run(&client, "p", container, json!({})).await;
        let is_ready = |pod: &Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        let pod = until(&client, "p", is_ready).await;
        let annotation = pod["metadata"]["annotations"]["network.fake-apiserver/dial"].as_str();
        let place = annotation
            .and_then(|said| said.strip_prefix("8080="))
            .expect("a place");
        assert!(tokio::net::TcpStream::connect(place).await.is_ok(), "{place}");
        ask_to_end(&mut server);
        while tokio::net::TcpStream::connect(place).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}
