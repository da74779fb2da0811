//! Everything wired to a client.

use std::future::Future;
use std::sync::Arc;

use kube::Client;

use crate::kit::{Runtime, WorkQueue};
use crate::pods::launch_priority::Launcher;
use crate::pods::readiness::Readiness;
use crate::workloads::{Options, Start};

/// The controllers of OpenKruise on one client.
pub struct Manager {
    client: Client,
    options: Options,
}

impl Manager {
    /// A manager that speaks through `client`.
    #[must_use]
    pub fn new(client: Client, options: Options) -> Self {
        Self { client, options }
    }

    /// Runs the controllers until `shutdown` is ready; then lets the passes that run come to their end.
    ///
    /// Must be called within a tokio runtime. Failures of requests are retried, so this never fails.
    pub async fn run(self, shutdown: impl Future) {
        let Self { client, options } = self;
        let metrics = Arc::clone(&options.metrics);
        let mut runtime = Runtime::new(client.clone(), options.namespace.clone(), metrics)
            .listing_in(options.list_order.clone());
        let readiness = Readiness::new(client.clone(), runtime.cache(), Arc::clone(&options.clock));
        runtime.add(&Arc::new(readiness), &Arc::new(WorkQueue::new()), 1);
        let launcher = Launcher::new(client.clone(), runtime.cache());
        runtime.add(&Arc::new(launcher), &Arc::new(WorkQueue::new()), 1);
        for workload in options.workloads() {
            (workload.start)(&mut Start {
                runtime: &mut runtime,
                client: &client,
                options: &options,
                workload,
            });
        }
        runtime.run(shutdown).await;
    }
}
