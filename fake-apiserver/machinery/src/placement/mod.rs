//! Rules about pods and the nodes, volumes and settings that they get: pure, and the same for the server, the scheduler, kubelets and
//! controllers. Those about affinity, taints and requests are in `pod_rules`.

mod qos;
mod simulated_node;
mod sysctls;
mod volumes;

pub use pod_rules::nodes::requests::{
    Amounts, Count, Insufficient, add, amounts, asked, in_units, insufficient, requests, scored,
};
pub use pod_rules::nodes::{REQUIRED_AFFINITY, node_matches, term_matches, tolerates, tolerates_all};
pub use qos::qos_class;
pub use simulated_node::OS_IMAGE;
pub use sysctls::SYSCTLS;
pub use volumes::{attributes_of, class_of, fits as volume_fits, is_bound_to, mode, size};
