//! JSON whose copies share memory.
//!
//! [`Value`] is `serde_json`'s, method by method, but for two things. A copy of an object, an array or a long text shares its memory.
//! A write through one of the copies copies one level at a time, so that two versions of a document still share the parts that are
//! the same in both. And an object is a sorted row of its fields, whose names are kept once for the whole process ([`Name`]); it takes
//! a fraction of the memory of a tree. Two values in the same memory are equal at a glance, and a short text takes no memory of its own.
//!
//! Text is read and written by `serde_json` itself, whose functions are here, too.

mod array;
mod convert;
mod de;
mod go;
mod index;
mod literal;
mod macros;
mod map;
mod name;
mod ser;
#[cfg(test)]
mod tests;
mod value;

pub use array::Array;
pub use de::from_value;
pub use ecow::EcoString as Text;
pub use go::{go_escape, go_escape_from, needs_go_escape, to_go_string};
pub use index::Index;
pub use map::{Entry, IntoIter, Map, OccupiedEntry, VacantEntry};
pub use name::Name;
pub use ser::to_value;
pub use serde_json::{
    Deserializer, Error, Number, Result, from_reader, from_slice, from_str, to_string, to_string_pretty,
    to_vec, to_vec_pretty, to_writer, to_writer_pretty,
};
pub use value::Value;

#[doc(hidden)]
pub mod private {
    //! The names that the macro's output uses.
    pub use crate::literal::{Expression, Serialised, Shared};
}
