//! Cycles of a graph.

use std::collections::BTreeSet;

use super::Imports;

/// All nodes that can be reached from one.
fn reached(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for next in imports.get(node).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

/// The groups of nodes that reach each other, by their first node.
pub(super) fn cycles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let mut out: Vec<BTreeSet<String>> = Vec::new();
    for node in imports.keys() {
        let reached = reached(imports, node);
        if !reached.contains(node) || out.iter().any(|cycle| cycle.contains(node)) {
            continue;
        }
        let back = reached
            .into_iter()
            .filter(|other| other == node || self::reached(imports, other).contains(node));
        out.push(back.collect());
    }
    out
}

#[test]
fn cycles_are_found() {
    let check = |edges: &[(&str, &str)], expected: &[&[&str]]| {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry((*to).to_owned()).or_default();
            imports
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
        }
        let found = cycles(&imports);
        let found: Vec<Vec<&str>> = found
            .iter()
            .map(|one| one.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(found, expected);
    };
    check(&[("a", "b"), ("b", "c"), ("a", "c")], &[]);
    check(&[("a", "b"), ("b", "a"), ("b", "c")], &[&["a", "b"]]);
    check(
        &[("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "d")],
        &[&["a", "b", "c"], &["d", "e"]],
    );
}
