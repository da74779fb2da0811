//! The checksums of a release, as `sha256sum --check` reads them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use miette::{IntoDiagnostic as _, WrapErr as _};
use ring::digest::{SHA256, digest};

/// A line for a file.
fn line(name: &str, content: &[u8]) -> String {
    let mut line = String::new();
    for byte in digest(&SHA256, content).as_ref() {
        // A text takes all that is written to it.
        let _ = write!(line, "{byte:02x}");
    }
    line + "  " + name + "\n"
}

/// A line for each file of a folder, by name.
pub(super) fn of_folder(folder: &Path) -> miette::Result<String> {
    let wrong = || format!("read {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_diagnostic().wrap_err_with(wrong)? {
        names.push(entry.into_diagnostic().wrap_err_with(wrong)?.file_name());
    }
    names.sort();
    let mut lines = String::new();
    for name in names {
        let content = fs::read(folder.join(&name))
            .into_diagnostic()
            .wrap_err_with(wrong)?;
        lines += &line(&name.to_string_lossy(), &content);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n")]
    #[case(
        "abc",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"
    )]
    fn lines(#[case] content: &str, #[case] expected: &str) {
        assert_eq!(line("a", content.as_bytes()), expected);
    }
}
