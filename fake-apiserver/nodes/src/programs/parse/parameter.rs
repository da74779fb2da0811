//! `${…}`: a parameter, and what is made of its value.

use super::lexer::Lexer;
use super::{Part, SyntaxError, Word, error};

/// A change of a parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Change {
    pub kind: ChangeKind,
    /// The word behind the operator.
    pub word: Word,
    /// The replacement of a pattern, or the length of a slice.
    pub more: Option<Word>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ChangeKind {
    /// `${x-word}`; with a colon an empty value counts as none, as for the next three.
    Default { or_empty: bool },
    /// `${x=word}`
    Assign { or_empty: bool },
    /// `${x+word}`
    Alternative { or_empty: bool },
    /// `${x?word}`
    Complain { or_empty: bool },
    /// `${#x}`
    Length,
    /// `${x#pattern}`, `${x##pattern}`
    WithoutBeginning { longest: bool },
    /// `${x%pattern}`, `${x%%pattern}`
    WithoutEnd { longest: bool },
    /// `${x/pattern/word}`, `${x//pattern/word}`
    Replace { all: bool },
    /// `${x:offset:length}`
    Slice,
}

use ChangeKind::{
    Alternative, Assign, Complain, Default, Length, Replace, Slice, WithoutBeginning, WithoutEnd,
};

/// By their operators, of those that begin alike the longer one first.
const OPERATORS: [(&str, ChangeKind); 15] = [
    (":-", Default { or_empty: true }),
    (":=", Assign { or_empty: true }),
    (":+", Alternative { or_empty: true }),
    (":?", Complain { or_empty: true }),
    ("-", Default { or_empty: false }),
    ("=", Assign { or_empty: false }),
    ("+", Alternative { or_empty: false }),
    ("?", Complain { or_empty: false }),
    ("%%", WithoutEnd { longest: true }),
    ("%", WithoutEnd { longest: false }),
    ("##", WithoutBeginning { longest: true }),
    ("#", WithoutBeginning { longest: false }),
    ("//", Replace { all: true }),
    ("/", Replace { all: false }),
    (":", Slice),
];

/// The length of a parameter's name at the beginning of a text.
fn name_length(text: &str) -> usize {
    match text.chars().next() {
        Some('?' | '$' | '#' | '@' | '*' | '!' | '-') => 1,
        Some(c) if c.is_ascii_digit() => text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()),
        _ => text
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len()),
    }
}

/// Reads the text between the braces.
pub(super) fn read(text: &str, quoted: bool, depth: usize) -> Result<Part, SyntaxError> {
    let bad = || error(format!("bad substitution \"${{{text}}}\""));
    let part = |name: &str, change: Option<Change>| Part::Parameter {
        name: name.to_owned(),
        change: change.map(Box::new),
        quoted,
    };
    if let Some(name) = text.strip_prefix('#')
        && !name.is_empty()
        && name_length(name) == name.len()
    {
        let change = Change {
            kind: Length,
            word: Word::default(),
            more: None,
        };
        return Ok(part(name, Some(change)));
    }
    let (name, rest) = text.split_at(name_length(text));
    if name.is_empty() {
        return bad();
    }
    if rest.is_empty() {
        return Ok(part(name, None));
    }
    let known = OPERATORS
        .iter()
        .find_map(|(operator, kind)| Some((*kind, rest.strip_prefix(operator)?)));
    let Some((kind, rest)) = known else { return bad() };
    let (word, more) = match kind {
        Replace { .. } => cut(rest, '/'),
        Slice => cut(rest, ':'),
        _ => (rest, None),
    };
    // Quotes within patterns quote, also where the whole is quoted.
    let is_text = quoted
        && matches!(
            kind,
            Default { .. } | Assign { .. } | Alternative { .. } | Complain { .. }
        );
    let whole = |text: &str| Lexer::new(text, depth).whole(is_text);
    let change = Change {
        kind,
        word: whole(word)?,
        more: more.map(whole).transpose()?,
    };
    Ok(part(name, Some(change)))
}

/// Cuts a text at the first separator that is not quoted, nor in an expansion.
fn cut(text: &str, separator: char) -> (&str, Option<&str>) {
    let (mut quote, mut level) = (None, 0_u32);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\\') => _ = chars.next(),
            (None, '\'' | '"') => quote = Some(c),
            (None, '{' | '(') => level += 1,
            (None, '}' | ')') => level = level.saturating_sub(1),
            (None, c) if c == separator && level == 0 => {
                return (text.get(..at).unwrap_or_default(), text.get(at + c.len_utf8()..));
            }
            _ => {}
        }
    }
    (text, None)
}
