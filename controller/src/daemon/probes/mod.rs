//! The probes of containers that the NodePodProbe of the node asks for.
//!
//! `prober` runs them, each at its own times: `ask` has the three kinds of probes, `count` the thresholds (pure). `results` are the last
//! results of all probes of the node, `status` makes the status of the NodePodProbe of them (pure), and `writer` writes it and tells
//! results as events.

mod ask;
mod count;
mod key;
mod prober;
mod results;
mod status;
mod writer;

use std::sync::Arc;

use client_kit::EventRecorder;

use super::Node;
use crate::api::v1alpha1::NodePodProbe;
use crate::kit::{Informer, ObjectKey, Runtime, WorkQueue};

/// The source of events.
const COMPONENT: &str = "kruise-daemon-podprobe";
/// How many probes are asked at a time.
const WORKERS: usize = 32;

/// Adds the probes of a node, and gives the cache of their list.
pub(super) fn start(runtime: &mut Runtime, node: &Node) -> Informer<NodePodProbe> {
    let probes = runtime.named_cache(&node.name);
    let results = Arc::new(results::Results::default());
    let writes = Arc::new(WorkQueue::new());
    let clock = Arc::clone(&node.clock);
    let prober = prober::Prober {
        probes: probes.clone(),
        node: ObjectKey::new("", &node.name),
        runtime: Arc::clone(&node.runtime),
        network: Arc::clone(&node.network),
        clock: Arc::clone(&node.clock),
        results: Arc::clone(&results),
        states: std::sync::Mutex::default(),
        writes: Arc::clone(&writes),
    };
    runtime.add(&Arc::new(prober), &Arc::new(WorkQueue::new()), WORKERS);
    let writer = writer::Writer {
        client: node.client.clone(),
        recorder: EventRecorder::new(node.client.clone(), COMPONENT, Some(&node.name), clock)
            .with_reporting(true),
        probes: probes.clone(),
        results,
    };
    runtime.add(&Arc::new(writer), &writes, 1);
    probes
}
