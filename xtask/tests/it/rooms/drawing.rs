//! The table as ARCHITECTURE.md shows it.

use std::fmt::Write as _;

use super::table::CRATES;

/// Each crate with its imports.
pub(super) fn of_table() -> String {
    let width = CRATES.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let mut out = String::from("```text\n");
    for row in CRATES {
        let imports = if row.imports.is_empty() {
            "-".to_owned()
        } else {
            row.imports.join(" ")
        };
        writeln!(out, "{:width$}  →  {imports}", row.name).expect("text");
    }
    out.push_str("```\n");
    out
}
