//! The UnitedDeployment controller: a workload for each of several subsets of the nodes.
//!
//! `children` reads workloads of four kinds alike (`kinds`), `finder` finds them in the caches. `observe` is one moment of a
//! UnitedDeployment and of its workloads, `plan` turns it into workloads to make, change and delete, and a status, `act` carries that
//! out. `wake` says which changes of pods matter. `canonical` writes templates as Go does, `amounts` reads numbers of pods,
//! `settings` has defaults. `webhook` fills in and validates.

mod act;
mod amounts;
mod canonical;
mod children;
mod controller;
mod finder;
mod kinds;
mod observe;
mod plan;
mod settings;
mod start;
mod wake;
mod webhook;

pub use start::WORKLOAD;
