//! Label and field selectors.

mod field;
mod label;
mod lexer;
mod of_labels;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;
pub(crate) use of_labels::matches_selector;
