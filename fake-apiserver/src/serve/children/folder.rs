//! The files that a program is given.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shared_json::{Value, json};

/// The folder of a container. It goes when this is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes an empty one that only its owner may read.
    pub(super) fn make(path: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file; a reader sees the old or the new one.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let fresh = self.path(".fresh");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&fresh)?.write_all(content)?;
        fs::rename(fresh, path)
    }

    /// Writes the files of the container's volumes below `root`.
    pub(super) fn write_volumes(&self, files: &[(String, Vec<u8>)]) -> io::Result<()> {
        for (path, content) in files.iter().filter(|(path, _)| is_plain(path)) {
            self.write(&format!("root{path}"), content)?;
        }
        fs::create_dir_all(self.path("root"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a path leads nowhere but down.
fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// A kubeconfig for a token in a file.
pub(super) fn kubeconfig(
    address: SocketAddr,
    authority: Option<&str>,
    namespace: &str,
    token: &Path,
) -> Value {
    let cluster = match authority {
        Some(authority) => json!({
            "server": format!("https://{address}"), "certificate-authority-data": STANDARD.encode(authority),
        }),
        None => json!({"server": format!("http://{address}")}),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "account", "user": {"tokenFile": token.to_string_lossy()}}],
        "contexts": [{"name": "pod", "context": {"cluster": "cluster", "user": "account", "namespace": namespace}}],
        "current-context": "pod",
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/etc/x/y", true)]
    #[case("/etc/..data/y", true)]
    #[case("/etc/../../y", false)]
    #[case("etc", false)]
    fn paths(#[case] path: &str, #[case] expected: bool) {
        assert_eq!(is_plain(path), expected);
    }

    #[test]
    fn a_folder_has_its_files_and_goes() {
        let path = std::env::temp_dir().join(format!("fake-apiserver-folder-{}", std::process::id()));
        let folder = Folder::make(path.clone()).expect("a folder");
        folder.write("token", b"one").expect("to write");
        folder.write("token", b"two").expect("to write");
        let volumes = [
            ("/etc/m/a".to_owned(), b"b".to_vec()),
            ("/../x".to_owned(), b"c".to_vec()),
        ];
        folder.write_volumes(&volumes).expect("to write");
        assert_eq!(fs::read(folder.path("token")).expect("a file"), b"two");
        assert_eq!(fs::read(folder.path("root/etc/m/a")).expect("a file"), b"b");
        assert!(!path.join("x").exists());
        drop(folder);
        assert!(!path.exists());
    }
}
