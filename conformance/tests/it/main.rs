//! The harness as its users see it: it passes, it catches broken controllers, it replays, it explains errors in its input.

mod apidiff;
mod bad_input;
mod broken;
mod budgets;
mod fixtures;
mod foreign;
mod histories;
mod hostile;
mod kubeconfig;
mod listed_workloads;
mod manager;
mod probes;
mod record;
mod replay;
mod reports;
mod rights;
mod soak;
mod support;
mod takeover;

/// As in `cargo xtask`: what these tests play is many short-lived JSON documents.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
