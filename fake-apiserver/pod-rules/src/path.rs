//! The place of a field, as complaints name it: `spec.containers[0].ports`.
//!
//! A path is a chain on the stack that is written out only when there is something to complain about.

use std::fmt;

/// A path to a field; its beginnings are borrowed.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// A path that begins with this field; dots in it are kept as they are. Empty for the object itself.
    pub const fn new(field: &'a str) -> Self {
        Self {
            parent: None,
            part: Part::Field(field),
        }
    }

    /// `self.field`
    pub const fn field(&'a self, field: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Field(field),
        }
    }

    /// `self[index]`
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Index(index),
        }
    }

    /// `self[key]`
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Key(key),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.part {
            Part::Field(field) if self.parent.is_some() => write!(f, ".{field}"),
            Part::Field(field) => f.write_str(field),
            Part::Index(index) => write!(f, "[{index}]"),
            Part::Key(key) => write!(f, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_go_does() {
        let spec = Path::new("spec");
        let list = spec.field("containers");
        assert_eq!(list.index(1).field("name").to_string(), "spec.containers[1].name");
        assert_eq!(
            spec.field("resources.limits").key("cpu").to_string(),
            "spec.resources.limits[cpu]"
        );
    }
}
