//! The cluster as its clients see it.

mod absent;
mod autoscaling;
mod collections;
mod custom;
mod deletions;
mod everything;
mod faults;
mod garbage;
mod lives;
mod lives_rows;
mod nodes;
mod patches;
mod pods;
mod process;
mod resizing;
mod rules;
mod runtime;
mod served;
mod streams;
mod support;
mod watches;
mod webhooks;
mod workloads;
mod writes;
