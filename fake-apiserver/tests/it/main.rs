//! The cluster as its clients see it.

mod collections;
mod custom;
mod deletions;
mod garbage;
mod lives;
mod nodes;
mod patches;
mod pods;
mod rules;
mod served;
mod support;
mod watches;
mod webhooks;
mod workloads;
mod writes;
