//! The programs beside the server, of which it says whether they run.

use std::sync::atomic::{AtomicBool, Ordering};

/// A program of the control plane beside the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// kube-controller-manager, or some of its controllers.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
}

/// Which components run.
#[derive(Debug, Default)]
pub(crate) struct Running {
    controller_manager: AtomicBool,
    scheduler: AtomicBool,
}

impl Running {
    fn of(&self, component: Component) -> &AtomicBool {
        match component {
            Component::ControllerManager => &self.controller_manager,
            Component::Scheduler => &self.scheduler,
        }
    }

    /// Whether it runs.
    pub(crate) fn has(&self, component: Component) -> bool {
        self.of(component).load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self, component: Component) {
        self.of(component).store(true, Ordering::Relaxed);
    }
}
