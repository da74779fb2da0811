//! Files that the command line names.

use std::io::{self, Write as _};
use std::path::Path;

use shared_json::Value;

use super::Failure;
use crate::nodes::{ImageRegistry, NodeFile, NodeSpec};

fn node_file(path: &Path) -> Result<NodeFile, Failure> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
    Ok(NodeFile::from_yaml(&text).map_err(|error| told(&error))?)
}

/// The nodes of a file, or so many plain ones; and the images of the file, and of one of images alone.
pub(super) fn node_specs(
    file: Option<&Path>,
    count: u32,
    images_file: Option<&Path>,
) -> Result<(Vec<NodeSpec>, ImageRegistry), Failure> {
    let images = ImageRegistry::default();
    let mut nodes = Vec::new();
    if let Some(path) = file {
        let file = node_file(path)?;
        file.register(&images);
        nodes = file.nodes;
    }
    if let Some(path) = images_file {
        let file = node_file(path)?;
        if !file.nodes.is_empty() {
            return Err(format!(
                "{}: nodes are of no use here; give them with --node-config",
                path.display()
            )
            .into());
        }
        file.register(&images);
    }
    if nodes.is_empty() {
        nodes = (1..=count).map(NodeSpec::numbered).collect();
    }
    Ok((nodes, images))
}

/// The CustomResourceDefinitions in the files of a directory, in the order of the files' names; other objects are left out.
pub(super) fn definitions(directory: &Path) -> Result<Vec<Value>, Failure> {
    let told = |path: &Path, error: &dyn std::fmt::Display| format!("read {}: {error}", path.display());
    let entries = std::fs::read_dir(directory).map_err(|error| told(directory, &error))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let is_manifest = path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if !is_manifest {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| told(&path, &error))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|error| told(&path, &error))?;
        let mut kept: Vec<Value> = documents
            .into_iter()
            .filter(|document| {
                document.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
            })
            .collect();
        found.append(&mut kept);
    }
    Ok(found)
}

/// Writes a file that only its owner may read: it holds a key.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
