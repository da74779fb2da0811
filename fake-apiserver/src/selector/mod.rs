//! Label and field selectors.

mod field;
mod label;
mod lexer;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;
