//! Scenarios: Chainsaw `Test` files (`chainsaw.kyverno.io/v1alpha1`).
//!
//! [`chainsaw`] is the file's form, [`load`] reads it and what it refers to, [`configuration`] what all tests of a folder have in
//! common, [`values`] what a person gives to tests, [`extras`] reads the annotations for what Chainsaw has no word for, [`beyond`]
//! knows what of Chainsaw is not played.

pub mod beyond;
pub mod chainsaw;
mod configuration;
pub mod duration;
pub mod extras;
pub mod load;
pub mod values;

pub use load::Scenario;
