//! `mounttest`, and the commands that print files of `/etc`.

use std::time::Duration;

use super::super::files::mode_text;
use super::super::native::Container;
use super::Flags;

/// The content of files that it makes.
const NEW: &str = "mount-tester new file\n";
/// How often it looks at a file.
const PAUSE: Duration = Duration::from_secs(2);

/// The flags that make a file, and its mode.
const MODES: [(&str, u16); 4] = [
    ("new_file_0644", 0o644),
    ("new_file_0666", 0o666),
    ("new_file_0660", 0o660),
    ("new_file_0777", 0o777),
];

/// Looks at files and makes some, as its flags say, in this order.
pub(super) async fn mounttest(container: &Container, flags: &Flags) -> i32 {
    let mut failed = false;
    if let Some(path) = flags.text(&["fs_type"]) {
        container.print(&format!("mount type of \"{path}\": tmpfs\n"));
    }
    for (flag, mode) in MODES {
        let Some(path) = flags.text(&[flag]) else { continue };
        match container.write_file(path, NEW.as_bytes()) {
            Ok(()) => {
                failed |= container.files.set_mode(path, mode).is_err();
                failed |= !show(container, path);
            }
            Err(error) => {
                container.print(&format!(
                    "error writing new file {path:?}: open {path}: {error}\n"
                ));
                failed = true;
            }
        }
    }
    for (flag, word) in [("file_mode", "mode"), ("file_perm", "perms")] {
        let Some(path) = flags.text(&[flag]) else { continue };
        let Ok(mode) = container.files.mode(path) else {
            container.print(&format!(
                "error calling Lstat on {path:?}: lstat {path}: no such file or directory\n"
            ));
            failed = true;
            continue;
        };
        // Permissions are shown without the kind of the file.
        let mode = mode_text(word == "mode" && container.files.is_dir(path), mode);
        container.print(&format!("{word} of file \"{path}\": {mode}\n"));
    }
    if let Some(path) = flags.text(&["file_owner"]) {
        container.print(&format!(
            "owner UID of \"{path}\": 0\nowner GID of \"{path}\": 0\n"
        ));
    }
    if let Some(path) = flags.text(&["file_content"]) {
        failed |= !show(container, path);
    }
    if let Some(path) = flags.text(&["file_content_in_loop"]) {
        failed |= !watch(container, path, flags).await;
    }
    i32::from(failed)
}

fn show(container: &Container, path: &str) -> bool {
    match container.read_file(path) {
        Ok(content) => {
            let text = String::from_utf8_lossy(&content);
            container.print(&format!("content of file \"{path}\": {text}\n"));
            true
        }
        Err(error) => {
            container.print(&format!(
                "error reading file content for \"{path}\": open {path}: {error}\n"
            ));
            false
        }
    }
}

async fn watch(container: &Container, path: &str, flags: &Flags) -> bool {
    let seconds = flags
        .text(&["retry_time"])
        .and_then(|text| text.parse().ok())
        .unwrap_or(180);
    let stops = flags.text(&["break_on_expected_content"]) != Some("false");
    let started = tokio::time::Instant::now();
    let mut read = true;
    while started.elapsed() < Duration::from_secs(seconds) {
        let content = container.read_file(path);
        read = content.is_ok();
        match content {
            Err(error) => {
                container.print(&format!(
                    "Error reading file {path}: open {path}: {error}, retrying\n"
                ));
            }
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                container.print(&format!("content of file \"{path}\": {text}\n"));
                if stops && text == NEW {
                    break;
                }
                if stops {
                    container.print(&format!("Unexpected content. Expected: {NEW}. Retrying"));
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    read
}

/// Prints a file.
pub(super) fn print(container: &Container, path: &str) -> i32 {
    match container.read_file(path) {
        Ok(content) => {
            container.print(&String::from_utf8_lossy(&content));
            0
        }
        Err(error) => {
            container.print_error(&format!("open {path}: {error}\n"));
            1
        }
    }
}

/// Prints the search domains or the servers of `/etc/resolv.conf`.
pub(super) fn resolver(container: &Container, command: &str) -> i32 {
    let content = container.read_file("/etc/resolv.conf").unwrap_or_default();
    let text = String::from_utf8_lossy(&content).into_owned();
    let word = if command == "dns-suffix" {
        "search"
    } else {
        "nameserver"
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix(word));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    container.print(&format!("{}\n", words.join(",")));
    0
}
