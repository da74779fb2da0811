//! The usage of pods and nodes, from annotations. Pure.

use machinery::meta::at;
use machinery::types::Quantity;
use shared_json::{Value, json};

/// The annotations that autoscalers use, too: `metrics.fake-apiserver/cpu` is of the pod, `metrics.fake-apiserver/web.cpu` of its
/// container `web`.
const ANNOTATION: &str = "metrics.fake-apiserver/";
const NANOS: i128 = 1_000_000_000;
const KIB: i128 = 1024;

/// The use of a container, a pod or a node, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    cpu: i128,
    memory: i128,
}

impl Usage {
    /// As metrics-server writes it: billionths of a processor, and KiB.
    pub(super) fn written(self) -> Value {
        let kib = self.memory / (NANOS * KIB);
        json!({"cpu": format!("{}n", self.cpu), "memory": format!("{kib}Ki")})
    }

    fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.memory += other.memory;
    }
}

/// The use of each container of a pod, by its name. What is said of the pod as a whole, and not of a container, is that of the first
/// one. None for a pod that does not run, or says nothing.
pub(super) fn of_pod(pod: &Value) -> Option<Vec<(&str, Usage)>> {
    if at(pod, "status.phase").and_then(Value::as_str) != Some("Running") {
        return None;
    }
    let annotations = at(pod, "metadata.annotations")?;
    let said = |key: &str| {
        let text = annotations.get(format!("{ANNOTATION}{key}"))?.as_str()?;
        Quantity::parse(text).map(|quantity| quantity.nanos().max(0))
    };
    let containers = at(pod, "spec.containers").and_then(Value::as_array)?;
    let names = containers
        .iter()
        .filter_map(|container| container.get("name")?.as_str());
    let mut is_any = false;
    let mut all: Vec<(&str, Usage)> = names
        .map(|name| {
            let of = |metric: &str| said(&format!("{name}.{metric}"));
            let (cpu, memory) = (of("cpu"), of("memory"));
            is_any |= cpu.is_some() || memory.is_some();
            let usage = Usage {
                cpu: cpu.unwrap_or_default(),
                memory: memory.unwrap_or_default(),
            };
            (name, usage)
        })
        .collect();
    let (cpu, memory) = (said("cpu"), said("memory"));
    let of_all = all.iter().fold(Usage::default(), |mut sum, (_, usage)| {
        sum.add(*usage);
        sum
    });
    if let Some((_, first)) = all.first_mut() {
        first.cpu += cpu.map_or(0, |cpu| (cpu - of_all.cpu).max(0));
        first.memory += memory.map_or(0, |memory| (memory - of_all.memory).max(0));
    }
    (is_any || cpu.is_some() || memory.is_some()).then_some(all)
}

/// The use of all pods of a node.
pub(super) fn of_node(name: &str, pods: &[Value]) -> Usage {
    let of_node = |pod: &&Value| at(pod, "spec.nodeName").and_then(Value::as_str) == Some(name);
    let mut sum = Usage::default();
    for (_, usage) in pods.iter().filter(of_node).filter_map(of_pod).flatten() {
        sum.add(usage);
    }
    sum
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pod(annotations: Value, phase: &str) -> Value {
        let mut said = json!({});
        for (key, value) in annotations.as_object().expect("annotations") {
            said[format!("{ANNOTATION}{key}")] = value.clone();
        }
        json!({
            "metadata": {"annotations": said}, "status": {"phase": phase},
            "spec": {"nodeName": "n1", "containers": [{"name": "web"}, {"name": "proxy"}]},
        })
    }

    #[rstest]
    #[case::of_the_pod(json!({"cpu": "250m", "memory": "64Mi"}), "Running", Some("250000000n 65536Ki; 0n 0Ki"))]
    #[case::of_containers(json!({"web.cpu": "1", "proxy.memory": "1Mi"}), "Running", Some("1000000000n 0Ki; 0n 1024Ki"))]
    #[case::of_both(json!({"cpu": "300m", "proxy.cpu": "100m"}), "Running", Some("200000000n 0Ki; 100000000n 0Ki"))]
    #[case::less_than_its_containers(json!({"cpu": "50m", "proxy.cpu": "100m"}), "Running", Some("0n 0Ki; 100000000n 0Ki"))]
    #[case::of_another_metric(json!({"hits": "7"}), "Running", None)]
    #[case::no_amount(json!({"cpu": "much"}), "Running", None)]
    #[case::below_nothing(json!({"cpu": "-1"}), "Running", Some("0n 0Ki; 0n 0Ki"))]
    #[case::not_running(json!({"cpu": "250m"}), "Pending", None)]
    fn pods(#[case] annotations: Value, #[case] phase: &str, #[case] expected: Option<&str>) {
        let pod = pod(annotations, phase);
        let shown = of_pod(&pod).map(|all| {
            let texts: Vec<String> = all
                .iter()
                .map(|(_, usage)| {
                    let written = usage.written();
                    let text = |field: &str| written[field].as_str().expect("a text").to_owned();
                    format!("{} {}", text("cpu"), text("memory"))
                })
                .collect();
            texts.join("; ")
        });
        assert_eq!(shown.as_deref(), expected);
    }

    #[test]
    fn a_node_uses_what_its_pods_use() {
        let pods = [
            pod(json!({"cpu": "250m"}), "Running"),
            pod(json!({"cpu": "1", "memory": "3Mi"}), "Running"),
            pod(json!({"cpu": "9"}), "Failed"),
        ];
        assert_eq!(
            of_node("n1", &pods).written(),
            json!({"cpu": "1250000000n", "memory": "3072Ki"})
        );
        assert_eq!(
            of_node("n2", &pods).written(),
            json!({"cpu": "0n", "memory": "0Ki"})
        );
    }
}
