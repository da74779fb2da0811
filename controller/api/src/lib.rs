#![doc = include_str!("../README.md")]

pub mod definitions;
pub mod labels;
mod shared;
pub mod v1alpha1;
pub mod v1beta1;
