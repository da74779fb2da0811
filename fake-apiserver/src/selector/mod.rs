//! Label selectors.

mod label;
mod lexer;
mod of_labels;

pub(crate) use label::LabelSelector;
pub(crate) use of_labels::matches_selector;
