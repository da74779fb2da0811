//! Snapshots: the text of a step that a person has looked at and found right. In insta's form, beside the scenario.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder of a scenario's snapshots.
const FOLDER: &str = "snapshots";

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the text comes from, as its header says.
    pub description: String,
    /// The text, with its newline.
    pub text: String,
}

/// The file of a step's snapshot: `snapshots/02-scale-to-5.snap`.
#[must_use]
pub fn path(scenario_folder: &Path, index: usize, step: &str) -> PathBuf {
    let name: String = step
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    scenario_folder
        .join(FOLDER)
        .join(format!("{:02}-{name}.snap", index + 1))
}

/// Whether a scenario has snapshots at all.
#[must_use]
pub fn any(scenario_folder: &Path) -> bool {
    scenario_folder.join(FOLDER).is_dir()
}

/// Reads a step's snapshot, if it has one.
#[must_use]
pub fn read(scenario_folder: &Path, index: usize, step: &str) -> Option<Snapshot> {
    let content = std::fs::read_to_string(path(scenario_folder, index, step)).ok()?;
    let (header, text) = content.strip_prefix("---\n")?.split_once("\n---\n")?;
    let description = header
        .lines()
        .find_map(|line| line.strip_prefix("description: "))
        .unwrap_or_default();
    Some(Snapshot {
        description: description.trim_matches('"').to_owned(),
        text: text.to_owned(),
    })
}

/// Writes a step's snapshot.
///
/// # Errors
/// If the file cannot be written.
pub fn write(scenario_folder: &Path, index: usize, step: &str, snapshot: &Snapshot) -> Result<(), Error> {
    let path = path(scenario_folder, index, step);
    let failed = |source| Error::Write {
        path: path.clone(),
        source,
    };
    std::fs::create_dir_all(scenario_folder.join(FOLDER)).map_err(failed)?;
    let failed = |source| Error::Write {
        path: path.clone(),
        source,
    };
    let content = format!(
        "---\nsource: conformance\ndescription: \"{}\"\n---\n{}",
        snapshot.description, snapshot.text
    );
    std::fs::write(&path, content).map_err(failed)
}
