//! Rows of containers whose end lets all containers of their pod begin anew, and of pods that stand for a node's own.

use shared_json::{Value, json};

use crate::lives::{Life, live, tells};
use crate::support::sh;

/// Ends with this code; a rule says that all begin anew for it.
fn starter(name: &str, script: &str, code: i32) -> Value {
    let mut container = sh(name, script);
    container["restartPolicy"] = json!("Never");
    container["restartPolicyRules"] =
        json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [code]}}]);
    container
}

fn of(first: Value, containers: Value) -> Value {
    json!({"restartPolicy": "Never", "initContainers": first, "containers": containers, "terminationGracePeriodSeconds": 1})
}

#[test]
fn all_begin_anew() {
    let forever = sh("b", "sleep 600");
    let ends = |code: i32| json!([starter("a", "sleep 8; exit 42", code), forever]);
    tells(
        of(json!([]), ends(42)),
        6,
        "Running ready a:running b:running",
        "a Started",
    );
    tells(
        of(json!([]), ends(42)),
        15,
        "Running ready a:runningx1 b:runningx1",
        "b Killing: killing",
    );
    tells(
        of(json!([]), ends(42)),
        15,
        "Running ready a:runningx1 b:runningx1",
        "b Started: Container started x2",
    );
    // For another code it goes by its policy.
    tells(
        of(json!([]), ends(41)),
        15,
        "Running ContainersNotReady a:terminated(Error 42) b:running",
        "a Started",
    );
    // What is to run first runs again.
    tells(
        of(json!([sh("i", "true")]), ends(42)),
        18,
        "Running ready i:terminated(Completed 0)x1 a:runningx1 b:runningx1",
        "i Started: Container started x2",
    );
    let mut sidecar = sh("s", "sleep 600");
    sidecar["restartPolicy"] = json!("Always");
    tells(
        of(json!([sidecar]), ends(42)),
        18,
        "Running ready s:runningx1 a:runningx1 b:runningx1",
        "s Killing: killing",
    );
    // One is killed after the other: what does not listen keeps those behind it waiting.
    let deaf = |name: &str| sh(name, "trap '' TERM; sleep 600");
    let (status, events) = live(Life {
        spec: of(
            json!([]),
            json!([starter("a", "sleep 8; exit 42", 42), deaf("b"), deaf("c")]),
        ),
        seconds: 11,
        ..Life::default()
    });
    let all = "Running ContainersNotReady a:terminated(Error 42) b:running c:running";
    assert_eq!(status, all, "{events:#?}");
    let killed = |name: &str| {
        events
            .iter()
            .any(|event| event.starts_with(&format!("{name} Killing")))
    };
    assert!(killed("b") && !killed("c"), "{events:#?}");
    // One that has ended for good begins anew, too.
    tells(
        of(
            json!([]),
            json!([starter("a", "sleep 8; exit 42", 42), sh("b", "true")]),
        ),
        16,
        "Running ContainersNotReady a:runningx1 b:terminated(Completed 0)x1",
        "b Started: Container started x2",
    );
    // A command that fails before the others run.
    let mut fails = starter("i", "test -e /v/x && exit 0; touch /v/x; exit 3", 3);
    fails["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let mut spec = of(json!([fails]), json!([forever]));
    spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    tells(
        spec,
        10,
        "Running ready i:terminated(Completed 0)x1 b:running",
        "i Started: Container started x2",
    );
}

/// A pod that says that it stands for one of the node's own.
#[test]
fn what_stands_for_nothing_goes() {
    let life = |seconds| Life {
        spec: json!({"nodeName": "node1", "containers": [{"name": "a", "image": "nginx:1"}]}),
        annotations: json!({"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}),
        seconds,
        ..Life::default()
    };
    assert_eq!(live(life(0)).0, "Pending");
    let (status, said) = live(life(3));
    assert_eq!((status.as_str(), said.len()), ("gone", 0), "{said:#?}");
}
