//! The columns of the built-in resources' tables, from `data/columns.txt`.

use std::collections::BTreeMap;

use super::resource::{Column, ColumnSource, Description};

const COLUMNS: &str = include_str!("data/columns.txt");

/// The columns by resource (`apps/v1/deployments`).
pub(super) fn all() -> BTreeMap<&'static str, Vec<Column>> {
    let mut out: BTreeMap<&str, Vec<Column>> = BTreeMap::new();
    let mut ids: Vec<&str> = Vec::new();
    for line in COLUMNS.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => ids = line.split_whitespace().collect(),
            Some(line) => {
                let column = column(line, ids.first().copied().unwrap_or_default());
                for id in &ids {
                    out.entry(id).or_default().push(column.clone());
                }
            }
        }
    }
    out
}

fn column(line: &'static str, id: &'static str) -> Column {
    let parts: Vec<&str> = line.split(" |").map(str::trim).collect();
    let (name, words, description) = match parts.as_slice() {
        [name] => return standard(name),
        [name, description] => (*name, "", *description),
        [name, words, description, ..] => (*name, *words, *description),
        [] => ("", "", ""),
    };
    let has = |word: &str| words.split(' ').any(|given| given == word);
    let kind = ["integer", "boolean"]
        .into_iter()
        .find(|kind| has(kind))
        .unwrap_or("string");
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: if has("name") { "name" } else { "" }.to_owned(),
        description: match description.strip_prefix('@') {
            Some(path) => Description::OfField(id.to_owned(), path.to_owned()),
            None => Description::Text(description.replace("\\n", "\n")),
        },
        priority: i64::from(has("wide")),
        source: ColumnSource::Builtin,
    }
}

/// The columns that every object has: `Name`, `Age` and `Created At`.
pub(crate) fn standard(name: &str) -> Column {
    let (kind, format, field) = match name {
        "Name" => ("string", "name", "name"),
        "Age" => ("string", "", "creationTimestamp"),
        _ => ("date", "", "creationTimestamp"),
    };
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: Description::OfMeta(field),
        priority: 0,
        source: ColumnSource::Builtin,
    }
}
