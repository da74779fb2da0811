//! The table of functions: `functions.txt`, read once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::ty::Ty;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub id: &'static str,
    /// Called on its first argument.
    pub is_method: bool,
    pub args: Vec<Ty<'static>>,
    pub result: Ty<'static>,
}

static TABLE: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    for line in include_str!("functions.txt").lines() {
        if let Some((name, overload)) = read(line) {
            table.entry(name).or_default().push(overload);
        }
    }
    table
});

fn read(line: &'static str) -> Option<(&'static str, Overload)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_once(' ')?;
    let (id, rest) = rest.split_once(" (")?;
    let (args, result) = rest.rsplit_once(") ")?;
    let overload = Overload {
        id,
        is_method: name.starts_with('.'),
        args: parts(args).into_iter().map(parse).collect(),
        result: parse(result),
    };
    Some((name.strip_prefix('.').unwrap_or(name), overload))
}

/// The texts between the commas outside of parentheses.
fn parts(text: &'static str) -> Vec<&'static str> {
    let (mut depth, mut from, mut out) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.extend(text.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    out.extend(text.get(from..));
    out.into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// A type as the table writes it.
pub(super) fn parse(text: &'static str) -> Ty<'static> {
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner = parts(inner).into_iter().map(parse);
        let mut next = || Box::new(inner.next().unwrap_or(Ty::Dyn));
        return match name {
            "list" => Ty::List(next()),
            "map" => Ty::Map(next(), next()),
            "optional" => Ty::Optional(next()),
            _ => Ty::Type(next()),
        };
    }
    match text {
        "bool" => Ty::Bool,
        "int" => Ty::Int,
        "uint" => Ty::Uint,
        "double" => Ty::Double,
        "string" => Ty::Text,
        "bytes" => Ty::Bytes,
        "timestamp" => Ty::Timestamp,
        "duration" => Ty::Duration,
        "dyn" => Ty::Dyn,
        "A" => Ty::Var(0),
        "B" => Ty::Var(1),
        named => Ty::Named(named),
    }
}

/// The ways to call a function; none if there is none of that name.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    TABLE.get(name).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("functions.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        let count: usize = TABLE.values().map(Vec::len).sum();
        assert_eq!(count, lines.count());
        let query = overloads("getQuery")
            .and_then(|all| all.first())
            .map(|one| one.result.to_string());
        assert_eq!(query.as_deref(), Some("map(string, list(string))"));
    }
}
