//! Scenarios: Chainsaw `Test` files (`chainsaw.kyverno.io/v1alpha1`).
//!
//! [`chainsaw`] is the file's form, [`load`] reads it and the files that it refers to, [`configuration`] the configuration of a
//! folder's tests, [`values`] a person's values for tests, [`extras`] the annotations with Seatrial's additions, [`beyond`]
//! the parts of Chainsaw that are not played.

pub mod beyond;
pub mod chainsaw;
mod configuration;
pub mod duration;
pub mod extras;
pub mod load;
pub mod values;

pub use load::Scenario;
