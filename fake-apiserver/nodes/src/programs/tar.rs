//! `tar`, as far as `kubectl cp` needs it: files and directories in the `ustar` form.

use super::builtins::Call;
use super::files::Files;

const BLOCK: usize = 512;

/// A file or a directory of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    /// None for a directory.
    content: Option<Vec<u8>>,
}

/// The command: `c`, `x` and `t` with `f -` or without `f`, `C DIR`, `m`, `v`, `p`, `o` and long options.
pub(super) fn tar(call: &mut Call<'_>) -> i32 {
    let mut asked = Asked::default();
    if let Err(problem) = asked.read(call.arguments) {
        call.streams.err.write(format!("tar: {problem}\n").as_bytes());
        return 1;
    }
    let base = call.path(&asked.folder);
    if !call.shell.files.is_dir(&base) {
        let text = format!(
            "tar: can't change directory to '{}': No such file or directory\n",
            asked.folder
        );
        call.streams.err.write(text.as_bytes());
        return 1;
    }
    match asked.mode {
        'c' => {
            let (mut archive, mut status) = (Vec::new(), 0);
            for operand in &asked.operands {
                let path = super::files::resolve(&base, operand);
                let name = operand.trim_start_matches('/').trim_end_matches('/');
                if !call.shell.files.exists(&path) {
                    let text = format!("tar: {operand}: No such file or directory\n");
                    call.streams.err.write(text.as_bytes());
                    status = 1;
                    continue;
                }
                pack(&call.shell.files, &path, name, &mut archive);
            }
            archive.extend_from_slice(&[0; 2 * BLOCK]);
            if asked.is_stream() {
                call.streams.out.write(&archive);
            } else if let Err(error) = call
                .shell
                .files
                .write(&call.path(&asked.archive), &archive, false)
            {
                let text = format!("tar: can't open '{}': {error}\n", asked.archive);
                call.streams.err.write(text.as_bytes());
                status = 1;
            }
            status
        }
        mode => {
            let archive = if asked.is_stream() {
                call.streams.input.take()
            } else {
                match call.shell.files.read(&call.path(&asked.archive)) {
                    Ok(archive) => archive,
                    Err(error) => {
                        let text = format!("tar: can't open '{}': {error}\n", asked.archive);
                        call.streams.err.write(text.as_bytes());
                        return 1;
                    }
                }
            };
            let Some(entries) = unpack(&archive) else {
                call.streams.err.write(b"tar: invalid tar magic\n");
                return 1;
            };
            let mut status = 0;
            for entry in entries {
                if mode == 't' {
                    call.streams.out.write(format!("{}\n", entry.name).as_bytes());
                    continue;
                }
                let path = super::files::resolve(&base, entry.name.trim_start_matches('/'));
                let written = match &entry.content {
                    None => call.shell.files.make_dir(&path, true),
                    Some(content) => {
                        let folder = path.rfind('/').map_or("/", |at| &path[..at]);
                        let made = folder.is_empty() || call.shell.files.make_dir(folder, true).is_ok();
                        debug_assert!(made || call.shell.files.is_file(folder));
                        call.shell.files.write(&path, content, false)
                    }
                };
                if let Err(error) = written {
                    let text = format!("tar: can't open '{}': {error}\n", entry.name);
                    call.streams.err.write(text.as_bytes());
                    status = 1;
                }
            }
            status
        }
    }
}

/// Whether the command reads its input.
pub(super) fn reads_input(arguments: &[String]) -> bool {
    let mut asked = Asked::default();
    asked.read(arguments).is_ok() && asked.mode != 'c' && asked.is_stream()
}

#[derive(Debug, Default)]
struct Asked {
    mode: char,
    archive: String,
    folder: String,
    operands: Vec<String>,
}

impl Asked {
    fn is_stream(&self) -> bool {
        matches!(self.archive.as_str(), "" | "-")
    }

    fn read(&mut self, arguments: &[String]) -> Result<(), String> {
        let mut rest = arguments.iter();
        let mut first = true;
        while let Some(argument) = rest.next() {
            // The first word may be flags without a dash.
            let bare = std::mem::take(&mut first) && !argument.starts_with('-');
            if argument.starts_with("--") {
                continue;
            }
            let Some(flags) = argument.strip_prefix('-').or(bare.then_some(argument.as_str())) else {
                self.operands.push(argument.clone());
                continue;
            };
            for flag in flags.chars() {
                match flag {
                    'c' | 'x' | 't' => self.mode = flag,
                    'f' => self.archive = rest.next().cloned().unwrap_or_default(),
                    'C' => self.folder = rest.next().cloned().unwrap_or_default(),
                    'm' | 'v' | 'p' | 'o' | 'h' => {}
                    other => return Err(format!("unrecognized option: {other}")),
                }
            }
        }
        if self.folder.is_empty() {
            self.folder = ".".to_owned();
        }
        match self.mode {
            'c' | 'x' | 't' => Ok(()),
            _ => Err("must specify one of -c, -x, -t".to_owned()),
        }
    }
}

/// Adds a file, or a directory and its contents.
fn pack(files: &Files, path: &str, name: &str, archive: &mut Vec<u8>) {
    match files.read(path) {
        Ok(content) => {
            archive.extend_from_slice(&header(name, content.len(), false));
            archive.extend_from_slice(&content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        Err(_) => {
            archive.extend_from_slice(&header(&format!("{name}/"), 0, true));
            for inner in files.list(path).unwrap_or_default() {
                let below = format!("{}/{inner}", path.trim_end_matches('/'));
                pack(files, &below, &format!("{name}/{inner}"), archive);
            }
        }
    }
}

fn header(name: &str, size: usize, folder: bool) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, most: usize, bytes: &[u8]| {
        let count = bytes.len().min(most);
        block[at..at + count].copy_from_slice(&bytes[..count]);
    };
    // A long name is split at a slash: what is before it goes into the prefix.
    let (prefix, short) = if name.len() <= 100 {
        ("", name)
    } else {
        let from = name.len().saturating_sub(101);
        match name.bytes().skip(from).position(|byte| byte == b'/') {
            Some(at) => (&name[..from + at], &name[from + at + 1..]),
            None => ("", name),
        }
    };
    put(0, 100, short.as_bytes());
    put(100, 8, if folder { b"0000755\0" } else { b"0000644\0" });
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    put(124, 12, format!("{size:011o}\0").as_bytes());
    put(136, 12, b"00000000000\0");
    put(148, 8, b"        ");
    put(156, 1, if folder { b"5" } else { b"0" });
    put(257, 8, b"ustar\x0000");
    put(265, 32, b"root");
    put(297, 32, b"root");
    put(345, 155, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The entries of an archive; none if it is not one.
fn unpack(archive: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let (mut at, mut long_name) = (0, None);
    while let Some(block) = archive.get(at..at + BLOCK) {
        if block.iter().all(|byte| *byte == 0) {
            break;
        }
        if !block.get(257..)?.starts_with(b"ustar") {
            return None;
        }
        let text = |from: usize, most: usize| {
            let field = block.get(from..from + most).unwrap_or_default();
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(most);
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let size = usize::from_str_radix(text(124, 12).trim(), 8).ok()?;
        at += BLOCK;
        let content = archive.get(at..at.checked_add(size)?)?;
        at += size.next_multiple_of(BLOCK);
        let name = match (long_name.take(), text(345, 155)) {
            (Some(name), _) => name,
            (None, prefix) if prefix.is_empty() => text(0, 100),
            (None, prefix) => format!("{prefix}/{}", text(0, 100)),
        };
        match block.get(156)? {
            b'0' | 0 => entries.push(Entry {
                name,
                content: Some(content.to_vec()),
            }),
            b'5' => entries.push(Entry { name, content: None }),
            // GNU's and POSIX's ways to say a name that is too long for its field.
            b'L' => long_name = Some(String::from_utf8_lossy(content).trim_end_matches('\0').to_owned()),
            b'x' => long_name = pax_path(content),
            // Links and devices have no place in these files.
            _ => {}
        }
    }
    Some(entries)
}

/// `path` of a POSIX header: lines of `<length> <key>=<value>`.
fn pax_path(content: &[u8]) -> Option<String> {
    String::from_utf8_lossy(content)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find_map(|(_, pair)| pair.strip_prefix("path=").map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["a"])]
    #[case(&["d/one", "d/e/two"])]
    #[case(&["a-rather-long-folder-name-that-goes-on-for-quite-a-while/and-another-one-below-it-that-is-as-long/and-a-file-in-it.txt"])]
    fn what_is_packed_is_unpacked(#[case] names: &[&str]) {
        let files = Files::default();
        for name in names {
            let path = format!("/work/{name}");
            let folder = &path[..path.rfind('/').expect("a slash")];
            files.make_dir(folder, true).expect("a folder");
            files.write(&path, name.as_bytes(), false).expect("a file");
        }
        let mut archive = Vec::new();
        pack(&files, "/work", "work", &mut archive);
        archive.extend_from_slice(&[0; 2 * BLOCK]);
        let entries = unpack(&archive).expect("an archive");
        let mut found: Vec<String> = entries
            .into_iter()
            .filter_map(|entry| entry.content.map(|content| (entry.name, content)))
            .map(|(name, content)| {
                assert_eq!(format!("work/{}", String::from_utf8_lossy(&content)), name);
                name.trim_start_matches("work/").to_owned()
            })
            .collect();
        let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case(b"nonsense".as_slice(), Some(0))]
    #[case([b'x'; 600].as_slice(), None)]
    #[case([0; 1024].as_slice(), Some(0))]
    fn what_is_no_archive(#[case] bytes: &[u8], #[case] entries: Option<usize>) {
        assert_eq!(unpack(bytes).map(|entries| entries.len()), entries);
    }

    #[rstest]
    #[case("cf - /tmp/x", 'c', ".")]
    #[case("-xmf - -C /tmp", 'x', "/tmp")]
    #[case("--no-same-permissions --no-same-owner -xmf - -C /d", 'x', "/d")]
    fn options(#[case] line: &str, #[case] mode: char, #[case] folder: &str) {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut asked = Asked::default();
        assert_eq!(asked.read(&arguments), Ok(()));
        assert_eq!((asked.mode, asked.folder.as_str()), (mode, folder));
        assert!(asked.is_stream());
    }
}
