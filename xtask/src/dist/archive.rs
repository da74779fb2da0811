//! Archives that are the same for the same files: sorted, owned by root, with one time.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use miette::{IntoDiagnostic as _, WrapErr as _};
use tar::{Builder, EntryType, Header};

/// An archive that is being made.
pub(super) struct Archive {
    tar: Builder<Vec<u8>>,
    time: u64,
}

impl Archive {
    /// An empty one whose files have this time.
    pub(super) fn new(time: u64) -> Self {
        Self {
            tar: Builder::new(Vec::new()),
            time,
        }
    }

    /// Adds a file under a name.
    pub(super) fn add(&mut self, name: &str, path: &Path, is_program: bool) -> miette::Result<()> {
        let wrong = || format!("read {}", path.display());
        let content = fs::read(path).into_diagnostic().wrap_err_with(wrong)?;
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if is_program { 0o755 } else { 0o644 });
        header.set_mtime(self.time);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        self.tar
            .append_data(&mut header, name, content.as_slice())
            .into_diagnostic()
            .wrap_err_with(wrong)
    }

    /// Adds the files of a folder, by name. `Chart.yaml` comes first, as Helm packs charts.
    pub(super) fn add_folder(&mut self, name: &str, folder: &Path) -> miette::Result<()> {
        let wrong = || format!("read {}", folder.display());
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).into_diagnostic().wrap_err_with(wrong)? {
            let entry = entry.into_diagnostic().wrap_err_with(wrong)?;
            entries.push(entry.file_name().to_string_lossy().into_owned());
        }
        entries.sort_by_key(|entry| (entry != "Chart.yaml", entry.clone()));
        for entry in entries {
            let (path, name) = (folder.join(&entry), format!("{name}/{entry}"));
            match path.is_dir() {
                true => self.add_folder(&name, &path)?,
                false => self.add(&name, &path, false)?,
            }
        }
        Ok(())
    }

    /// The archive, compressed.
    pub(super) fn finish(self) -> miette::Result<Vec<u8>> {
        let tar = self.tar.into_inner().into_diagnostic()?;
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        gzip.write_all(&tar).into_diagnostic()?;
        gzip.finish().into_diagnostic()
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    fn chart() -> Vec<u8> {
        let mut archive = Archive::new(1_700_000_000);
        let folder = crate::conformance::workspace().join(crate::chart::CHART);
        archive.add_folder("kruise", &folder).expect("a folder");
        archive.finish().expect("an archive")
    }

    #[test]
    fn an_archive_of_the_same_files_is_the_same() {
        assert!(chart() == chart());
    }

    #[test]
    fn the_archive_of_the_chart_is_as_helm_packs_it() {
        let packed = chart();
        let mut tar = tar::Archive::new(GzDecoder::new(&*packed));
        let entries = tar.entries().expect("entries");
        let names: Vec<String> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                let header = entry.header();
                assert_eq!(header.mtime().expect("a time"), 1_700_000_000);
                assert_eq!(
                    (header.uid().expect("an owner"), header.mode().expect("a mode")),
                    (0, 0o644)
                );
                entry.path().expect("a path").to_string_lossy().into_owned()
            })
            .collect();
        assert_eq!(names[0], "kruise/Chart.yaml");
        for name in [
            "kruise/values.yaml",
            "kruise/templates/manager.yaml",
            "kruise/files/crds/clonesets.apps.kruise.io.json",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
