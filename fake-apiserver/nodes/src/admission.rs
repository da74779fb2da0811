//! A kubelet's admission of pods: pure, in the kubelet's order and words.

use std::sync::Arc;

use machinery::meta::{at, string_map};
use machinery::placement::{Insufficient, SYSCTLS, node_matches, tolerates_all};
use shared_json::{Array, Value};

use super::scheduler::ports_clash;

/// The operating system of simulated nodes.
const SYSTEM: &str = "linux";

/// Reason and message.
pub(super) type Refusal = (String, String);

fn refused(reason: &str, message: &str) -> Option<Refusal> {
    Some((reason.to_owned(), message.to_owned()))
}

/// A setting of the kernel with dots between its parts; either separator may be written, and then the other stands within parts.
fn with_dots(name: &str) -> String {
    if name.find(['.', '/']).and_then(|at| name.get(at..at + 1)) != Some("/") {
        return name.to_owned();
    }
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        c => c,
    };
    name.chars().map(swap).collect()
}

/// The first setting of the kernel that a pod asks for in vain.
pub(super) fn forbidden_sysctl(pod: &Value) -> Option<Refusal> {
    let is_set = |path: &str| at(pod, path).and_then(Value::as_bool) == Some(true);
    let asked = at(pod, "spec.securityContext.sysctls").and_then(Value::as_array)?;
    let names = asked
        .iter()
        .filter_map(|sysctl| sysctl.get("name").and_then(Value::as_str));
    names.map(with_dots).find_map(|name| {
        let (namespace, shared) = match name.split('.').next() {
            Some("net") => ("Net", "spec.hostNetwork"),
            _ => ("IPC", "spec.hostIPC"),
        };
        let why = if !SYSCTLS.contains(&name.as_str()) {
            format!("{name:?} not allowlisted")
        } else if is_set(shared) {
            format!("{name:?} not allowed with host {namespace} enabled")
        } else {
            return None;
        };
        refused("SysctlForbidden", &format!("forbidden sysctl: {why}"))
    })
}

/// The refusal of a pod for another operating system, from wherever it comes.
pub(super) fn other_system(pod: &Value) -> Option<Refusal> {
    let label = string_map(pod, "labels").get("kubernetes.io/os");
    if label.is_some_and(|label| label != SYSTEM) {
        return refused(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        );
    }
    let name = at(pod, "spec.os.name").and_then(Value::as_str);
    if name.is_some_and(|name| name != SYSTEM) {
        return refused(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        );
    }
    None
}

/// Why a pod that no scheduler has placed cannot be on a node beside these others, if it cannot. `lacking`: the lacking
/// resources.
pub(super) fn misfit(
    pod: &Value,
    node: &Value,
    others: &[Arc<Value>],
    lacking: Option<Insufficient>,
) -> Option<Refusal> {
    let predicate = |name: &str, why: &str| refused(name, &format!("Predicate {name} failed: {why}"));
    if let Some(lacking) = lacking {
        return Some((lacking.reason, lacking.message));
    }
    if !node_matches(pod, node) {
        return predicate(
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        );
    }
    if others.iter().any(|other| ports_clash(pod, other)) {
        return predicate(
            "NodePorts",
            "node(s) didn't have free ports for the requested pod ports",
        );
    }
    let taints = at(node, "spec.taints").and_then(Value::as_array);
    let taints = taints.map_or(&[][..], Array::as_slice);
    if !tolerates_all(pod, taints, &["NoExecute"]) {
        return predicate(
            "TaintToleration",
            "node(s) had taints that the pod didn't tolerate",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::none(&[], json!({}), "")]
    #[case::safe(&["kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"], json!({}), "")]
    #[case::safe_with_slashes(&["net/ipv4/ip_local_port_range"], json!({}), "")]
    #[case::unsafe_one(&["kernel.msgmax"], json!({}), "\"kernel.msgmax\" not allowlisted")]
    #[case::unsafe_one_of_the_network(&["net.core.somaxconn"], json!({}), "\"net.core.somaxconn\" not allowlisted")]
    #[case::second(&["net.ipv4.tcp_rmem", "fs.mqueue.msg_max"], json!({}), "\"fs.mqueue.msg_max\" not allowlisted")]
    #[case::slashes_are_told_as_dots(&["kernel/msgmax"], json!({}), "\"kernel.msgmax\" not allowlisted")]
    #[case::dots_within_parts(&["net/ipv4/conf/eth0.1/forwarding"], json!({}), "\"net.ipv4.conf.eth0/1.forwarding\" not allowlisted")]
    #[case::shared_network(&["net.ipv4.tcp_wmem"], json!({"hostNetwork": true}), "\"net.ipv4.tcp_wmem\" not allowed with host Net enabled")]
    #[case::shared_network_does_not_matter(&["kernel.shm_rmid_forced"], json!({"hostNetwork": true}), "")]
    #[case::shared_ipc_does_not_matter(&["net.ipv4.tcp_keepalive_time"], json!({"hostIPC": true}), "")]
    #[case::not_shared(&["net.ipv4.tcp_wmem", "kernel.shm_rmid_forced"], json!({"hostNetwork": false, "hostIPC": false}), "")]
    #[case::unsafe_and_shared(&["net.core.somaxconn"], json!({"hostNetwork": true}), "\"net.core.somaxconn\" not allowlisted")]
    #[case::shared_before_an_unsafe_one(&["net.ipv4.tcp_wmem", "kernel.msgmax"], json!({"hostNetwork": true}),
        "\"net.ipv4.tcp_wmem\" not allowed with host Net enabled")]
    #[case::several_safe_ones(&["net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_fin_timeout"], json!({}), "")]
    #[case::reserved_ports(&["net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"], json!({}), "")]
    #[case::of_no_namespace(&["vm.swappiness"], json!({}), "\"vm.swappiness\" not allowlisted")]
    #[case::safe_ones_of_memory_shared(&["net.ipv4.tcp_rmem"], json!({"hostNetwork": true}), "\"net.ipv4.tcp_rmem\" not allowed with host Net enabled")]
    #[case::beginning_of_a_safe_one(&["net.ipv4"], json!({}), "\"net.ipv4\" not allowlisted")]
    #[case::shared_with_slashes(&["net/ipv4/tcp_syncookies"], json!({"hostNetwork": true}),
        "\"net.ipv4.tcp_syncookies\" not allowed with host Net enabled")]
    #[case::shared_ipc(&["kernel.shm_rmid_forced"], json!({"hostIPC": true}), "\"kernel.shm_rmid_forced\" not allowed with host IPC enabled")]
    fn settings_of_the_kernel(#[case] names: &[&str], #[case] spec: Value, #[case] expected: &str) {
        let mut pod = json!({"spec": spec});
        let sysctls: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "value": "1"}))
            .collect();
        pod["spec"]["securityContext"] = json!({"sysctls": sysctls});
        let told = forbidden_sysctl(&pod).map(|(reason, message)| {
            assert_eq!(reason, "SysctlForbidden");
            message.trim_start_matches("forbidden sysctl: ").to_owned()
        });
        assert_eq!(told.unwrap_or_default(), expected);
    }

    #[test]
    fn pods_for_other_systems() {
        for (labels, spec, expected) in [
            (json!({}), json!({}), ""),
            (
                json!({"kubernetes.io/os": "linux"}),
                json!({"os": {"name": "linux"}}),
                "",
            ),
            (
                json!({"kubernetes.io/os": "windows"}),
                json!({}),
                "PodOSSelectorNodeLabelDoesNotMatch",
            ),
            (
                json!({"kubernetes.io/os": ""}),
                json!({}),
                "PodOSSelectorNodeLabelDoesNotMatch",
            ),
            (json!({"beta.kubernetes.io/os": "windows"}), json!({}), ""),
            (json!({}), json!({"os": {"name": "windows"}}), "PodOSNotSupported"),
            (
                json!({"kubernetes.io/os": "windows"}),
                json!({"os": {"name": "windows"}}),
                "PodOSSelectorNodeLabelDoesNotMatch",
            ),
        ] {
            let pod = json!({"metadata": {"labels": labels}, "spec": spec});
            let found = other_system(&pod).map(|(reason, _)| reason);
            assert_eq!(found.unwrap_or_default(), expected, "{pod}");
        }
    }

    /// A port of a container: `protocol:hostIP:hostPort`.
    fn with_ports(ports: &[&str], more: Value) -> Value {
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| {
                let parts: Vec<&str> = port.split(':').collect();
                let number: i64 = parts[2].parse().unwrap();
                let mut port = json!({"containerPort": 80, "hostPort": number, "protocol": parts[0]});
                if !parts[1].is_empty() {
                    port["hostIP"] = json!(parts[1]);
                }
                port
            })
            .collect();
        let mut pod =
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "ports": ports}]}});
        pod["spec"].merge(&more);
        pod
    }

    #[track_caller]
    fn check(pod: &Value, taints: Value, others: &[Value], expected: &str) {
        let node = json!({
            "metadata": {"name": "n", "labels": {"zone": "a", "kubernetes.io/arch": "amd64"}},
            "spec": {"taints": taints, "unschedulable": true},
        });
        let others: Vec<Arc<Value>> = others.iter().cloned().map(Arc::new).collect();
        let found = misfit(pod, &node, &others, None).map(|(reason, message)| {
            assert!(
                message.starts_with(&format!("Predicate {reason} failed: node(s) ")),
                "{message}"
            );
            reason
        });
        assert_eq!(found.unwrap_or_default(), expected, "{pod} {others:?}");
    }

    #[test]
    fn ports_that_are_taken() {
        let none = json!({});
        for (wanted, taken, expected) in [
            (&["TCP::80"][..], &[][..], ""),
            (&["TCP::80"], &["TCP::80"], "NodePorts"),
            (&["TCP::80"], &["TCP::81"], ""),
            (&["TCP::80"], &["UDP::80"], ""),
            (&["TCP::80", "TCP::81"], &["TCP::81"], "NodePorts"),
            (&["TCP:127.0.0.1:80"], &["TCP:127.0.0.2:80"], ""),
            (&["TCP:127.0.0.1:80"], &["TCP:127.0.0.1:80"], "NodePorts"),
            (&["TCP:127.0.0.1:80"], &["TCP::80"], "NodePorts"),
            (&["TCP:0.0.0.0:80"], &["TCP:127.0.0.1:80"], "NodePorts"),
            (&["TCP::0"], &["TCP::0"], ""),
        ] {
            let (pod, other) = (with_ports(wanted, none.clone()), with_ports(taken, none.clone()));
            check(&pod, json!([]), &[with_ports(&[], none.clone()), other], expected);
        }
        // On the node's own network every port of a container is one of the node.
        let own = with_ports(&["TCP::0"], json!({"hostNetwork": true}));
        check(
            &own,
            json!([]),
            &[with_ports(&["TCP::80"], none.clone())],
            "NodePorts",
        );
        // A sidecar's ports count, those of other init containers do not.
        let init = |policy: Value| json!({"initContainers": [{"name": "i", "restartPolicy": policy, "ports": [{"containerPort": 9, "hostPort": 9, "protocol": "TCP"}]}]});
        let taken = [with_ports(&["TCP::9"], none)];
        check(
            &with_ports(&[], init(json!("Always"))),
            json!([]),
            &taken,
            "NodePorts",
        );
        check(&with_ports(&[], init(Value::Null)), json!([]), &taken, "");
    }

    #[test]
    fn taints_and_labels() {
        let taint = |effect: &str| json!([{"key": "k", "value": "v", "effect": effect}]);
        let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
        let tolerates = |toleration: Value| pod(json!({"tolerations": [toleration]}));
        // Only what would drive it away keeps it from starting.
        check(&pod(json!({})), taint("NoExecute"), &[], "TaintToleration");
        check(&pod(json!({})), taint("NoSchedule"), &[], "");
        check(&pod(json!({})), taint("PreferNoSchedule"), &[], "");
        check(
            &tolerates(json!({"key": "k", "operator": "Exists"})),
            taint("NoExecute"),
            &[],
            "",
        );
        check(
            &tolerates(json!({"key": "k", "operator": "Exists", "tolerationSeconds": 5})),
            taint("NoExecute"),
            &[],
            "",
        );
        check(
            &tolerates(json!({"key": "k", "value": "v"})),
            taint("NoExecute"),
            &[],
            "",
        );
        check(
            &tolerates(json!({"key": "k", "value": "w"})),
            taint("NoExecute"),
            &[],
            "TaintToleration",
        );
        check(
            &tolerates(json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"})),
            taint("NoExecute"),
            &[],
            "TaintToleration",
        );
        check(
            &tolerates(json!({"operator": "Exists"})),
            taint("NoExecute"),
            &[],
            "",
        );
        check(&pod(json!({"nodeSelector": {"zone": "a"}})), json!([]), &[], "");
        check(
            &pod(json!({"nodeSelector": {"zone": "b"}})),
            json!([]),
            &[],
            "NodeAffinity",
        );
        check(
            &pod(json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}})),
            json!([]),
            &[],
            "NodeAffinity",
        );
        // What is told first.
        let all = with_ports(&["TCP::80"], json!({"nodeSelector": {"zone": "b"}}));
        let other = [with_ports(&["TCP::80"], json!({}))];
        check(&all, taint("NoExecute"), &other, "NodeAffinity");
        check(&other[0], taint("NoExecute"), &other, "NodePorts");
        let lacking = Insufficient {
            resource: "cpu".to_owned(),
            missing: 1,
            reason: "OutOfcpu".to_owned(),
            message: "m".to_owned(),
        };
        let found = misfit(&all, &json!({}), &[], Some(lacking));
        assert_eq!(found, refused("OutOfcpu", "m"));
    }
}
