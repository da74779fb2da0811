//! JSON whose copies share memory.
//!
//! [`Value`] is `serde_json`'s, method by method, but for two things. A copy of an object, an array or a long text is that in the
//! same memory: what is written through one of them is copied then, one level at a time, so that two versions of a document have
//! in common what they have in common. And an object is a sorted row of its fields, whose names are kept once for the whole process
//! ([`Name`]); it takes a fraction of the memory of a tree. What is the same memory is equal at a glance, and a short text takes none.
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
    //! What the macro writes.
    pub use crate::literal::{Expression, Serialised, Shared};
}
