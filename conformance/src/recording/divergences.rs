//! Known differences from recordings, with their reasons. Only listed ones are forgiven.

use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

/// One known difference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divergence {
    /// The recording's name, such as `1.5.0/cs-bad-image-revert-old`.
    pub recording: String,
    /// The step's name.
    pub step: String,
    /// The difference: the lines of the diff, each with its `-` (the recording's) or `+` (ours).
    pub what: String,
    /// Why that is right.
    pub why: String,
}

/// Reads the list; a file that does not exist is an empty one.
///
/// # Errors
/// If the file cannot be read or is not such a list.
pub fn read(path: &Path) -> Result<Vec<Divergence>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_saphyr::from_str(&text).map_err(|error| Error::yaml(path, &error))
}

/// Whether the lines of a diff are just those that are forgiven.
#[must_use]
pub fn forgives<'a>(
    list: &'a [Divergence],
    recording: &str,
    step: &str,
    diff: &[String],
) -> Option<&'a Divergence> {
    list.iter().find(|known| {
        known.recording == recording
            && known.step == step
            && known
                .what
                .lines()
                .map(str::trim_end)
                .filter(|line| !line.is_empty())
                .eq(diff.iter().map(|line| line.trim_end()))
    })
}
