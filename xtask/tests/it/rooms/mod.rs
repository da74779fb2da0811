//! The allowed imports between crates and modules: the table ([`table`]) is the rule, the sources must follow it.
//!
//! [`manifest`] reads the `Cargo.toml` files, [`source`] the imports between the top-level modules of a crate, [`graph`] finds cycles.
//! ARCHITECTURE.md shows the table; [`drawing`] holds the two against each other.

mod drawing;
mod graph;
mod manifest;
mod source;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use table::{CRATES, Crate};

/// A graph: the imports of each node.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the workspace")
}

fn row(name: &str) -> Option<&'static Crate> {
    CRATES.iter().find(|row| row.name == name)
}

/// The complaints, each on a line of its own, and nothing for none.
#[track_caller]
fn no_complaints(complaints: &[String]) {
    assert!(
        complaints.is_empty(),
        "\n{}\n\nThe rule is the table in xtask/tests/it/rooms/table.rs: a crate imports only what stands in its row.\n",
        complaints.join("\n")
    );
}

#[test]
fn crates_import_what_their_row_allows() {
    let root = root();
    let members = manifest::members(&root);
    let mut complaints = Vec::new();
    for (name, folder) in &members {
        let Some(row) = row(name) else {
            complaints.push(format!("{name}: has no row"));
            continue;
        };
        let text = fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("a manifest");
        let of = |section| -> BTreeSet<String> {
            let all = manifest::dependencies(&text, section).into_iter();
            all.filter(|name| members.contains_key(name)).collect()
        };
        let imports = of("dependencies");
        let allowed: BTreeSet<String> = row.imports.iter().map(|name| (*name).to_owned()).collect();
        for import in imports.difference(&allowed) {
            complaints.push(format!(
                "{name}: imports {import}, and may import {allowed:?} only"
            ));
        }
        for import in allowed.difference(&imports) {
            complaints.push(format!(
                "{name}: does not import {import} any more; take it out of the row"
            ));
        }
        for import in of("dev-dependencies").difference(&allowed) {
            if !table::IN_TESTS.contains(&(name.as_str(), import.as_str())) {
                complaints.push(format!("{name}: imports {import} in its tests, and may not"));
            }
        }
    }
    for row in CRATES.iter().filter(|row| !members.contains_key(row.name)) {
        complaints.push(format!("{}: has a row and is no crate", row.name));
    }
    no_complaints(&complaints);
}

#[test]
fn crates_form_no_cycle() {
    let imports: Imports = CRATES
        .iter()
        .map(|row| {
            let imports = row.imports.iter().map(|name| (*name).to_owned());
            (row.name.to_owned(), imports.collect())
        })
        .collect();
    assert_eq!(graph::cycles(&imports), Vec::<BTreeSet<String>>::new());
}

/// The top-level modules of a crate and their imports of each other, with or without those of tests.
fn modules(row: &Crate, with_tests: bool) -> Imports {
    let members = manifest::members(&root());
    let folder = members.get(row.name).expect("a crate");
    source::imports(&root().join(folder).join("src"), with_tests)
}

#[test]
fn modules_import_what_their_row_allows() {
    let mut complaints = Vec::new();
    for row in CRATES {
        let found = modules(row, true);
        for (module, allowed) in row.modules {
            let Some(imports) = found.get(*module) else {
                complaints.push(format!("{}::{module}: has a row and is no module", row.name));
                continue;
            };
            for import in imports
                .iter()
                .filter(|import| !allowed.contains(&import.as_str()))
            {
                complaints.push(format!(
                    "{}::{module}: imports {import}, and may import {allowed:?} only",
                    row.name
                ));
            }
            for import in allowed.iter().filter(|import| !imports.contains(**import)) {
                complaints.push(format!(
                    "{}::{module}: does not import {import} any more; take it out of the row",
                    row.name
                ));
            }
        }
        for module in found.keys() {
            if !row.modules.is_empty() && !row.modules.iter().any(|(name, _)| name == module) {
                complaints.push(format!("{}::{module}: has no row", row.name));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn modules_form_no_cycle() {
    let mut complaints = Vec::new();
    for row in CRATES {
        for cycle in graph::cycles(&modules(row, false)) {
            complaints.push(format!("{}: {cycle:?} import each other in a circle", row.name));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn the_architecture_page_shows_the_table() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let drawn = drawing::of_table();
    assert!(
        page.contains(&drawn),
        "ARCHITECTURE.md lacks the graph of crates as the table has it:\n\n{drawn}"
    );
}
