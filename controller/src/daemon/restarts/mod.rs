//! Restarts of containers: the daemon stops a container, and the kubelet starts it anew.
//!
//! Two things ask for it. `environment` restarts containers whose environment has changed in an update in place. `controller` carries out
//! ContainerRecreateRequests: `queue` says which request of a pod comes next, `states` how its containers stand, `walk` the next step by
//! that. These three are pure. `stopper` stops a container for both, with its hook (`hooks`) and its grace period.

mod controller;
mod environment;
mod hooks;
mod queue;
mod states;
mod stopper;
mod walk;

use std::sync::Arc;

use client_kit::EventRecorder;

pub(super) use self::environment::Restart;
use self::environment::Restarts;
use self::stopper::Stopper;
use super::Node;
use crate::api::labels::{REQUEST_ACTIVE, REQUEST_NODE};
use crate::api::v1alpha1::ContainerRecreateRequest;
use crate::kit::{Informer, Runtime, WorkQueue};
use crate::pods::pod::Pod;

/// The source of events about restarts for a new environment.
const ENVIRONMENT_COMPONENT: &str = "kruise-daemon-containermeta";
/// The source of events about requests.
const REQUESTS_COMPONENT: &str = "kruise-daemon-crr";
/// How many pods are worked on at a time (OpenKruise: 32).
const WORKERS: usize = 32;
/// How many containers are restarted for a new environment at a time (OpenKruise: 10). A container may take its grace period to end.
const ENVIRONMENT_WORKERS: usize = 10;

fn stopper(node: &Node, component: &'static str) -> Stopper {
    let clock = Arc::clone(&node.clock);
    Stopper {
        runtime: Arc::clone(&node.runtime),
        network: Arc::clone(&node.network),
        recorder: EventRecorder::new(node.client.clone(), component, Some(&node.name), clock)
            .with_reporting(true),
    }
}

/// Adds the restarts for new environments, which come from a queue.
pub(super) fn start_environment(
    runtime: &mut Runtime,
    node: &Node,
    pods: &Informer<Pod>,
    restarts: &Arc<WorkQueue<Restart>>,
) {
    let restarter = Restarts {
        stopper: stopper(node, ENVIRONMENT_COMPONENT),
        pods: pods.clone(),
    };
    runtime.add(&Arc::new(restarter), restarts, ENVIRONMENT_WORKERS);
}

/// Adds the restarts by requests, and gives their cache. Without the pods of the node a hook by HTTP has to name its host.
pub(super) fn start_requests(
    runtime: &mut Runtime,
    node: &Node,
    pods: Option<&Informer<Pod>>,
) -> Informer<ContainerRecreateRequest> {
    let own = format!("{REQUEST_NODE}={},{REQUEST_ACTIVE}=true", node.name);
    let queue = Arc::new(WorkQueue::new());
    let requests = runtime.labelled_cache(&own);
    let controller = controller::Controller {
        client: node.client.clone(),
        clock: Arc::clone(&node.clock),
        requests: requests.clone(),
        pods: pods.cloned(),
        stopper: stopper(node, REQUESTS_COMPONENT),
        expectations: Arc::default(),
        queue: Arc::clone(&queue),
    };
    runtime.add(&Arc::new(controller), &queue, WORKERS);
    requests
}
