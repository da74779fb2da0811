//! Rows: programs of pods reach each other over the network of the cluster.

use std::time::Duration;

use fake_apiserver::Cluster;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, sh, simulate, with};

/// Objects of a row: each is created in `default`, by its kind, before the next.
pub(crate) async fn create(cluster: &Cluster, object: &Value) {
    let kind = object["kind"].as_str().unwrap_or("Pod");
    let path = match kind {
        "Service" => "/api/v1/namespaces/default/services",
        "StatefulSet" => "/apis/apps/v1/namespaces/default/statefulsets",
        "NetworkPolicy" => "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        _ => "/api/v1/namespaces/default/pods",
    };
    let (code, answer) = request(cluster, "POST", path, object).await;
    assert_eq!(code, 201, "{answer}");
}

/// A pod of the label `app: NAME` whose only container is this.
pub(crate) fn pod(name: &str, container: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    })
}

/// A server of a page: its name.
fn page(name: &str) -> Value {
    let script = format!("mkdir -p /www; echo {name} > /www/index.html; httpd -f -p 8080 -h /www");
    pod(
        name,
        with(
            sh("c", &script),
            json!({"ports": [{"name": "http", "containerPort": 8080}]}),
        ),
    )
}

pub(crate) fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// What a script prints in a pod beside these objects, after ten seconds and half a minute of its own.
pub(crate) fn prints(objects: &[Value], script: &str) -> String {
    let mut printed = String::new();
    let slot = &mut printed;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        for object in objects {
            create(&cluster, object).await;
        }
        cluster.run_for(Duration::from_secs(10)).await;
        *slot = run(&cluster, "client", script, Duration::from_secs(200)).await;
    });
    printed
}

/// What a script prints in a pod of its own. `$WEB` is the address of the pod `web`, `$NODE` that of its node.
pub(crate) async fn run(cluster: &Cluster, name: &str, script: &str, time: Duration) -> String {
    let (_, web) = request(
        cluster,
        "GET",
        "/api/v1/namespaces/default/pods/web",
        &Value::Null,
    )
    .await;
    let field = |field: &str| web["status"][field].as_str().unwrap_or_default().to_owned();
    let env = json!([{"name": "WEB", "value": field("podIP")}, {"name": "NODE", "value": field("hostIP")}]);
    let container = with(sh("c", &format!("{{ {script}; }} 2>&1")), json!({"env": env}));
    let mut client = pod(name, container);
    client["spec"]["restartPolicy"] = json!("Never");
    create(cluster, &client).await;
    cluster.run_for(time).await;
    let path = format!("/api/v1/namespaces/default/pods/{name}/log");
    crate::support::exchange(cluster, "GET", &path, "", &Value::Null)
        .await
        .1
}

#[rstest]
#[case::wget("wget -q -O - http://$WEB:8080/", "web\n")]
#[case::a_file("wget -q http://$WEB:8080/index.html && cat index.html", "web\n")]
#[case::says_where(
    "wget -O /tmp/x http://$WEB:8080/; cat /tmp/x",
    "Connecting to $WEB ($WEB:8080)\nsaving to '/tmp/x'\n'/tmp/x' saved\nweb\n"
)]
#[case::missing_page(
    "wget -q -O - http://$WEB:8080/no; echo $?",
    "wget: server returned error: HTTP/1.1 404 Not Found\n1\n"
)]
#[case::curl("curl -s http://$WEB:8080/", "web\n")]
#[case::curl_code("curl -s -o /dev/null -w '%{http_code}\\n' $WEB:8080/no", "404\n")]
#[case::curl_head(
    "curl -sI $WEB:8080/",
    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: 4\r\n\r\n"
)]
#[case::curl_fails("curl -sf $WEB:8080/no; echo $?", "22\n")]
#[case::refused(
    "wget -q -O - http://$WEB:81/; echo $?",
    "wget: can't connect to remote host ($WEB): Connection refused\n1\n"
)]
#[case::curl_refused(
    "curl -sS $WEB:81; echo $?",
    "curl: (7) Failed to connect to $WEB port 81 after 0 ms: Couldn't connect to server\n7\n"
)]
#[case::nobody("curl -sS 10.244.9.9; echo $?", "0\n")]
#[case::no_pod(
    "nc -z -v -w 2 10.244.1.250 80; echo $?",
    "nc: connect to 10.244.1.250 port 80 (tcp) failed: No route to host\n1\n"
)]
#[case::nc(
    "nc -v -z $WEB 8080; echo $?",
    "Connection to $WEB 8080 port [tcp/*] succeeded!\n0\n"
)]
#[case::nc_speaks("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc $WEB 8080 | tail -n 1", "web\n")]
#[case::itself(
    "mkdir /w; echo me > /w/a; httpd -p 80 -h /w; wget -q -O - localhost/a 127.0.0.1/a; curl -s http://$(hostname)/a",
    "me\nme\n"
)]
#[case::no_encryption(
    "curl -sSk https://$WEB:8080; echo $?",
    "curl: (35) SSL routines::wrong version number\n35\n"
)]
#[case::no_authority(
    "curl -sS https://$WEB:8080; echo $?",
    "curl: (60) SSL certificate problem: unable to get local issuer certificate\n60\n"
)]
#[case::nobody_behind_the_service(
    "curl -sSk https://kubernetes.default.svc; echo $?",
    "curl: (6) Could not resolve host: kubernetes.default.svc\n6\n"
)]
#[case::the_world(
    "wget -q -O - https://www.example.com/; curl -s https://www.example.com; echo $?",
    "0\n"
)]
fn one_pod_asks_another(#[case] script: &str, #[case] expected: &str) {
    let told = prints(&[page("web")], &format!("{script}; echo $WEB"));
    let (told, address) = told
        .trim_end_matches('\n')
        .rsplit_once('\n')
        .unwrap_or((&told, ""));
    let expected = expected.replace("$WEB", address);
    assert_eq!(told.trim_end_matches('\n'), expected.trim_end_matches('\n'));
}

/// A program that listens is asked by its probe; while it does not, the pod is not ready.
#[rstest]
#[case::http(json!({"httpGet": {"port": "http", "path": "/"}}), "False True")]
#[case::tcp(json!({"tcpSocket": {"port": 8080}}), "False True")]
#[case::missing_page(json!({"httpGet": {"port": 8080, "path": "/no"}}), "False False")]
#[case::another_port(json!({"tcpSocket": {"port": 81}}), "False False")]
fn probes_ask_the_program(#[case] probe: Value, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let container = with(
            sh(
                "c",
                "sleep 20; mkdir /www; echo hi > /www/index.html; httpd -f -p 8080 -h /www",
            ),
            json!({"ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": with(probe, json!({"periodSeconds": 5}))}),
        );
        create(&cluster, &pod("web", container)).await;
        let mut told = Vec::new();
        for _ in 0..2 {
            cluster.run_for(Duration::from_secs(15)).await;
            let (_, pod) = request(
                &cluster,
                "GET",
                "/api/v1/namespaces/default/pods/web",
                &Value::Null,
            )
            .await;
            let conditions = pod["status"]["conditions"]
                .as_array()
                .expect("conditions")
                .to_vec();
            let ready = conditions
                .iter()
                .find(|condition| condition["type"] == json!("Ready"));
            told.push(
                ready
                    .map_or("", |ready| ready["status"].as_str().unwrap_or_default())
                    .to_owned(),
            );
        }
        assert_eq!(told.join(" "), expected);
    });
}

#[rstest]
#[case::address(json!({"ports": [{"port": 80, "targetPort": 8080}]}), "wget -q -O - web", "web\n")]
#[case::named_port(json!({"ports": [{"port": 80, "targetPort": "http"}]}), "curl -s web.default", "web\n")]
#[case::several_ports(
    json!({"ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 90, "targetPort": 8080}]}),
    "curl -s web.default.svc:90", "web\n"
)]
#[case::another_port(json!({"ports": [{"port": 80, "targetPort": 8080}]}), "curl -s web:81; echo $?", "7\n")]
#[case::headless(json!({"clusterIP": "None", "ports": [{"port": 80, "targetPort": 8080}]}), "curl -s web:8080", "web\n")]
#[case::node_port(
    json!({"type": "NodePort", "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30_080}]}),
    "curl -s $NODE:30080", "web\n"
)]
#[case::variables(json!({"ports": [{"port": 80, "targetPort": 8080}]}), "curl -s $WEB_SERVICE_HOST:$WEB_SERVICE_PORT", "web\n")]
#[case::external_ip(json!({"externalIPs": ["192.168.1.1"], "ports": [{"port": 80, "targetPort": 8080}]}), "curl -s 192.168.1.1", "web\n")]
#[case::whole_name(json!({"ports": [{"port": 80, "targetPort": 8080}]}), "curl -s web.default.svc.cluster.local", "web\n")]
#[case::no_endpoints(json!({"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "no"}}), "curl -sS web; echo $?", "curl: (7) Failed to connect to web port 80 after 0 ms: Couldn't connect to server\n7\n")]
#[case::no_such_name(json!({"ports": [{"port": 80}]}), "curl -sS nosuch; wget -q nosuch; nc nosuch 1; echo $?", "curl: (6) Could not resolve host: nosuch\nwget: bad address 'nosuch'\nnc: getaddrinfo for host \"nosuch\" port 1: Name does not resolve\n1\n")]
#[case::external_name(json!({"type": "ExternalName", "externalName": "www.example.com"}), "nslookup web | grep Name", "Name:\twww.example.com\n")]
#[case::dig(json!({"clusterIP": "None", "ports": [{"port": 80}]}), "test $(dig +short +search web) = $WEB && dig +short web; echo", "\n")]
#[case::dig_of_an_alias(json!({"type": "ExternalName", "externalName": "www.example.com"}), "dig +short +search web CNAME; dig +short +search web2 CNAME", "www.example.com.\n")]
#[case::dig_of_an_address(json!({"clusterIP": "10.96.0.77", "ports": [{"port": 80}]}), "dig +noall +answer +search 77.0.96.10.in-addr.arpa. PTR | cut -f 4-", "PTR\tweb.default.svc.cluster.local.\n")]
#[case::srv(json!({"ports": [{"name": "http", "port": 80}]}), "nslookup -type=srv _http._tcp.web | grep service", "_http._tcp.web\tservice = 0 100 80 web.default.svc.cluster.local\n")]
#[case::unknown(json!({"ports": [{"port": 80}]}), "nslookup web2 | tail -n 2; until nslookup web > /dev/null; do sleep 1; done; echo found", "** server can't find web2: NXDOMAIN\n\nfound\n")]
fn services(#[case] spec: Value, #[case] script: &str, #[case] expected: &str) {
    let mut selected = json!({"selector": {"app": "web"}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        selected[&**key] = value.clone();
    }
    assert_eq!(prints(&[page("web"), service("web", selected)], script), expected);
}

#[test]
fn pods_of_stateful_sets_have_names() {
    let container = sh("c", "mkdir /w; hostname > /w/index.html; httpd -f -p 80 -h /w");
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": {
            "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]},
        }},
    });
    let headless = service("db", json!({"clusterIP": "None", "selector": {"app": "db"}}));
    let told = prints(
        &[headless, set],
        "sleep 10; curl -s db-0.db; curl -s db-1.db.default.svc.cluster.local; curl -s db-2.db; getent hosts db-1.db | cut -d ' ' -f 2- | tr -d ' '",
    );
    assert_eq!(told, "db-0\ndb-1\ndb-1.db.default.svc.cluster.local\n");
}

/// A Service shares connections among its endpoints by the seed, and keeps a client with one if it is to.
#[test]
fn endpoints_are_chosen_by_the_seed() {
    let spec = |more: Value| {
        with(
            json!({"selector": {"tier": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}),
            more,
        )
    };
    let labelled = |name: &str| {
        let mut pod = page(name);
        pod["metadata"]["labels"]["tier"] = json!("web");
        pod
    };
    let objects = |more: Value| {
        [
            labelled("web"),
            labelled("one"),
            labelled("two"),
            service("all", spec(more)),
        ]
    };
    let script = "for i in $(seq 12); do curl -s all; done";
    let first = prints(&objects(json!({})), script);
    assert_eq!(first, prints(&objects(json!({})), script), "the same seed");
    for name in ["web", "one", "two"] {
        assert!(first.contains(name), "{name} is never asked: {first}");
    }
    let kept = prints(&objects(json!({"sessionAffinity": "ClientIP"})), script);
    let mut lines: Vec<&str> = kept.lines().collect();
    assert_eq!(lines.len(), 12);
    lines.dedup();
    assert_eq!(lines.len(), 1, "{kept}");
}

#[rstest]
#[case::host_network(json!({"hostNetwork": true}), "curl -s $NODE:8080; curl -s $WEB:8080", "web\nweb\n")]
#[case::host_port(json!({"containers": [{"ports": [{"containerPort": 8080, "hostPort": 9000}]}]}), "curl -s $NODE:9000; curl -s $NODE:8080; echo $?", "web\n7\n")]
fn ports_of_the_node(#[case] spec: Value, #[case] script: &str, #[case] expected: &str) {
    let mut web = page("web");
    if spec["hostNetwork"].is_boolean() {
        web["spec"]["hostNetwork"] = json!(true);
    } else {
        web["spec"]["containers"][0]["ports"] = spec["containers"][0]["ports"].clone();
    }
    assert_eq!(prints(&[web], script), expected);
}

#[test]
fn files_in_etc_tell_of_the_network() {
    let told = prints(
        &[page("web")],
        "cat /etc/hostname /etc/resolv.conf; grep client /etc/hosts | wc -l; head -n 1 /etc/hosts",
    );
    assert_eq!(
        told,
        "client\nsearch default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n1\n\
         # Kubernetes-managed hosts file.\n"
    );
}

#[test]
fn connections_are_plain_streams() {
    let echo = pod("web", sh("c", "nc -l -k -p 8080 -e cat"));
    assert_eq!(
        prints(&[echo], "echo one | nc $WEB 8080; echo two | nc $WEB 8080"),
        "one\ntwo\n"
    );
}

/// Datagrams reach what connections reach: pods, Services, ports of nodes. An answer comes from the address that was asked, or it would
/// not be taken for one.
#[rstest]
#[case::a_pod(json!({}), "echo hostname | nc -u -w 1 $WEB 8081; echo hostname | nc -u -w 1 web 8081", "webweb")]
#[case::another_protocol(json!({}), "curl -sS web:8081; echo $?", "curl: (7) Failed to connect to web port 8081 after 0 ms: Couldn't connect to server\n7\n")]
#[case::nobody_there(json!({}), "echo hostname | nc -u -w 1 web 82; echo $?; nc -u -z $WEB 8082; echo $?", "1\n1\n")]
#[case::is_there(json!({}), "nc -u -z -v web 8081; echo $?", "Connection to web 8081 port [udp/*] succeeded!\n0\n")]
#[case::one_port_of_two_protocols(json!({}), "curl -s web:80/hostname; echo hostname | nc -u -w 1 web 80", "webweb")]
#[case::a_port_of_the_node(json!({"type": "NodePort"}), "echo hostname | nc -u -w 1 $NODE 30080", "web")]
#[case::by_its_name_and_port(json!({}), "nslookup -type=srv _udp._udp.web | grep -c service", "1\n")]
fn datagrams(#[case] more: Value, #[case] script: &str, #[case] expected: &str) {
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.56";
    let web = pod("web", json!({"name": "c", "image": image, "args": ["netexec"]}));
    let spec = json!({"selector": {"app": "web"}, "ports": [
        {"name": "tcp", "port": 80, "targetPort": 8080}, {"name": "udp", "port": 80, "targetPort": 8081, "protocol": "UDP"},
        {"name": "own", "port": 8081, "protocol": "UDP"},
    ]});
    let mut spec = with(spec, more);
    if spec["type"].is_string() {
        spec["ports"][0]["nodePort"] = json!(30_080);
        spec["ports"][1]["nodePort"] = json!(30_080);
    }
    assert_eq!(prints(&[web, service("web", spec)], script), expected);
}

/// One port of a node, at two of its addresses and by two protocols, belongs to three pods.
#[test]
fn ports_of_a_node_have_addresses_and_protocols() {
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.56";
    let at = |name: &str, port: Value| {
        let container = json!({"name": "c", "image": image, "args": ["netexec"], "ports": [port]});
        let mut pod = pod(name, container);
        pod["spec"]["nodeName"] = json!("node1");
        pod
    };
    let node = "10.99.0.10";
    let objects = [
        at(
            "local",
            json!({"containerPort": 8080, "hostPort": 9000, "hostIP": "127.0.0.1"}),
        ),
        at(
            "outer",
            json!({"containerPort": 8080, "hostPort": 9000, "hostIP": node}),
        ),
        at(
            "datagrams",
            json!({"containerPort": 8081, "hostPort": 9000, "hostIP": node, "protocol": "UDP"}),
        ),
        at(
            "near",
            json!({"containerPort": 8081, "hostPort": 9001, "hostIP": "127.0.0.1", "protocol": "UDP"}),
        ),
    ];
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        for object in &objects {
            create(&cluster, object).await;
        }
        let script = format!(
            "curl -s 127.0.0.1:9000/hostname; echo; curl -s {node}:9000/hostname; echo; echo hostname | nc -u -w 1 {node} 9000; echo; \
             echo hostname | nc -u -w 1 127.0.0.1 9000; echo $?; echo hostname | nc -u -w 1 127.0.0.1 9001"
        );
        let mut client = pod("client", sh("c", &script));
        client["spec"]["hostNetwork"] = json!(true);
        client["spec"]["restartPolicy"] = json!("Never");
        cluster.run_for(Duration::from_secs(10)).await;
        create(&cluster, &client).await;
        cluster.run_for(Duration::from_secs(20)).await;
        let path = "/api/v1/namespaces/default/pods/client/log";
        let told = crate::support::exchange(&cluster, "GET", path, "", &Value::Null)
            .await
            .1;
        assert_eq!(told, "local\nouter\ndatagrams\n1\nnear");
    });
}

#[test]
fn a_listener_hears_datagrams_and_answers() {
    let echo = pod("web", sh("c", "echo answer | nc -u -l -p 8080"));
    let told = prints(
        &[echo],
        "echo question | nc -u -w 2 $WEB 8080; wget -q -O - $WEB:8080; echo $?",
    );
    assert!(told.starts_with("answer\n"), "{told}");
}

/// The same seed gives the same trace, with programs that reach each other.
#[test]
fn runs_with_a_network_are_the_same_for_a_seed() {
    let run = |seed: u64| {
        let mut told = String::new();
        let slot = &mut told;
        simulate(move || async move {
            let builder = Cluster::builder().seed(seed).nodes(2).trace(true);
            let cluster = builder.start().await.expect("a cluster");
            let spec = json!({"selector": {"tier": "web"}, "ports": [{"port": 80, "targetPort": 8080}]});
            create(&cluster, &service("all", spec)).await;
            for name in ["a", "b", "c"] {
                let mut server = page(name);
                server["metadata"]["labels"]["tier"] = json!("web");
                let probe = json!({"httpGet": {"port": 8080}, "periodSeconds": 1});
                server["spec"]["containers"][0]["readinessProbe"] = probe;
                create(&cluster, &server).await;
            }
            cluster.run_for(Duration::from_secs(10)).await;
            // How each ends depends on the endpoints that were chosen.
            for number in 0..8 {
                let script = "case $(curl -s all) in a) exit 1;; b) exit 2;; *) exit 3;; esac";
                let mut client = pod(&format!("client-{number}"), sh("c", script));
                client["spec"]["restartPolicy"] = json!("Never");
                create(&cluster, &client).await;
            }
            cluster.run_for(Duration::from_secs(20)).await;
            *slot = cluster.trace().expect("a trace").text();
        });
        told
    };
    let first = run(5);
    assert!(!first.is_empty() && first == run(5));
    assert_ne!(first, run(6));
}
