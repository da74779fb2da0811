//! Label selectors.

mod label;
mod lexer;
mod of_labels;

pub use label::LabelSelector;
pub use of_labels::matches_selector;
