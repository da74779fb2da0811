//! Reads the crates and their dependencies from `Cargo.toml` files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The members of the workspace: folders by the name under which sources import the crate.
pub(super) fn members(root: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let (_, list) = text.split_once("members = [").expect("a list of members");
    let (list, _) = list.split_once(']').expect("the end of the list");
    let folders = list.split('"').skip(1).step_by(2);
    folders
        .map(|folder| {
            let text = fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("a manifest");
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
                .expect("a name");
            // Packages of the registry have a prefix that their names in the sources lack.
            let name = name.strip_prefix("seatrial-").unwrap_or(name);
            (name.to_owned(), folder.to_owned())
        })
        .collect()
}

/// The names in a section such as `dependencies`.
pub(super) fn dependencies(manifest: &str, section: &str) -> Vec<String> {
    let head = format!("[{section}]");
    let inside = manifest
        .lines()
        .skip_while(|line| line.trim() != head)
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    inside
        .filter_map(|line| line.split(['=', '.', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_are_read() {
    let text = "[package]\nname = \"a\"\n\n[dependencies]\nb = { workspace = true }\nc.workspace = true\n# d = \"1\"\n\n[lints]\nworkspace = true\n";
    assert_eq!(dependencies(text, "dependencies"), ["b", "c"]);
    assert_eq!(dependencies(text, "dev-dependencies"), Vec::<String>::new());
}
