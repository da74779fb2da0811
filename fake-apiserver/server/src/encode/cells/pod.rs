//! The cells of pods.

use shared_json::Value;

use super::age::age;
use super::fields::{Fields, or};
use super::{NONE, UNKNOWN};

pub(super) fn cell(column: &str, pod: Fields<'_>) -> Value {
    match column {
        "Ready" => {
            let summary = Summary::of(pod);
            Value::from(format!("{}/{}", summary.ready, summary.total))
        }
        "Status" => Value::from(Summary::of(pod).reason),
        "Restarts" => {
            let Summary {
                restarts,
                last_restart,
                ..
            } = Summary::of(pod);
            Value::from(match last_restart {
                Some(last) if restarts != 0 => format!("{restarts} ({} ago)", age(last, pod.now)),
                _ => restarts.to_string(),
            })
        }
        "IP" => pod
            .parts("status.podIPs")
            .next()
            .map_or_else(|| pod.or_none("status.podIP"), |ip| or(ip.text("ip"), NONE)),
        "Node" => pod.or_none("spec.nodeName"),
        "Nominated Node" => pod.or_none("status.nominatedNodeName"),
        "Readiness Gates" => Value::from(readiness_gates(pod)),
        _ => Value::from(""),
    }
}

/// The values of a pod's first columns.
struct Summary<'a> {
    total: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
    reason: String,
}

/// Restarts of some containers and the time of the last.
#[derive(Default)]
struct Restarts<'a> {
    count: i64,
    last: Option<&'a str>,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: Fields<'a>) {
        self.count += status.number("restartCount");
        let finished = Some(status.text("lastState.terminated.finishedAt")).filter(|time| !time.is_empty());
        self.last = self.last.max(finished);
    }
}

impl<'a> Summary<'a> {
    fn of(pod: Fields<'a>) -> Self {
        let phase = pod.text("status.phase");
        let mut reason = match pod.text("status.reason") {
            "" => phase,
            own => own,
        }
        .to_owned();
        let gated = pod
            .parts("status.conditions")
            .any(|c| c.text("type") == "PodScheduled" && c.text("reason") == "SchedulingGated");
        if gated {
            "SchedulingGated".clone_into(&mut reason);
        }
        let is_sidecar = |status: &Fields<'_>| {
            pod.parts("spec.initContainers")
                .any(|c| c.text("name") == status.text("name") && c.text("restartPolicy") == "Always")
        };
        let inits = pod.list("spec.initContainers").len();
        let sidecars = pod
            .parts("spec.initContainers")
            .filter(|c| c.text("restartPolicy") == "Always");
        let total = pod.list("spec.containers").len() + sidecars.count();
        let mut ready = 0;
        let (mut restarts, mut of_sidecars) = (Restarts::default(), Restarts::default());
        let mut initialising = false;
        for (index, status) in pod.parts("status.initContainerStatuses").enumerate() {
            restarts.add(status);
            if is_sidecar(&status) {
                of_sidecars.add(status);
            }
            if status.has("state.terminated") && status.number("state.terminated.exitCode") == 0 {
                continue;
            }
            if is_sidecar(&status) && status.flag("started") {
                ready += usize::from(status.flag("ready"));
                continue;
            }
            let waiting = status.text("state.waiting.reason");
            reason = if status.has("state.terminated") {
                format!("Init:{}", termination(status))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{inits}")
            };
            initialising = true;
            break;
        }
        if !initialising || pod.condition("Initialized", "True") {
            restarts = of_sidecars;
            let mut running = false;
            for status in pod.parts("status.containerStatuses").rev() {
                restarts.add(status);
                let waiting = status.text("state.waiting.reason");
                if !waiting.is_empty() {
                    waiting.clone_into(&mut reason);
                } else if status.has("state.terminated") {
                    reason = termination(status);
                } else if status.flag("ready") && status.has("state.running") {
                    running = true;
                    ready += 1;
                }
            }
            if reason == "Completed" && running {
                reason = if pod.condition("Ready", "True") {
                    "Running"
                } else {
                    "NotReady"
                }
                .to_owned();
            }
        }
        if pod.has("metadata.deletionTimestamp") {
            if pod.text("status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut reason);
            }
        }
        let Restarts { count, last } = restarts;
        Self {
            total,
            ready,
            restarts: count,
            last_restart: last,
            reason,
        }
    }
}

/// Why a container ended: its reason, or the signal, or the exit code.
fn termination(status: Fields<'_>) -> String {
    let reason = status.text("state.terminated.reason");
    match status.number("state.terminated.signal") {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!("ExitCode:{}", status.number("state.terminated.exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn readiness_gates(pod: Fields<'_>) -> String {
    let gates = pod.parts("spec.readinessGates");
    let total = gates.len();
    if total == 0 {
        return NONE.to_owned();
    }
    let open = gates
        .filter(|gate| pod.condition(gate.text("conditionType"), "True"))
        .count();
    format!("{open}/{total}")
}

/// Text that is there, or `<unknown>`.
pub(super) fn or_unknown(text: &str) -> Value {
    or(text, UNKNOWN)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn check(spec: Value, status: Value) -> String {
        let object = json!({"metadata": {}, "spec": spec, "status": status});
        let fields = Fields {
            object: &object,
            now: Timestamp::from_second(1_577_836_860).expect("a time"),
        };
        ["Ready", "Status", "Restarts"]
            .map(|column| cell(column, fields).as_str().unwrap_or_default().to_owned())
            .join(" ")
    }

    #[rstest]
    #[case::pending(json!({"containers": [{}]}), json!({"phase": "Pending"}), "0/1 Pending 0")]
    #[case::init(
        json!({"containers": [{}], "initContainers": [{"name": "i"}, {"name": "j"}]}),
        json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "restartCount": 2, "state": {"running": {}}},
        ]}),
        "0/1 Init:1/2 2"
    )]
    #[case::sidecar(
        json!({"containers": [{}], "initContainers": [{"name": "i", "restartPolicy": "Always"}]}),
        json!({"phase": "Running", "initContainerStatuses": [{"name": "i", "ready": true, "started": true, "state": {"running": {}}}],
               "containerStatuses": [{"ready": true, "restartCount": 1, "state": {"running": {}},
                                      "lastState": {"terminated": {"finishedAt": "2020-01-01T00:00:00Z"}}}]}),
        "2/2 Running 1 (60s ago)"
    )]
    #[case::crash(
        json!({"containers": [{}, {}]}),
        json!({"phase": "Running", "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"state": {"terminated": {"exitCode": 137, "signal": 9}}},
        ]}),
        "0/2 CrashLoopBackOff 0"
    )]
    fn sums_up(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        assert_eq!(check(spec, status), expected);
    }
}
