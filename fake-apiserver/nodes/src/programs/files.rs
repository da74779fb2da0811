//! The files of a container: in memory, with places that outlive it or are shared with others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use shared_json::Text;

use super::cgroup;
use crate::nic::Nic;

/// The largest size of a file; bytes beyond it are lost.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How many files a tree may have.
const FILES_MAX: usize = 10_000;

/// The HTTP path of the page that the images of web servers bring, and its content.
const INDEX: &str = "/index.html";
pub(crate) const STOCK_PAGE: &[u8] = b"<html><body><h1>It works!</h1></body></html>\n";

/// The directories that every image has.
const FOLDERS: [&str; 10] = [
    "/bin", "/dev", "/etc", "/home", "/root", "/tmp", "/usr/bin", "/var/run", "/var/log", "/var/tmp",
];

/// The mode of a file that was not given another, that of a directory, and that of a volume.
const MODES: (u16, u16, u16) = (0o644, 0o755, 0o777);

/// A directory tree.
#[derive(Debug, Clone, Default)]
struct Tree {
    /// Absolute path to content; a directory has none.
    entries: BTreeMap<String, Option<Vec<u8>>>,
    /// The modes that were set.
    modes: BTreeMap<String, u16>,
}

/// A tree that several containers, or several instances of one, may see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    tree: Arc<Mutex<Tree>>,
    /// The visible part: the path of a file or a directory; all of it if empty.
    part: Arc<str>,
    /// Whether this view of it cannot be written.
    read_only: bool,
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
            read_only: self.read_only,
        }
    }

    /// A file of it, which is made, and the directories above it, if there is none.
    pub(crate) fn file(&self, path: &str) -> Self {
        let path = resolve("/v", &format!("./{path}"));
        let files = Files::with_mounts(vec![("/v".to_owned(), self.clone())]);
        if !files.exists(&path) {
            let _ = files.make_dir(parent(&path), true);
            let _ = files.write(&path, b"", true);
        }
        self.part(path.strip_prefix("/v").unwrap_or_default())
    }

    /// A copy of its present contents.
    pub(crate) fn copy(&self) -> Self {
        Self {
            tree: Arc::new(Mutex::new(self.lock().clone())),
            part: Arc::clone(&self.part),
            read_only: self.read_only,
        }
    }

    /// The same volume, mounted so that it cannot be written.
    pub(crate) fn read_only(mut self) -> Self {
        self.read_only = true;
        self
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
    /// The files that the image brings: path below the root and content.
    brought: &'static [(&'static str, &'static str)],
    /// The pod's network, for the files in `/etc` that tell of it.
    nic: Option<Nic>,
    /// The container's name.
    container: Text,
    /// Whether the root cannot be written (`readOnlyRootFilesystem`).
    read_only_root: bool,
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
    #[error("Read-only file system")]
    ReadOnly,
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

/// A mode as `ls` has it.
pub(super) fn mode_text(is_folder: bool, mode: u16) -> String {
    let letters = "rwxrwxrwx".char_indices();
    let bits = letters.map(|(at, letter)| if mode & (0o400 >> at) == 0 { '-' } else { letter });
    std::iter::once(if is_folder { 'd' } else { '-' })
        .chain(bits)
        .collect()
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
            brought: &[],
            nic: None,
            container: Text::default(),
            read_only_root: false,
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

    /// The files of an image that brings these, by their paths below the root.
    pub(crate) fn with_image(mut self, brought: &'static [(&'static str, &'static str)]) -> Self {
        self.brought = brought;
        self
    }

    /// The files of a container on a network: `/etc` tells of it, and its control group of its limits.
    pub(crate) fn with_network(mut self, nic: &Nic, container: Text) -> Self {
        self.nic = Some(nic.clone());
        self.container = container;
        self
    }

    /// The files of a container whose root cannot be written.
    pub(crate) fn with_read_only_root(mut self, read_only: bool) -> Self {
        self.read_only_root = read_only;
        self
    }

    /// The name of the container whose files these are.
    pub(crate) fn container(&self) -> &str {
        &self.container
    }

    /// The volume that is mounted at a path, as whoever fills it sees it.
    pub(crate) fn volume_at(&self, path: &str) -> Option<Volume> {
        let (_, volume) = self.mounts.iter().find(|(mount, _)| mount == path)?;
        let mut volume = volume.clone();
        volume.read_only = false;
        Some(volume)
    }

    /// Whether a path is on a volume that cannot be written. `/dev` has a file system of its own in every container.
    fn is_read_only(&self, path: &str) -> bool {
        match self.mounted(path) {
            Some((volume, _)) => volume.read_only,
            None if below(path, cgroup::FOLDER).is_some() => true,
            None => self.read_only_root && below(path, "/dev").is_none(),
        }
    }

    /// The mode of a file or a directory.
    pub(crate) fn mode(&self, path: &str) -> Result<u16, FileError> {
        let (volume, inner) = self.volume(path);
        let tree = volume.lock();
        let is_whole = path != "/" && inner == "/";
        let usual = match tree.entries.get(&inner) {
            Some(Some(_)) => MODES.0,
            Some(None) if inner == *volume.part => MODES.2,
            Some(None) => MODES.1,
            None if is_whole => MODES.2,
            None if path == "/" => MODES.1,
            None => return Err(FileError::Missing),
        };
        Ok(tree.modes.get(&inner).copied().unwrap_or(usual))
    }

    /// Sets the mode of a file or a directory.
    pub(crate) fn set_mode(&self, path: &str, mode: u16) -> Result<(), FileError> {
        self.mode(path)?;
        if self.is_read_only(path) {
            return Err(FileError::ReadOnly);
        }
        let (volume, inner) = self.volume(path);
        volume.lock().modes.insert(inner, mode);
        Ok(())
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
            let mut tree = Tree {
                entries: own.map(|path| (path, None)).collect(),
                modes: BTreeMap::new(),
            };
            if let Some(page) = &self.page {
                tree.entries.insert(page.clone(), Some(STOCK_PAGE.to_vec()));
            }
            for (path, content) in self.brought {
                let path = format!("/{path}");
                if self.mounted(&path).is_some() {
                    continue;
                }
                for above in with_parents(parent(&path)) {
                    tree.entries.entry(above).or_insert(None);
                }
                tree.entries.insert(path, Some(content.as_bytes().to_vec()));
            }
            let told = self.nic.iter().flat_map(Nic::files);
            for (path, content) in told.filter(|(path, _)| self.mounted(path).is_none()) {
                tree.entries.insert(path.to_owned(), Some(content));
            }
            Volume {
                tree: Arc::new(Mutex::new(tree)),
                part: Arc::default(),
                read_only: self.read_only_root,
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
            volume.lock().entries.entry(inner).or_insert(None);
        }
    }

    /// The content of a file that tells of the container's limits.
    fn limits_file(&self, path: &str) -> Option<Vec<u8>> {
        let name = below(path, cgroup::FOLDER)?.strip_prefix('/')?;
        let pod = self
            .nic
            .as_ref()
            .filter(|_| self.mounted(path).is_none())?
            .pod()?;
        cgroup::content(&pod, &self.container, name).map(String::into_bytes)
    }

    /// Whether a directory is the one of these files.
    fn is_limits_folder(&self, path: &str) -> bool {
        self.nic.is_some() && path == cgroup::FOLDER && self.mounted(path).is_none()
    }

    /// A file's content.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        if path == "/dev/null" {
            return Ok(Vec::new());
        }
        if let Some(content) = self.limits_file(path) {
            return Ok(content);
        }
        let (volume, inner) = self.volume(path);
        match volume.lock().entries.get(&inner) {
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
        if self.is_read_only(path) {
            return Err(FileError::ReadOnly);
        }
        let (volume, inner) = self.volume(path);
        let mut tree = volume.lock();
        if inner == "/" || matches!(tree.entries.get(&inner), Some(None)) {
            return Err(FileError::IsDirectory);
        }
        if tree.entries.len() >= FILES_MAX {
            return Err(FileError::Full);
        }
        let file = tree.entries.entry(inner).or_default().get_or_insert_default();
        if !append {
            file.clear();
        }
        let room = FILE_BYTES_MAX.saturating_sub(file.len()).min(content.len());
        file.extend_from_slice(content.get(..room).unwrap_or_default());
        Ok(())
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        if self.is_limits_folder(path) {
            return true;
        }
        let (volume, inner) = self.volume(path);
        inner == "/" || matches!(volume.lock().entries.get(&inner), Some(None))
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        if self.limits_file(path).is_some() {
            return true;
        }
        let (volume, inner) = self.volume(path);
        let tree = volume.lock();
        matches!(tree.entries.get(&inner), Some(Some(_)))
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
        if self.is_read_only(path) && !self.is_dir(path) {
            return Err(FileError::ReadOnly);
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
        if self.is_limits_folder(path) {
            return Ok(cgroup::NAMES.map(str::to_owned).to_vec());
        }
        let (volume, inner) = self.volume(path);
        let prefix = if inner == "/" { inner } else { format!("{inner}/") };
        let tree = volume.lock();
        Ok(tree
            .entries
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
        if self.is_read_only(path) {
            return Err(FileError::ReadOnly);
        }
        let (volume, inner) = self.volume(path);
        let mut tree = volume.lock();
        if matches!(tree.entries.get(&inner), Some(None)) || inner == "/" {
            if !recursive {
                return Err(FileError::IsDirectory);
            }
            let prefix = format!("{}/", inner.trim_end_matches('/'));
            tree.entries.retain(|key, _| !key.starts_with(&prefix));
            tree.modes.retain(|key, _| !key.starts_with(&prefix));
        }
        tree.modes.remove(&inner);
        tree.entries.remove(&inner);
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

    #[rstest]
    #[case(false, 0o644, "-rw-r--r--")]
    #[case(false, 0o440, "-r--r-----")]
    #[case(true, 0o777, "drwxrwxrwx")]
    fn modes_are_shown(#[case] is_folder: bool, #[case] mode: u16, #[case] expected: &str) {
        assert_eq!(mode_text(is_folder, mode), expected);
    }

    #[test]
    fn files_have_modes() {
        let volume = Volume::default();
        let files = Files::with_mounts(vec![("/v".to_owned(), volume.clone())]);
        assert_eq!(
            (files.mode("/v"), files.mode("/v/x")),
            (Ok(0o777), Err(FileError::Missing))
        );
        assert_eq!(files.write("/v/x", b"1", false), Ok(()));
        assert_eq!((files.mode("/v/x"), files.mode("/etc")), (Ok(0o644), Ok(0o755)));
        assert_eq!(files.set_mode("/v/x", 0o400), Ok(()));
        let other = Files::with_mounts(vec![("/w".to_owned(), volume.clone())]);
        assert_eq!(
            (other.mode("/w/x"), volume.copy().lock().modes.len()),
            (Ok(0o400), 1)
        );
        assert_eq!(
            (files.remove("/v/x", false), files.write("/v/x", b"1", false)),
            (Ok(()), Ok(()))
        );
        assert_eq!(
            (files.mode("/v/x"), files.set_mode("/v/y", 0o400)),
            (Ok(0o644), Err(FileError::Missing))
        );
    }

    #[test]
    fn a_volume_mounted_read_only_is_not_written() {
        let volume = Volume::default();
        let mounts = vec![
            ("/r".to_owned(), volume.clone().read_only()),
            ("/w".to_owned(), volume),
        ];
        let files = Files::with_mounts(mounts);
        assert_eq!(
            (files.write("/w/x", b"1", false), files.read("/r/x")),
            (Ok(()), Ok(b"1".to_vec()))
        );
        assert_eq!(files.write("/r/x", b"2", false), Err(FileError::ReadOnly));
        assert_eq!(files.make_dir("/r/d", true), Err(FileError::ReadOnly));
        assert_eq!(files.remove("/r/x", false), Err(FileError::ReadOnly));
        assert_eq!(files.set_mode("/r/x", 0o600), Err(FileError::ReadOnly));
        assert_eq!(files.write("/tmp/x", b"2", false), Ok(()));
        let files = files.with_read_only_root(true);
        assert_eq!(files.write("/tmp/x", b"2", false), Err(FileError::ReadOnly));
        assert_eq!(
            (
                files.write("/dev/x", b"2", false),
                files.write("/w/x", b"2", false)
            ),
            (Ok(()), Ok(()))
        );
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
        assert_eq!(
            files.list("/var"),
            Ok(["log", "run", "tmp"].map(str::to_owned).to_vec())
        );
    }
}
