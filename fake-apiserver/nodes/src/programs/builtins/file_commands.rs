//! The commands that read, list, copy and remove files.

use super::super::pattern::Pattern;
use super::{Call, base_name};
use crate::programs::files::{FileError, resolve};

pub(super) fn cat(call: &mut Call<'_>) -> i32 {
    let operands = call.operands();
    let mut status = 0;
    if operands.is_empty() {
        call.streams.out.write(&call.streams.input.take());
    }
    for file in operands {
        match call.input(&[file], "cat") {
            Ok(content) => call.streams.out.write(&content),
            Err(code) => status = code,
        }
    }
    status
}

pub(super) fn ls(call: &mut Call<'_>) -> i32 {
    let here = ".".to_owned();
    let mut operands = call.operands();
    if operands.is_empty() {
        operands.push(&here);
    }
    let (several, mut status) = (operands.len() > 1, 0);
    for operand in operands {
        let path = call.path(operand);
        let itself = call.shell.files.is_file(&path) || call.flag('d');
        if itself && call.shell.files.exists(&path) {
            call.print(&format!("{operand}\n"));
            continue;
        }
        match call.shell.files.list(&path) {
            Ok(names) => {
                if several {
                    call.print(&format!("{operand}:\n"));
                }
                let names = names
                    .iter()
                    .filter(|name| call.flag('a') || !name.starts_with('.'));
                let text: String = names.map(|name| format!("{name}\n")).collect();
                call.print(&text);
            }
            Err(error) => status = call.complain(&format!("ls: {operand}: {error}")),
        }
    }
    status
}

pub(super) fn move_or_copy(call: &mut Call<'_>, remove: bool) -> i32 {
    let name = if remove { "mv" } else { "cp" };
    let operands = call.operands();
    let Some((target, sources)) = operands.split_last() else {
        return call.complain(&format!("{name}: missing operand"));
    };
    let (target_path, mut status) = (call.path(target), 0);
    for source in sources {
        let path = call.path(source);
        let to = if call.shell.files.is_dir(&target_path) {
            resolve(&target_path, base_name(source))
        } else {
            target_path.clone()
        };
        let done = call.shell.files.read(&path).and_then(|content| {
            call.shell.files.write(&to, &content, false)?;
            if remove && path != to {
                call.shell.files.remove(&path, false)?;
            }
            Ok(())
        });
        if done.is_ok() && call.flag('v') {
            let done = if remove { "renamed " } else { "" };
            call.print(&format!("{done}'{source}' -> '{to}'\n"));
        }
        if let Err(error) = done {
            status = call.complain(&if remove {
                format!("mv: can't rename '{source}': {error}")
            } else {
                format!("cp: can't stat '{source}': {error}")
            });
        }
    }
    status
}

/// There are no links: the name gets a copy of the file that is there now, and nothing if none is.
pub(super) fn ln(call: &mut Call<'_>) -> i32 {
    let operands = call.operands();
    let (source, name) = match operands.as_slice() {
        [source] => (source.as_str(), base_name(source).to_owned()),
        [source, name] => (source.as_str(), (*name).clone()),
        _ => return call.complain("ln: missing operand"),
    };
    let mut to = call.path(&name);
    if call.shell.files.is_dir(&to) {
        to = resolve(&to, base_name(source));
    }
    if call.shell.files.exists(&to) && !call.flag('f') {
        return call.complain(&format!("ln: {name}: File exists"));
    }
    // A symbolic link's target is named from the link's folder.
    let folder = if call.flag('s') {
        resolve(&to, "..")
    } else {
        call.shell.cwd.clone()
    };
    let Ok(content) = call.shell.files.read(&resolve(&folder, source)) else {
        return 0;
    };
    match call.shell.files.write(&to, &content, false) {
        Ok(()) => 0,
        Err(error) => call.complain(&format!("ln: {name}: {error}")),
    }
}

pub(super) fn rm(call: &mut Call<'_>) -> i32 {
    let mut status = 0;
    let (force, recursive) = (call.flag('f'), call.flag('r') || call.flag('R'));
    for operand in call.operands() {
        let path = call.path(operand);
        let mut targets = vec![path.clone()];
        if operand.contains('*') {
            let folder = resolve(&path, "..");
            let names = call.shell.files.list(&folder).unwrap_or_default();
            let pattern = base_name(operand);
            targets = names
                .iter()
                .filter(|name| Pattern::new(pattern).matches(name))
                .map(|name| resolve(&folder, name))
                .collect();
        }
        for target in targets {
            match call.shell.files.remove(&target, recursive) {
                Err(FileError::Missing) if force => {}
                Err(error) => status = call.complain(&format!("rm: can't remove '{operand}': {error}")),
                Ok(()) => {}
            }
        }
    }
    status
}

pub(super) fn rmdir(call: &mut Call<'_>) -> i32 {
    let mut status = 0;
    for operand in call.operands() {
        if let Err(error) = call.shell.files.remove_dir(&call.path(operand)) {
            status = call.complain(&format!("rmdir: '{operand}': {error}"));
        }
    }
    status
}

pub(super) fn touch(call: &mut Call<'_>) -> i32 {
    let mut status = 0;
    for operand in call.operands() {
        let path = call.path(operand);
        if call.shell.files.exists(&path) {
            continue;
        }
        if let Err(error) = call.shell.files.write(&path, b"", true) {
            status = call.complain(&format!("touch: {operand}: {error}"));
        }
    }
    status
}

/// Prints the paths and all below them; tests of `find` are not known.
pub(super) fn find(call: &mut Call<'_>) -> i32 {
    let here = ".".to_owned();
    let mut open: Vec<String> = call.operands().into_iter().rev().cloned().collect();
    if open.is_empty() {
        open.push(here);
    }
    let mut status = 0;
    while let Some(name) = open.pop() {
        let path = call.path(&name);
        if !call.shell.files.exists(&path) {
            status = call.complain(&format!("find: {name}: No such file or directory"));
            continue;
        }
        call.print(&format!("{name}\n"));
        if call.shell.files.is_dir(&path) {
            let names = call.shell.files.list(&path).unwrap_or_default();
            let folder = name.trim_end_matches('/');
            open.extend(names.iter().rev().map(|below| format!("{folder}/{below}")));
        }
    }
    status
}

/// Copies `bs` times `count` bytes from `if=` to `of=`; all bytes without `count`.
pub(super) fn dd(call: &mut Call<'_>) -> i32 {
    /// More is never written to a file.
    const BYTES_MAX: usize = 1 << 20;
    let value = |name: &str| {
        let pairs = call.arguments.iter().filter_map(|text| text.split_once('='));
        pairs
            .rev()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    let number = |name: &str| value(name).map(|text| text.parse::<usize>());
    let (size, count) = match (number("bs").transpose(), number("count").transpose()) {
        (Ok(size), Ok(count)) => (size.unwrap_or(512), count),
        _ => return call.complain("dd: invalid number"),
    };
    let limit = count.map_or(BYTES_MAX, |count| size.saturating_mul(count).min(BYTES_MAX));
    let mut content = match value("if") {
        None => call.streams.input.take(),
        Some(zero) if zero == "/dev/zero" => vec![0; limit],
        Some(file) => match call.shell.files.read(&call.path(&file)) {
            Ok(content) => content,
            Err(error) => return call.complain(&format!("dd: can't open '{file}': {error}")),
        },
    };
    content.truncate(limit);
    match value("of") {
        None => call.streams.out.write(&content),
        Some(file) => {
            if let Err(error) = call.shell.files.write(&call.path(&file), &content, false) {
                return call.complain(&format!("dd: can't open '{file}': {error}"));
            }
        }
    }
    let (whole, part) = (
        content.len() / size.max(1),
        usize::from(content.len() % size.max(1) != 0),
    );
    let records = format!("{whole}+{part} records in\n{whole}+{part} records out\n");
    call.streams.err.write(records.as_bytes());
    0
}

pub(super) fn mkdir(call: &mut Call<'_>) -> i32 {
    let mut status = 0;
    for operand in call.operands() {
        if let Err(error) = call.shell.files.make_dir(&call.path(operand), call.flag('p')) {
            status = call.complain(&format!("mkdir: can't create directory '{operand}': {error}"));
        }
    }
    status
}
