//! Types of CEL, and their assignability.

use std::collections::BTreeMap;
use std::fmt;

use crate::types::Schema;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ty<'a> {
    /// Anything, known when the expression is evaluated.
    Dyn,
    /// Something is wrong with the expression, and has been said.
    Wrong,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    Type(Box<Ty<'a>>),
    List(Box<Ty<'a>>),
    Map(Box<Ty<'a>>, Box<Ty<'a>>),
    Optional(Box<Ty<'a>>),
    /// An object with declared fields.
    Object(Shape<'a>),
    /// A type of a library: `kubernetes.Quantity`.
    Named(&'static str),
    /// A type that is still to be found out.
    Var(u32),
}

/// The fields of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// Those of a schema; of a resource also `apiVersion`, `kind` and `metadata`.
    Described { schema: &'a Schema, is_resource: bool },
    /// The metadata of a resource: its names.
    Metadata,
    /// Those of a record of the library.
    Record(&'static Record),
    /// The variables of a policy.
    Variables(&'a BTreeMap<String, Ty<'a>>),
}

/// A type with fixed fields, such as an admission request.
#[derive(Debug)]
pub struct Record {
    pub name: &'static str,
    /// Names, and types as `functions.txt` writes them.
    pub fields: &'static [(&'static str, &'static str)],
    /// Fields that are records themselves.
    pub records: &'static [(&'static str, &'static Record)],
}

impl PartialEq for Shape<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Shape::Described { schema: a, .. }, Shape::Described { schema: b, .. }) => std::ptr::eq(*a, *b),
            (Shape::Metadata, Shape::Metadata) => true,
            (Shape::Record(a), Shape::Record(b)) => a.name == b.name,
            (Shape::Variables(_), Shape::Variables(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Ty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Dyn => f.write_str("dyn"),
            Ty::Wrong => f.write_str("!error!"),
            Ty::Null => f.write_str("null"),
            Ty::Bool => f.write_str("bool"),
            Ty::Int => f.write_str("int"),
            Ty::Uint => f.write_str("uint"),
            Ty::Double => f.write_str("double"),
            Ty::Text => f.write_str("string"),
            Ty::Bytes => f.write_str("bytes"),
            Ty::Timestamp => f.write_str("timestamp"),
            Ty::Duration => f.write_str("duration"),
            Ty::Type(of) => write!(f, "type({of})"),
            Ty::List(of) => write!(f, "list({of})"),
            Ty::Map(key, value) => write!(f, "map({key}, {value})"),
            Ty::Optional(of) => write!(f, "optional_type({of})"),
            // The real server numbers such types by the time of day.
            Ty::Object(Shape::Described { .. } | Shape::Metadata | Shape::Variables(_)) => {
                f.write_str("object")
            }
            Ty::Object(Shape::Record(record)) => f.write_str(record.name),
            Ty::Named(name) => f.write_str(name),
            Ty::Var(_) => f.write_str("dyn"),
        }
    }
}

impl<'a> Ty<'a> {
    pub(super) fn list(of: Ty<'a>) -> Self {
        Ty::List(Box::new(of))
    }

    pub(super) fn optional(of: Ty<'a>) -> Self {
        match of {
            Ty::Optional(_) => of,
            of => Ty::Optional(Box::new(of)),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Ty::Dyn | Ty::Wrong)
    }

    /// Whether values of the type have size 1.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Ty::Bool | Ty::Double | Ty::Duration | Ty::Int | Ty::Timestamp | Ty::Uint => true,
            Ty::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }

    /// The type with each part replaced.
    fn mapped(&self, change: &impl Fn(u32) -> Option<Ty<'a>>) -> Ty<'a> {
        let inner = |of: &Ty<'a>| Box::new(of.mapped(change));
        match self {
            Ty::Var(var) => change(*var).unwrap_or_else(|| self.clone()),
            Ty::Type(of) => Ty::Type(inner(of)),
            Ty::List(of) => Ty::List(inner(of)),
            Ty::Map(key, value) => Ty::Map(inner(key), inner(value)),
            Ty::Optional(of) => Ty::Optional(inner(of)),
            other => other.clone(),
        }
    }

    /// The type with other variables, for one call of a function.
    pub(super) fn fresh(&self, first: u32) -> Ty<'a> {
        self.mapped(&|var| Some(Ty::Var(first + var)))
    }

    fn mentions(&self, var: u32) -> bool {
        match self {
            Ty::Var(own) => *own == var,
            Ty::Type(of) | Ty::List(of) | Ty::Optional(of) => of.mentions(var),
            Ty::Map(key, value) => key.mentions(var) || value.mentions(var),
            _ => false,
        }
    }

    /// Whether `null` may stand where the type is asked for.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Ty::Null | Ty::Object(_) | Ty::Timestamp | Ty::Duration | Ty::Named(_) | Ty::Optional(_)
        )
    }
}

/// The types found for variables so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Found<'a> {
    known: BTreeMap<u32, Ty<'a>>,
}

impl<'a> Found<'a> {
    /// The type with the known variables replaced; unknown ones stay.
    pub(super) fn apply(&self, ty: &Ty<'a>) -> Ty<'a> {
        ty.mapped(&|var| self.known.get(&var).map(|known| self.apply(known)))
    }

    /// The same, with `dyn` in the place of unknown variables.
    pub(super) fn settled(&self, ty: &Ty<'a>) -> Ty<'a> {
        self.apply(ty).mapped(&|_| Some(Ty::Dyn))
    }

    /// Whether values of one list of types may stand for values of another; if so, the variables' types are kept.
    pub(super) fn accepts(&mut self, given: &[Ty<'a>], wanted: &[Ty<'a>]) -> bool {
        if given.len() != wanted.len() {
            return false;
        }
        let mut tried = self.clone();
        let fits = std::iter::zip(given, wanted).all(|(given, wanted)| tried.fits(given, wanted));
        if fits {
            *self = tried;
        }
        fits
    }

    fn fits(&mut self, given: &Ty<'a>, wanted: &Ty<'a>) -> bool {
        if given == wanted {
            return true;
        }
        if let Ty::Var(var) = wanted {
            return self.bind(*var, given, |found, known| found.fits(given, known));
        }
        if let Ty::Var(var) = given {
            return self.bind(*var, wanted, |found, known| found.fits(known, wanted));
        }
        if given.is_open() || wanted.is_open() {
            return true;
        }
        match (given, wanted) {
            (Ty::Null, other) | (other, Ty::Null) => other.takes_null(),
            (Ty::Type(_), Ty::Type(_)) => true,
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => self.fits(a, b),
            (Ty::Map(ak, av), Ty::Map(bk, bv)) => self.fits(ak, bk) && self.fits(av, bv),
            _ => false,
        }
    }

    fn bind(&mut self, var: u32, other: &Ty<'a>, check: impl FnOnce(&mut Self, &Ty<'a>) -> bool) -> bool {
        let Some(known) = self.known.get(&var).cloned() else {
            if other.mentions(var) {
                return false;
            }
            self.known.insert(var, other.clone());
            return true;
        };
        if known == *other {
            return true;
        }
        let fits = check(self, &known);
        // The more general of the two is what the variable is.
        if fits && (*other == Ty::Dyn || matches!(known, Ty::Wrong | Ty::Null)) && !other.mentions(var) {
            self.known.insert(var, other.clone());
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&[Ty::Int, Ty::Int], true)]
    #[case(&[Ty::Int, Ty::Text], false)]
    #[case(&[Ty::Dyn, Ty::Text], true)]
    #[case(&[Ty::Null, Ty::Text], false)]
    #[case(&[Ty::Timestamp, Ty::Null], true)]
    #[case(&[Ty::list(Ty::Var(9)), Ty::list(Ty::Int)], true)]
    fn two_of_one_type(#[case] given: &[Ty<'static>], #[case] fits: bool) {
        let mut found = Found::default();
        assert_eq!(found.accepts(given, &[Ty::Var(0), Ty::Var(0)]), fits);
    }

    #[test]
    fn an_empty_list_takes_the_type_of_what_is_added() {
        let mut found = Found::default();
        let lists = [Ty::list(Ty::Var(0)), Ty::list(Ty::Var(0))];
        assert!(found.accepts(&[Ty::list(Ty::Var(7)), Ty::list(Ty::Text)], &lists));
        assert_eq!(found.settled(&Ty::list(Ty::Var(7))), Ty::list(Ty::Text));
    }
}
