//! Rows: faults of connections, partitions, and NetworkPolicies.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::network::faults::{Effect, Fault, Peer};
use fake_apiserver::nodes::Container;
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::network_rows::{create, pod, prints, run};
use crate::support::{exchange, request, simulate, with};

fn server(name: &str) -> Value {
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.56";
    pod(
        name,
        json!({"name": "c", "image": image, "args": ["netexec", "--http-port=80"]}),
    )
}

/// Six questions to a pod, a second apart: `y` for each that is answered within three seconds.
const ASKS: &str = "for i in 1 2 3 4 5 6; do curl -s -m 3 $WEB/hostname > /dev/null && echo -n y || echo -n n; sleep 1; done";

#[rstest]
#[case::none(vec![], "yyyyyy")]
#[case::refused(vec![Fault::new(Effect::Refuse)], "nnnnnn")]
#[case::to_the_pod(vec![Fault::new(Effect::Refuse).to(Peer::pod("default", "web"))], "nnnnnn")]
#[case::to_another(vec![Fault::new(Effect::Refuse).to(Peer::pod("default", "other"))], "yyyyyy")]
#[case::from_a_label(vec![Fault::new(Effect::Refuse).from(Peer::Label("app".to_owned(), "client".to_owned()))], "nnnnnn")]
#[case::of_a_namespace(vec![Fault::new(Effect::Refuse).to(Peer::Namespace("other".to_owned()))], "yyyyyy")]
#[case::times(vec![Fault::new(Effect::Refuse).times(2)], "nnyyyy")]
#[case::skip(vec![Fault::new(Effect::Refuse).after(3).times(1)], "yyynyy")]
#[case::port(vec![Fault::new(Effect::Refuse).port(80)], "nnnnnn")]
#[case::another_port(vec![Fault::new(Effect::Refuse).port(81)], "yyyyyy")]
#[case::dropped(vec![Fault::new(Effect::Drop).times(1)], "nyyyyy")]
#[case::late(vec![Fault::new(Effect::Delay(Duration::from_secs(2)))], "yyyyyy")]
#[case::too_late(vec![Fault::new(Effect::Delay(Duration::from_secs(4)))], "nnnnnn")]
#[case::late_twice(vec![Fault::new(Effect::Delay(Duration::from_secs(2))), Fault::new(Effect::Delay(Duration::from_secs(2))).after(5)], "yyyyyn")]
fn struck(#[case] faults: Vec<Fault>, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        create(&cluster, &server("web")).await;
        cluster.run_for(Duration::from_secs(5)).await;
        for fault in faults {
            cluster.network().faults().add(fault);
        }
        assert_eq!(
            run(&cluster, "client", ASKS, Duration::from_secs(60)).await,
            expected
        );
    });
}

#[test]
fn chance_follows_from_the_seed() {
    let ask = |seed: u64| {
        let mut told = String::new();
        let slot = &mut told;
        simulate(move || async move {
            let cluster = Cluster::builder()
                .seed(seed)
                .nodes(1)
                .start()
                .await
                .expect("a cluster");
            create(&cluster, &server("web")).await;
            cluster.run_for(Duration::from_secs(5)).await;
            cluster
                .network()
                .faults()
                .add(Fault::new(Effect::Refuse).chance(0.5));
            let script =
                "for i in $(seq 20); do curl -s $WEB/hostname > /dev/null && echo -n y || echo -n n; done";
            *slot = run(&cluster, "client", script, Duration::from_secs(60)).await;
        });
        told
    };
    let first = ask(1);
    assert_eq!(first, ask(1));
    assert_ne!(first, ask(2));
    assert!(first.contains('y') && first.contains('n'), "{first}");
}

/// Nodes that are parted do not reach each other, until that is lifted; the API server reaches both.
#[test]
fn a_partition_parts_nodes() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        let on = |mut pod: Value, node: &str| {
            pod["spec"]["nodeName"] = json!(node);
            pod
        };
        create(&cluster, &on(server("web"), "node1")).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let faults = cluster.network().faults();
        let parted = faults.partition(Peer::node("node1"), Peer::node("node2"));
        let script = "curl -s -m 3 $WEB/hostname; echo $?; sleep 100; curl -s -m 3 $WEB/hostname; echo $?";
        for (name, node) in [("near", "node1"), ("far", "node2")] {
            let container = with(
                crate::support::sh("c", &script.replace("$WEB", "10.244.1.2")),
                json!({}),
            );
            let mut client = on(pod(name, container), node);
            client["spec"]["restartPolicy"] = json!("Never");
            create(&cluster, &client).await;
        }
        cluster.run_for(Duration::from_secs(30)).await;
        assert_eq!(parted.strikes(), 1);
        parted.lift();
        cluster.run_for(Duration::from_secs(120)).await;
        let log = async |name: &str| {
            let path = format!("/api/v1/namespaces/default/pods/{name}/log");
            crate::support::exchange(&cluster, "GET", &path, "", &Value::Null)
                .await
                .1
        };
        assert_eq!(log("near").await, "web0\nweb0\n");
        assert_eq!(log("far").await, "28\nweb0\n");
        let path = "/api/v1/namespaces/default/pods/web:80/proxy/hostname";
        let (_, answer) = crate::support::exchange(&cluster, "GET", path, "", &Value::Null).await;
        assert_eq!(answer, "web");
    });
}

#[rstest]
#[case::closed(json!({"podSelector": {}}), "n")]
#[case::of_another_pod(json!({"podSelector": {"matchLabels": {"app": "other"}}}), "y")]
#[case::open_to_the_client(
    json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}), "y"
)]
#[case::open_to_others(
    json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "other"}}}]}]}), "n"
)]
#[case::by_namespace(
    json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}},
    ]}]}), "y"
)]
#[case::egress(json!({"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"]}), "n")]
fn policies(#[case] spec: Value, #[case] expected: &str) {
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": spec});
    let script = "curl -s -m 3 $WEB/hostname > /dev/null && echo y || echo n";
    assert_eq!(prints(&[server("web"), policy], script).trim(), expected);
}

/// Datagrams are lost, refused and late as connections are.
#[rstest]
#[case::none(None, "web0")]
#[case::lost(Some(Fault::new(Effect::Drop)), "0")]
#[case::refused(Some(Fault::new(Effect::Refuse)), "1")]
#[case::late(Some(Fault::new(Effect::Delay(Duration::from_millis(600)))), "web0")]
#[case::too_late(Some(Fault::new(Effect::Delay(Duration::from_millis(2100)))), "0")]
#[case::of_another_port(Some(Fault::new(Effect::Drop).port(80)), "web0")]
fn datagrams_are_struck(#[case] fault: Option<Fault>, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        create(&cluster, &server("web")).await;
        cluster.run_for(Duration::from_secs(5)).await;
        if let Some(fault) = fault {
            cluster.network().faults().add(fault);
        }
        let script = "echo hostname | nc -u -w 2 $WEB 8081; echo -n $?";
        let told = run(&cluster, "client", script, Duration::from_secs(20)).await;
        assert_eq!(told, expected);
    });
}

/// A NetworkPolicy that lets no pod reach the client lets the answers to its own datagrams through.
#[test]
fn policies_let_answers_to_datagrams_through() {
    let closed = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
        "spec": {"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Ingress"]},
    });
    let told = prints(&[server("web"), closed], "echo hostname | nc -u -w 1 $WEB 8081");
    assert_eq!(told, "web");
}

/// A connection that stands goes on when its ends are parted.
#[test]
fn a_fault_leaves_connections_that_stand() {
    simulate(|| async {
        let echo = |container: Container| async move {
            let Some(mut listener) = container.listen(80) else {
                return 1;
            };
            while let Some(mut connection) = listener.accept().await {
                let mut byte = [0];
                while connection.stream.read_exact(&mut byte).await.is_ok() {
                    if connection.stream.write_all(&byte).await.is_err() {
                        break;
                    }
                }
            }
            0
        };
        let client = |container: Container| async move {
            let host = container.env.get("WEB").cloned().unwrap_or_default();
            let Ok(mut stream) = container.connect(&host, 80).await else {
                return 1;
            };
            for _ in 0..3 {
                let mut byte = *b"x";
                let sent = stream.write_all(&byte).await.is_ok();
                let echoed = sent && stream.read_exact(&mut byte).await.is_ok();
                container.print(if echoed { "y" } else { "n" });
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            container.print(if container.connect(&host, 80).await.is_ok() {
                "y"
            } else {
                "n"
            });
            0
        };
        let builder = Cluster::builder()
            .nodes(1)
            .program("echo", echo)
            .program("client", client);
        let cluster = builder.start().await.expect("a cluster");
        create(&cluster, &pod("web", json!({"name": "c", "image": "echo"}))).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let path = "/api/v1/namespaces/default/pods/web";
        let (_, web) = request(&cluster, "GET", path, &Value::Null).await;
        let env = json!([{"name": "WEB", "value": web["status"]["podIP"]}]);
        let mut asks = pod("client", json!({"name": "c", "image": "client", "env": env}));
        asks["spec"]["restartPolicy"] = json!("Never");
        create(&cluster, &asks).await;
        cluster.run_for(Duration::from_secs(5)).await;
        cluster.network().faults().add(Fault::new(Effect::Refuse));
        cluster.run_for(Duration::from_secs(40)).await;
        let log = "/api/v1/namespaces/default/pods/client/log";
        assert_eq!(exchange(&cluster, "GET", log, "", &Value::Null).await.1, "yyyn");
    });
}

/// The node answers probes of a program of which nothing more is known than that it serves: faults do not concern them.
#[test]
fn probes_of_programs_that_only_serve_do_not_use_the_network() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        cluster.network().faults().add(Fault::new(Effect::Drop));
        let probe = json!({"httpGet": {"port": 8080}, "periodSeconds": 1});
        for (name, image) in [
            ("web", "example.com/web:1"),
            ("listens", "registry.k8s.io/e2e-test-images/agnhost:2.56"),
        ] {
            let container =
                json!({"name": "c", "image": image, "args": ["netexec"], "readinessProbe": probe});
            create(&cluster, &pod(name, container)).await;
        }
        cluster.run_for(Duration::from_secs(10)).await;
        let mut ready = Vec::new();
        for name in ["web", "listens"] {
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            let (_, pod) = request(&cluster, "GET", &path, &Value::Null).await;
            ready.push(pod["status"]["containerStatuses"][0]["ready"].as_bool());
        }
        assert_eq!(ready, [Some(true), Some(false)]);
    });
}
