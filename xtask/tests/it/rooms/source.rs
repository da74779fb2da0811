//! Reads the imports between the top-level modules of a crate: by `crate::` paths, and by `super::` paths that lead to the root.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Imports;

/// Every top-level module of the crate whose sources are in a folder, and its imports of the others. `with_tests`: also those of tests
/// and of modules that only tests use (`…_tests.rs`, `test_….rs`).
pub(super) fn imports(src: &Path, with_tests: bool) -> Imports {
    let mut files = Vec::new();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(src).expect("a crate's sources") {
        let path = entry.expect("an entry").path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        if path.is_dir() || path.extension().is_some_and(|end| end == "rs") {
            files.push((name, path));
        }
    }
    files.retain(|(name, _)| !matches!(name.as_str(), "lib" | "main" | "bin"));
    files.retain(|(name, _)| with_tests || !name.starts_with("test_"));
    names.extend(files.iter().map(|(name, _)| name.clone()));
    let mut out = Imports::new();
    for (name, path) in files {
        let imports = out.entry(name.clone()).or_default();
        walk(&path, 1, &mut |path, text, depth| {
            let is_test = path.to_string_lossy().ends_with("_tests.rs");
            let found = match with_tests {
                true => paths(text, depth),
                false if is_test => BTreeSet::new(),
                false => paths_at(text.split("\nmod tests {").next().unwrap_or_default(), depth),
            };
            imports.extend(
                found
                    .into_iter()
                    .filter(|found| *found != name && names.contains(found)),
            );
        });
    }
    out
}

/// Calls with each source file, its text, and how deep the module is in the crate.
fn walk(path: &Path, depth: usize, call: &mut impl FnMut(&Path, &str, usize)) {
    if path.is_file() {
        if path.extension().is_some_and(|end| end == "rs") {
            let is_folder = path.file_name().is_some_and(|name| name == "mod.rs");
            let text = fs::read_to_string(path).expect("a source file");
            call(path, &text, if is_folder { depth - 1 } else { depth });
        }
        return;
    }
    let mut entries: Vec<_> = fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for entry in entries {
        walk(&entry, depth + 1, call);
    }
}

/// The names below the crate's root that a file names. `depth`: how many modules the file's own is below the root. Code after
/// `mod tests {` is one deeper.
fn paths(text: &str, depth: usize) -> BTreeSet<String> {
    let (code, tests) = text.split_once("\nmod tests {").unwrap_or((text, ""));
    let mut out = paths_at(code, depth);
    out.extend(paths_at(tests, depth + 1));
    out
}

fn paths_at(text: &str, depth: usize) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let up = "super::".repeat(depth);
    for root in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            let rest = &code[at + root.len()..];
            if let Some(group) = rest.strip_prefix('{') {
                out.extend(firsts(group));
            } else {
                out.extend(word(rest));
            }
        }
    }
    out
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = &text[..end.unwrap_or(text.len())];
    (!matches!(word, "" | "super" | "self")).then(|| word.to_owned())
}

/// The first words of the parts of a group, up to its end.
fn firsts(group: &str) -> Vec<String> {
    let (mut out, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                out.extend(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    out
}

#[test]
fn paths_are_read() {
    let check = |text: &str, depth: usize, expected: &[&str]| {
        let found = paths(text, depth);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    };
    check(
        "use crate::a::B;\nuse crate::{c, d::{E, f}, g as h};",
        1,
        &["a", "c", "d", "g"],
    );
    check(
        "fn f() { crate::a::b(super::c(), super::super::d()) }",
        1,
        &["a", "c"],
    );
    check("fn f() { super::c(); super::super::d() }", 2, &["d"]);
    check(
        "use super::a::B;\nmod tests {\n    use super::super::c::D;\n    use super::*;\n}",
        1,
        &["a", "c"],
    );
    check("// crate::a\n/// [`crate::b`]\nuse other::crate_name;", 1, &[]);
}
