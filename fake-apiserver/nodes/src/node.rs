//! The Node object of a simulated node.

use std::collections::BTreeMap;

use machinery::placement::OS_IMAGE;
use machinery::types::Quantity;
use serde::Deserialize;
use shared_json::{Value, json};

use super::pressure::SIGNALS;

/// A node's default capacity of ephemeral storage.
const STORAGE: &str = "100Gi";
/// The declared features of its kubelet (those of the real one of this version, by default).
const DECLARED_FEATURES: [&str; 4] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
];

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value; empty for none.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl Taint {
    fn object(&self) -> Value {
        let mut object = json!({"key": self.key, "effect": self.effect});
        if !self.value.is_empty() {
            object["value"] = json!(self.value);
        }
        object
    }
}

/// The conditions of a node that is up, with these pressures (types of conditions).
pub(super) fn ready_conditions(now: &str, pressures: &[&str]) -> Vec<Value> {
    const CONDITIONS: [(&str, &str, &str, &str); 4] = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let condition = |(kind, status, reason, message): (&str, &str, &str, &str)| {
        let short = SIGNALS
            .iter()
            .find(|signal| signal.condition == kind && pressures.contains(&kind));
        let (status, (reason, message)) = match short {
            Some(signal) => ("True", signal.shown),
            None => (status, (reason, message)),
        };
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    CONDITIONS.map(condition).to_vec()
}

/// A node to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name, such as `node1`.
    pub name: String,
    /// Its labels, besides the well-known ones.
    pub labels: BTreeMap<String, String>,
    /// Its taints from the start.
    pub taints: Vec<Taint>,
    /// Whether it begins cordoned.
    pub unschedulable: bool,
    /// Amounts by resource; a resource that is not in here follows from the next three fields.
    pub capacity: BTreeMap<String, String>,
    /// Cores.
    pub cpu: u32,
    /// Memory in GiB.
    pub memory_gib: u32,
    /// How many pods it takes.
    pub pods: u32,
    /// The address of the node itself.
    pub address: String,
    /// The first three numbers of its pods' addresses.
    pub pod_network: String,
}

/// The first three bytes of the addresses of a numbered node's pods: those of a usual cluster, then those that carriers share among
/// their customers, then whatever comes next.
fn pod_network(n: u32) -> String {
    let (block, third) = (n / 250, n % 250);
    let (first, second) = match block {
        0..12 => (10, 244 + block),
        12..76 => (100, 52 + block),
        _ => (11 + (block - 76) / 256, (block - 76) % 256),
    };
    format!("{first}.{second}.{third}")
}

impl NodeSpec {
    /// The `n`-th node (from 1) of a plain cluster: 8 cores, 32 GiB, 110 pods.
    #[must_use]
    pub fn numbered(n: u32) -> Self {
        Self {
            name: format!("node{n}"),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            unschedulable: false,
            capacity: BTreeMap::new(),
            cpu: 8,
            memory_gib: 32,
            pods: 110,
            address: format!("10.{}.{}.{}", 99 + n / 61_440, n / 240 % 256, n % 240 + 9),
            pod_network: pod_network(n),
        }
    }

    /// Its capacity, in units, by resource.
    pub(super) fn capacities(&self) -> BTreeMap<String, i128> {
        let plain = [
            ("memory", format!("{}Gi", self.memory_gib)),
            ("ephemeral-storage", STORAGE.to_owned()),
        ];
        let plain = plain.map(|(name, amount)| (name.to_owned(), amount));
        let all = plain.into_iter().chain(self.capacity.clone());
        all.filter_map(|(name, amount)| Some((name, Quantity::parse(&amount)?.units())))
            .collect()
    }

    /// The Node object as its kubelet registers it.
    pub(super) fn object(&self, now: &str) -> Value {
        let mut labels = self.labels.clone();
        for (key, value) in [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/hostname", &self.name),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        let mut resources = json!({
            "cpu": self.cpu.to_string(), "memory": format!("{}Gi", self.memory_gib),
            "pods": self.pods.to_string(), "ephemeral-storage": STORAGE,
        });
        for (name, amount) in &self.capacity {
            resources[name] = json!(amount);
        }
        let mut spec = json!({
            "podCIDR": format!("{}.0/24", self.pod_network), "podCIDRs": [format!("{}.0/24", self.pod_network)],
        });
        if !self.taints.is_empty() {
            spec["taints"] = self.taints.iter().map(Taint::object).collect();
        }
        if self.unschedulable {
            spec["unschedulable"] = json!(true);
        }
        let features = json!({"recursiveReadOnlyMounts": true, "userNamespaces": true});
        let handlers = json!([{"name": "", "features": features}, {"name": "runc", "features": features}]);
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": spec,
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "addresses": [
                    {"type": "InternalIP", "address": self.address},
                    {"type": "Hostname", "address": self.name},
                ],
                "conditions": ready_conditions(now, &[]),
                "declaredFeatures": DECLARED_FEATURES,
                "runtimeHandlers": handlers,
                "nodeInfo": {
                    "architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.1.0",
                    "osImage": OS_IMAGE, "containerRuntimeVersion": "containerd://2.1.0",
                    "kubeletVersion": "v1.36.2", "kubeProxyVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn numbered_nodes_have_addresses_of_their_own() {
        let mut all = BTreeSet::new();
        for n in (1..=20_000).chain([61_439, 61_440, 100_000, 1_000_000]) {
            let node = NodeSpec::numbered(n);
            for address in [node.address, format!("{}.1", node.pod_network)] {
                let address: Ipv4Addr = address.parse().expect("an address");
                assert!(all.insert(address), "node {n} has {address}, as another has");
            }
        }
        assert_eq!(NodeSpec::numbered(1).pod_network, "10.244.1");
        assert_eq!(NodeSpec::numbered(3000).pod_network, "100.64.0");
        assert_eq!(NodeSpec::numbered(19_000).pod_network, "11.0.0");
    }
}
