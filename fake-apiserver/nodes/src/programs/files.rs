//! The files of a container: in memory, with places that outlive it or are shared with others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::nic::Nic;

/// The largest size of a file; bytes beyond it are lost.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How many files a tree may have.
const FILES_MAX: usize = 10_000;

/// The HTTP path of the page that the images of web servers bring, and its content.
const INDEX: &str = "/index.html";
pub(crate) const STOCK_PAGE: &[u8] = b"<html><body><h1>It works!</h1></body></html>\n";

/// The directories that every image has.
const FOLDERS: [&str; 9] = [
    "/bin", "/dev", "/etc", "/home", "/root", "/tmp", "/usr/bin", "/var/run", "/var/log",
];

/// A directory tree: absolute path to content; a directory has none.
#[derive(Debug, Clone, Default)]
struct Tree(BTreeMap<String, Option<Vec<u8>>>);

/// A tree that several containers, or several instances of one, may see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    tree: Arc<Mutex<Tree>>,
    /// The visible part: the path of a file or a directory; all of it if empty.
    part: Arc<str>,
}

impl Volume {
    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file or a directory of it, which is made if there is none.
    pub(crate) fn part(&self, path: &str) -> Self {
        let part = resolve("/", path);
        if part == "/" {
            return self.clone();
        }
        let files = Files::with_mounts(vec![("/v".to_owned(), self.clone())]);
        // One that is there stays as it is.
        let _ = files
            .make_dir(&format!("/v{part}"), false)
            .or_else(|_| files.make_dir(&format!("/v{part}"), true));
        Self {
            tree: Arc::clone(&self.tree),
            part: format!("{}{part}", self.part).into(),
        }
    }

    /// A copy of its present contents.
    pub(crate) fn copy(&self) -> Self {
        Self {
            tree: Arc::new(Mutex::new(self.lock().clone())),
            part: Arc::clone(&self.part),
        }
    }

    /// Takes the contents of another one; all that share it see them.
    pub(crate) fn become_like(&self, other: &Self) {
        let tree = std::mem::take(&mut *other.lock());
        *self.lock() = tree;
    }
}

/// The files of a container: a root of its own and volumes mounted over it.
#[derive(Clone)]
pub(crate) struct Files {
    /// Made at the first access: most containers never make one.
    root: Arc<OnceLock<Volume>>,
    /// Mount path (without a slash at its end) to volume, longest first.
    mounts: Vec<(String, Volume)>,
    /// The path of the page that the image brings.
    page: Option<String>,
    /// The pod's network, for the files in `/etc` that tell of it.
    nic: Option<Nic>,
}

impl Default for Files {
    fn default() -> Self {
        Self::with_mounts(Vec::new())
    }
}

/// Why a file cannot be had; printed as the C library does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("No such file or directory")]
    Missing,
    #[error("Is a directory")]
    IsDirectory,
    #[error("Not a directory")]
    NotDirectory,
    #[error("File exists")]
    Exists,
    #[error("Directory not empty")]
    NotEmpty,
    #[error("No space left on device")]
    Full,
}

/// An absolute path without `.`, `..` and doubled slashes.
pub(super) fn resolve(cwd: &str, path: &str) -> String {
    let full = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => path.get(..at).unwrap_or("/"),
    }
}

/// A path without doubled slashes, after all above it but the root.
fn with_parents(path: &str) -> Vec<String> {
    let mut at = String::new();
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            at = format!("{at}/{part}");
            at.clone()
        })
        .collect()
}

/// The rest of a path below another.
fn below<'p>(path: &'p str, above: &str) -> Option<&'p str> {
    path.strip_prefix(above)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Files {
    /// A fresh root with `mounts` (path and volume) over it.
    pub(crate) fn with_mounts(mut mounts: Vec<(String, Volume)>) -> Self {
        mounts.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        let files = Self {
            root: Arc::default(),
            mounts,
            page: None,
            nic: None,
        };
        // What is mounted below another mount is below a directory there.
        for (path, _) in &files.mounts {
            let is_above = |other: &str| other != path && below(path, other).is_some();
            if files.mounts.iter().any(|(other, _)| is_above(other)) {
                files.make_dirs(path);
            }
        }
        files
    }

    /// The files of an image that serves pages from the directory `folder`: it brings the stock page, unless a volume hides it.
    pub(crate) fn with_pages(mut self, folder: Option<&str>) -> Self {
        let page = folder.map(|folder| format!("{folder}{INDEX}"));
        self.page = page.filter(|page| self.mounted(page).is_none());
        self
    }

    /// The files of a container on a network: `/etc` tells of it.
    pub(crate) fn with_network(mut self, nic: &Nic) -> Self {
        self.nic = Some(nic.clone());
        self
    }

    /// Whether a web server finds the page of an HTTP path; none if the image does not bring that page.
    pub(crate) fn finds_page(&self, path: &str) -> Option<bool> {
        let page = self.page.as_deref().filter(|_| path == INDEX)?;
        // A root that was never made is as the image brought it.
        Some(self.root.get().is_none() || self.is_file(page))
    }

    /// The root with the directories that every image has, those in which something is mounted, and the image's page.
    fn root(&self) -> &Volume {
        self.root.get_or_init(|| {
            let mounts = self.mounts.iter().map(|(path, _)| path.as_str());
            let pages = self.page.iter().map(|page| parent(page));
            let all = FOLDERS
                .into_iter()
                .chain(mounts)
                .chain(pages)
                .flat_map(with_parents);
            let own = all.filter(|path| self.mounted(path).is_none());
            let mut tree = Tree(own.map(|path| (path, None)).collect());
            if let Some(page) = &self.page {
                tree.0.insert(page.clone(), Some(STOCK_PAGE.to_vec()));
            }
            let told = self.nic.iter().flat_map(Nic::files);
            for (path, content) in told.filter(|(path, _)| self.mounted(path).is_none()) {
                tree.0.insert(path.to_owned(), Some(content));
            }
            Volume {
                tree: Arc::new(Mutex::new(tree)),
                part: Arc::default(),
            }
        })
    }

    /// The volume that is mounted at a path or above it, and the path there.
    fn mounted(&self, path: &str) -> Option<(&Volume, String)> {
        for (mount, volume) in &self.mounts {
            if let Some(rest) = below(path, mount) {
                let inner = format!("{}{rest}", volume.part);
                return Some((volume, if inner.is_empty() { "/".to_owned() } else { inner }));
            }
        }
        None
    }

    fn volume(&self, path: &str) -> (&Volume, String) {
        self.mounted(path)
            .unwrap_or_else(|| (self.root(), path.to_owned()))
    }

    fn make_dirs(&self, path: &str) {
        for at in with_parents(path) {
            let (volume, inner) = self.volume(&at);
            volume.lock().0.entry(inner).or_insert(None);
        }
    }

    /// A file's content.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        if path == "/dev/null" {
            return Ok(Vec::new());
        }
        let (volume, inner) = self.volume(path);
        match volume.lock().0.get(&inner) {
            Some(Some(content)) => Ok(content.clone()),
            Some(None) => Err(FileError::IsDirectory),
            None if inner == "/" => Err(FileError::IsDirectory),
            None => Err(FileError::Missing),
        }
    }

    /// Writes a file, or appends to it.
    pub(crate) fn write(&self, path: &str, content: &[u8], append: bool) -> Result<(), FileError> {
        if path == "/dev/null" {
            return Ok(());
        }
        if !self.is_dir(parent(path)) {
            return Err(FileError::Missing);
        }
        let (volume, inner) = self.volume(path);
        let mut tree = volume.lock();
        if inner == "/" || matches!(tree.0.get(&inner), Some(None)) {
            return Err(FileError::IsDirectory);
        }
        if tree.0.len() >= FILES_MAX {
            return Err(FileError::Full);
        }
        let file = tree.0.entry(inner).or_default().get_or_insert_default();
        if !append {
            file.clear();
        }
        let room = FILE_BYTES_MAX.saturating_sub(file.len()).min(content.len());
        file.extend_from_slice(content.get(..room).unwrap_or_default());
        Ok(())
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        let (volume, inner) = self.volume(path);
        inner == "/" || matches!(volume.lock().0.get(&inner), Some(None))
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        let (volume, inner) = self.volume(path);
        let tree = volume.lock();
        matches!(tree.0.get(&inner), Some(Some(_)))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.is_dir(path) || self.is_file(path) || path == "/dev/null"
    }

    /// Makes a directory; with `parents` also those above it, and it may exist.
    pub(crate) fn make_dir(&self, path: &str, parents: bool) -> Result<(), FileError> {
        if self.is_file(path) || (self.is_dir(path) && !parents) {
            return Err(FileError::Exists);
        }
        if !parents && !self.is_dir(parent(path)) {
            return Err(FileError::Missing);
        }
        self.make_dirs(path);
        Ok(())
    }

    /// The files in the mounted volumes that `wanted` says of, and their contents.
    pub(crate) fn in_mounts(&self, wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mounts = self.mounts.iter().map(|(path, _)| path.clone());
        let mut folders: Vec<String> = mounts.filter(|path| wanted(path)).collect();
        while let Some(path) = folders.pop() {
            if let Ok(content) = self.read(&path) {
                found.push((path, content));
                continue;
            }
            let names = self.list(&path).unwrap_or_default();
            folders.extend(names.iter().map(|name| format!("{path}/{name}")));
        }
        found.sort();
        found.dedup();
        found
    }

    /// The names in a directory, or the file itself.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        if self.is_file(path) {
            return Ok(vec![path.to_owned()]);
        }
        if !self.is_dir(path) {
            return Err(FileError::Missing);
        }
        let (volume, inner) = self.volume(path);
        let prefix = if inner == "/" { inner } else { format!("{inner}/") };
        let tree = volume.lock();
        Ok(tree
            .0
            .keys()
            .filter_map(|key| key.strip_prefix(&prefix))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .map(str::to_owned)
            .collect())
    }

    /// Removes a file, or with `recursive` a directory and its contents.
    pub(crate) fn remove(&self, path: &str, recursive: bool) -> Result<(), FileError> {
        if !self.exists(path) {
            return Err(FileError::Missing);
        }
        let (volume, inner) = self.volume(path);
        let mut tree = volume.lock();
        if matches!(tree.0.get(&inner), Some(None)) || inner == "/" {
            if !recursive {
                return Err(FileError::IsDirectory);
            }
            let prefix = format!("{}/", inner.trim_end_matches('/'));
            tree.0.retain(|key, _| !key.starts_with(&prefix));
        }
        tree.0.remove(&inner);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        if self.is_file(path) {
            return Err(FileError::NotDirectory);
        }
        if !self.list(path)?.is_empty() {
            return Err(FileError::NotEmpty);
        }
        self.remove(path, true)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/", "tmp/x", "/tmp/x")]
    #[case("/a", "../b/./c", "/b/c")]
    #[case("/a", "//etc//x/", "/etc/x")]
    #[case("/", "../..", "/")]
    fn paths(#[case] cwd: &str, #[case] path: &str, #[case] expected: &str) {
        assert_eq!(resolve(cwd, path), expected);
    }

    #[test]
    fn files_are_written_listed_and_removed() {
        let files = Files::default();
        assert_eq!(files.read("/tmp/x"), Err(FileError::Missing));
        assert_eq!(files.write("/tmp/x", b"one", false), Ok(()));
        assert_eq!(files.write("/tmp/x", b"two", true), Ok(()));
        assert_eq!(files.read("/tmp/x"), Ok(b"onetwo".to_vec()));
        assert_eq!(files.write("/no/x", b"", false), Err(FileError::Missing));
        assert_eq!(files.make_dir("/a/b", false), Err(FileError::Missing));
        assert_eq!(files.make_dir("/a/b", true), Ok(()));
        assert_eq!(files.list("/a"), Ok(vec!["b".to_owned()]));
        assert_eq!(files.remove("/a", false), Err(FileError::IsDirectory));
        assert_eq!(files.remove("/a", true), Ok(()));
        assert!(!files.exists("/a/b"));
    }

    #[test]
    fn a_volume_is_shared_and_outlives_a_container() {
        let volume = Volume::default();
        let mounts = || vec![("/dev/shm".to_owned(), volume.clone())];
        let one = Files::with_mounts(mounts());
        assert_eq!(one.write("/dev/shm/x", b"1", false), Ok(()));
        assert_eq!(one.write("/tmp/x", b"1", false), Ok(()));
        let other = Files::with_mounts(mounts());
        assert!(other.is_file("/dev/shm/x") && !other.exists("/tmp/x"));
    }

    #[test]
    fn a_part_of_a_volume_is_seen_alone() {
        let volume = Volume::default();
        let all = Files::with_mounts(vec![("/v".to_owned(), volume.clone())]);
        assert_eq!(all.make_dir("/v/d/e", true), Ok(()));
        assert_eq!(
            (all.write("/v/f", b"1", false), all.write("/v/d/g", b"2", false)),
            (Ok(()), Ok(()))
        );
        let mount = |path: &str, part: &str| (path.to_owned(), volume.part(part));
        let parts = Files::with_mounts(vec![
            mount("/etc/x/f", "f"),
            mount("/d", "d/"),
            mount("/new", "a/b"),
        ]);
        assert_eq!(
            (parts.read("/etc/x/f"), parts.read("/d/g")),
            (Ok(b"1".to_vec()), Ok(b"2".to_vec()))
        );
        assert!(
            parts.is_dir("/d/e") && parts.is_dir("/new") && all.is_dir("/v/a/b") && !parts.exists("/d/f")
        );
        assert_eq!(parts.list("/d"), Ok(vec!["e".to_owned(), "g".to_owned()]));
        assert_eq!(parts.write("/new/h", b"3", false), Ok(()));
        assert_eq!(all.read("/v/a/b/h"), Ok(b"3".to_vec()));
        let other = Volume::default();
        let changed = Files::with_mounts(vec![("/v".to_owned(), other.clone())]);
        assert_eq!(changed.write("/v/f", b"4", false), Ok(()));
        volume.become_like(&other);
        assert_eq!((all.read("/v/f"), all.exists("/v/d")), (Ok(b"4".to_vec()), false));
    }

    #[test]
    fn a_mount_below_a_mount_is_in_a_directory_there() {
        let (outer, inner) = (Volume::default(), Volume::default());
        let mounts = vec![
            ("/data".to_owned(), outer.clone()),
            ("/data/a/b".to_owned(), inner),
        ];
        let files = Files::with_mounts(mounts);
        let other = Files::with_mounts(vec![("/x".to_owned(), outer)]);
        assert!(other.is_dir("/x/a") && !other.exists("/x/a/b"));
        assert_eq!(files.write("/data/a/b/c", b"1", false), Ok(()));
        assert_eq!(files.list("/data/a/b"), Ok(vec!["c".to_owned()]));
        assert_eq!(files.list("/var"), Ok(vec!["log".to_owned(), "run".to_owned()]));
    }
}
