//! Finding files.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The files below `root` that are called `name`, in order of their paths.
///
/// # Errors
/// If a folder cannot be read.
pub fn named(root: &Path, name: &str) -> Result<Vec<PathBuf>, Error> {
    all(root, |path| path.file_name().is_some_and(|file| file == name))
}

/// The files below `root` with this extension, in order of their paths.
///
/// # Errors
/// If a folder cannot be read.
pub fn with_extension(root: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    all(root, |path| {
        path.extension().is_some_and(|found| found == extension)
    })
}

fn all(root: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| Error::Read {
            path: folder.clone(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
