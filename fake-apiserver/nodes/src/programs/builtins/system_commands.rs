//! The commands that tell of processes, of the time since the start, and of files' sizes.

use super::Call;

/// The shell and the command itself: programs of a container are no processes that could be listed.
pub(super) fn ps(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    let command = [&["ps"], words.as_slice()].concat().join(" ");
    call.print(&format!(
        "PID   USER     TIME  COMMAND\n    1 root      0:00 sh\n    2 root      0:00 {command}\n"
    ))
}

/// `stat`: the size of files, and with `-c` what its format says of `%n`, `%s`, `%F`.
pub(super) fn stat(call: &mut Call<'_>) -> i32 {
    let mut format = None;
    let mut files = Vec::new();
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" => format = arguments.next(),
            _ => files.push(argument),
        }
    }
    let mut status = 0;
    for file in files {
        let path = call.path(file);
        let is_folder = call.shell.files.is_dir(&path);
        let size = match call.shell.files.read(&path) {
            Ok(content) => content.len(),
            Err(_) if is_folder => 0,
            Err(error) => {
                status = call.complain(&format!("stat: can't stat '{file}': {error}"));
                continue;
            }
        };
        let kind = if is_folder { "directory" } else { "regular file" };
        let format = format.map_or("  File: %n\n  Size: %s\t%F", String::as_str);
        let text = format
            .replace("%n", file)
            .replace("%s", &size.to_string())
            .replace("%F", kind);
        call.print(&format!("{text}\n"));
    }
    status
}

pub(super) fn uptime(call: &mut Call<'_>) -> i32 {
    let now = call.shell.clock.now().strftime("%H:%M:%S");
    call.print(&format!(
        " {now} up 0 min,  0 users,  load average: 0.00, 0.00, 0.00\n"
    ))
}
