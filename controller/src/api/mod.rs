//! The API types of OpenKruise, as release 1.9.0 serves them.

pub mod labels;
pub mod v1alpha1;
pub mod v1beta1;
