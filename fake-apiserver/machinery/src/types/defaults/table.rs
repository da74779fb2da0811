//! The table of plain defaults of built-in types.
//!
//! `defaults.txt` holds one definition per unindented line, without its prefix (`core.v1.PodSpec`), and per indented line
//! a path of fields from there and its default as JSON. They are the defaults that the real server's code sets and
//! OpenAPI does not show; each is seen in the answers of a 1.36 server or documented with its field.

use shared_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One default: the path to the field, and the value.
pub(in crate::types) type Row = (Vec<&'static str>, Value);

const PREFIXES: [&str; 3] = [
    "io.k8s.api.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
];

/// The name of a definition as the table has it.
pub(super) fn short(definition: &str) -> &str {
    PREFIXES
        .iter()
        .find_map(|prefix| definition.strip_prefix(prefix))
        .unwrap_or(definition)
}

/// The defaults of a definition, by its short name.
pub(super) fn of(definition: &str) -> &'static [Row] {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Row>>> = OnceLock::new();
    TABLE
        .get_or_init(|| parse(include_str!("defaults.txt")))
        .get(definition)
        .map_or(&[], Vec::as_slice)
}

fn parse(text: &'static str) -> HashMap<&'static str, Vec<Row>> {
    let mut table: HashMap<&str, Vec<Row>> = HashMap::new();
    let mut definition = "";
    for line in text.lines() {
        match line.strip_prefix(' ').and_then(|row| row.split_once(' ')) {
            None => definition = line,
            Some((path, json)) => {
                if let Ok(value) = shared_json::from_str(json) {
                    table
                        .entry(definition)
                        .or_default()
                        .push((path.split('.').collect(), value));
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Schema, builtin, builtin_kinds};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn collect(schema: &Schema, known: &mut BTreeMap<String, Arc<Schema>>) {
        if let Some(object) = schema.as_object() {
            for field in object.fields.values() {
                visit(&field.schema.shared(), known);
            }
            object
                .additional
                .iter()
                .for_each(|values| visit(&values.shared(), known));
        }
        if let Some(array) = schema.as_array() {
            visit(&array.items.shared(), known);
        }
    }

    fn visit(schema: &Arc<Schema>, known: &mut BTreeMap<String, Arc<Schema>>) {
        if let Some(name) = schema.name.as_deref() {
            if known.contains_key(short(name)) {
                return;
            }
            known.insert(short(name).to_owned(), schema.clone());
        }
        collect(schema, known);
    }

    #[test]
    fn every_row_is_a_value_of_a_field_that_exists() {
        let mut known = BTreeMap::new();
        for gvk in builtin_kinds() {
            visit(&builtin(gvk).unwrap(), &mut known);
        }
        let mut definition = "";
        for line in include_str!("defaults.txt").lines() {
            let Some(row) = line.strip_prefix(' ') else {
                definition = line;
                continue;
            };
            let (path, json) = row.split_once(' ').unwrap();
            let schema = known.get(definition).unwrap_or_else(|| panic!("no {definition}"));
            let path: Vec<&str> = path.split('.').collect();
            let field = schema
                .at(&path)
                .unwrap_or_else(|| panic!("no {path:?} in {definition}"));
            assert_eq!(
                field.check_types(&shared_json::from_str(json).unwrap()),
                Ok(()),
                "{definition} {row}"
            );
        }
    }
}
