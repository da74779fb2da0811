//! The controllers of workloads: each looks at an object and its pods, plans, and acts.
//!
//! [`pods`] reads pods, [`pod_control`] makes and deletes them, [`adoption`] finds their owners, [`revisions`] is the history of
//! a template.

pub(super) mod adoption;
pub(super) mod cronjob;
pub(super) mod daemonset;
mod daemonset_plan;
mod daemonset_pods;
pub(super) mod deployment;
mod deployment_plan;
pub(super) mod job;
mod job_indexes;
mod job_plan;
mod job_policies;
mod job_status;
pub(super) mod pod_control;
pub(super) mod pods;
pub(super) mod replicaset;
pub(super) mod revisions;
pub(super) mod statefulset;
mod statefulset_claims;
pub(super) mod ttl;
