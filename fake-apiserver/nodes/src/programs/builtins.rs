//! The commands that the shell has, on the container's files. A table, a function each.

mod edit_commands;
mod file_commands;
mod system_commands;
mod text_commands;

use std::fmt::Write as _;

use regex::Regex;

use self::edit_commands::{awk, basic_pattern, sed};
use self::file_commands::{cat, dd, find, ln, ls, mkdir, move_or_copy, rm, rmdir, touch};
use self::system_commands::{hexdump, id, ip, mount, ps, stat, sysctl, uptime};
use self::text_commands::{Options, base64, basename, cut, dirname, expr, sort, tr, uniq};
use super::files::{FileError, resolve};
use super::shell::{Shell, Streams, compare};
use super::tar::{self, tar};

/// A command that is called.
pub(super) struct Call<'a> {
    pub shell: &'a mut Shell,
    pub arguments: &'a [String],
    pub streams: &'a Streams,
}

/// Gives the exit code.
pub(super) type Builtin = fn(&mut Call<'_>) -> i32;

/// By name. Names that several commands share do the same here.
const TABLE: &[(&[&str], Builtin)] = &[
    (
        &[
            "true", ":", "sync", "chmod", "chown", "stty", "ulimit", "umask", "kill",
        ],
        |_| 0,
    ),
    // These ask the world outside, which is not simulated, and succeed.
    (&["apk", "apt-get", "iptables"], |_| 0),
    (&["ip"], ip),
    (&["hexdump"], hexdump),
    (&["mount"], mount),
    (&["false"], |_| 1),
    (&["echo"], echo),
    (&["printf"], printf),
    (&["cat"], cat),
    (&["ls"], ls),
    (&["mv"], |call| move_or_copy(call, true)),
    (&["cp"], |call| move_or_copy(call, false)),
    (&["ln"], ln),
    (&["rm"], rm),
    (&["rmdir"], rmdir),
    (&["touch"], touch),
    (&["mkdir"], mkdir),
    (&["find"], find),
    (&["dd"], dd),
    (&["env", "printenv"], env),
    (&["hostname"], |call| {
        let text = format!("{}\n", call.shell.hostname);
        call.print(&text)
    }),
    (&["test", "["], test),
    (&["pwd"], |call| {
        let text = format!("{}\n", call.shell.cwd);
        call.print(&text)
    }),
    (&["cd"], cd),
    (&["export", "readonly", "declare", "typeset"], export),
    (&["unset"], |call| {
        for name in call.arguments {
            call.shell.env.remove(name);
        }
        0
    }),
    (&["date"], date),
    (&["whoami"], |call| call.print("root\n")),
    (&["id"], id),
    (&["sysctl"], sysctl),
    (&["uname"], |call| call.print("Linux\n")),
    (&["nproc"], |call| call.print("1\n")),
    (&["seq"], seq),
    (&["grep"], grep),
    (&["wc"], wc),
    (&["head"], |call| head_or_tail(call, false)),
    (&["tail"], |call| head_or_tail(call, true)),
    (&["tar"], tar),
    (&["sort"], sort),
    (&["uniq"], uniq),
    (&["cut"], cut),
    (&["tr"], tr),
    (&["base64"], base64),
    (&["sed"], sed),
    (&["awk"], awk),
    (&["expr"], expr),
    (&["basename"], basename),
    (&["dirname"], dirname),
    (&["ps"], ps),
    (&["stat"], stat),
    (&["uptime"], uptime),
    (&["tee"], tee),
    (&["which", "command", "type"], which),
];

/// Programs that, when a script calls them, work until they are stopped. So does a program that is called by a path of its own.
const SERVERS: &[&str] = &[
    "nginx",
    "apache2",
    "apache2-foreground",
    "node",
    "npm",
    "java",
    "python",
    "python3",
    "redis-server",
    "mysqld",
    "postgres",
    "mongod",
    "etcd",
    "sshd",
    "haproxy",
    "envoy",
    "caddy",
    "memcached",
    "supervisord",
    "uwsgi",
    "gunicorn",
    "php-fpm",
];

/// `cat` of `/bin/cat`.
pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The function of a command.
pub(super) fn call(name: &str) -> Option<Builtin> {
    let folder = name.strip_suffix(base_name(name)).unwrap_or_default();
    if !matches!(
        folder,
        "" | "/bin/" | "/usr/bin/" | "/sbin/" | "/usr/sbin/" | "/usr/local/bin/"
    ) {
        return None;
    }
    TABLE
        .iter()
        .find(|(names, _)| names.contains(&base_name(name)))
        .map(|(_, builtin)| *builtin)
}

/// Whether a command reads its input with these arguments, to its end.
pub(super) fn reads_input(name: &str, arguments: &[String]) -> bool {
    let files = arguments.iter().filter(|text| !text.starts_with('-')).count();
    let dash = arguments.iter().any(|text| text == "-");
    let name = base_name(name);
    match name {
        "cat" | "wc" => files == 0 || dash,
        "sort" | "uniq" | "base64" | "cut" => Options::read(name, arguments).operands.is_empty() || dash,
        // The program comes first.
        "sed" | "awk" => {
            let options = Options::read(name, arguments);
            options.operands.len() <= usize::from(!options.has('e')) || dash
        }
        "tr" => true,
        // The first is the pattern.
        "grep" => files <= 1 || dash,
        "head" | "tail" => {
            let counts = arguments
                .iter()
                .filter(|text| matches!(text.as_str(), "-n" | "-c"))
                .count();
            files <= counts || dash
        }
        "tee" => true,
        "dd" => !arguments.iter().any(|text| text.starts_with("if=")),
        "tar" => tar::reads_input(arguments),
        _ => false,
    }
}

/// Whether an unknown command is taken for a program that serves.
pub(super) fn is_server(name: &str) -> bool {
    name.contains('/') || SERVERS.contains(&name)
}

impl Call<'_> {
    fn print(&self, text: &str) -> i32 {
        self.streams.out.write(text.as_bytes());
        0
    }

    fn complain(&self, text: &str) -> i32 {
        self.streams.err.write(format!("{text}\n").as_bytes());
        1
    }

    pub(super) fn path(&self, text: &str) -> String {
        resolve(&self.shell.cwd, text)
    }

    fn flag(&self, letter: char) -> bool {
        self.arguments
            .iter()
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    }

    fn operands(&self) -> Vec<&String> {
        self.arguments
            .iter()
            .filter(|text| !text.starts_with('-') || *text == "-")
            .collect()
    }

    /// The content of the files named, or of the input if there are none.
    fn input(&self, files: &[&String], name: &str) -> Result<Vec<u8>, i32> {
        if files.is_empty() {
            return Ok(self.streams.input.take());
        }
        let (mut out, mut failed) = (Vec::new(), false);
        for file in files {
            if *file == "-" {
                out.extend(self.streams.input.take());
                continue;
            }
            match self.shell.files.read(&self.path(file)) {
                Ok(content) => out.extend(content),
                Err(FileError::IsDirectory) => {
                    self.complain(&format!("{name}: read error: Is a directory"));
                    failed = true;
                }
                Err(error) => {
                    self.complain(&format!("{name}: can't open '{file}': {error}"));
                    failed = true;
                }
            }
        }
        if failed && out.is_empty() { Err(1) } else { Ok(out) }
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some('\\') | None => out.push('\\'),
            Some(c) => {
                out.push('\\');
                out.push(c);
            }
        }
    }
    out
}

fn echo(call: &mut Call<'_>) -> i32 {
    let mut rest = call.arguments;
    let (mut newline, mut escapes) = (true, false);
    while let Some((first, tail)) = rest.split_first()
        && first.len() > 1
        && first.starts_with('-')
        && first.chars().skip(1).all(|c| matches!(c, 'n' | 'e' | 'E'))
    {
        newline &= !first.contains('n');
        escapes |= first.contains('e');
        rest = tail;
    }
    let mut text = rest.join(" ");
    if escapes {
        text = unescape(&text);
    }
    if newline {
        text.push('\n');
    }
    call.print(&text)
}

fn printf(call: &mut Call<'_>) -> i32 {
    let Some((format, arguments)) = call.arguments.split_first() else {
        return call.complain("printf: usage: printf FORMAT [ARG]...");
    };
    let format = unescape(format);
    let mut left = arguments.iter();
    let mut out = String::new();
    loop {
        let before = left.len();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut width = String::new();
            while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | '.')) {
                width.push(c);
            }
            let mut next = || left.next().cloned().unwrap_or_default();
            let text = match chars.next() {
                Some('s') => next(),
                Some('b') => unescape(&next()),
                Some('d' | 'i' | 'u') => next().trim().parse::<i64>().unwrap_or_default().to_string(),
                Some('c') => next().chars().take(1).collect(),
                Some('%') => "%".to_owned(),
                Some(other) => format!("%{width}{other}"),
                None => "%".to_owned(),
            };
            let size: usize = width.trim_start_matches(['-', '0']).parse().unwrap_or_default();
            let pad = " ".repeat(size.min(200).saturating_sub(text.chars().count()));
            let pad = if width.starts_with('0') {
                pad.replace(' ', "0")
            } else {
                pad
            };
            if width.starts_with('-') {
                let _ = write!(out, "{text}{pad}");
            } else {
                let _ = write!(out, "{pad}{text}");
            }
        }
        if left.len() == 0 || left.len() == before {
            return call.print(&out);
        }
    }
}

fn env(call: &mut Call<'_>) -> i32 {
    if let Some(name) = call.operands().first() {
        return match call.shell.env.get(*name) {
            Some(value) => call.print(&format!("{value}\n")),
            None => 1,
        };
    }
    let text: String = call
        .shell
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    call.print(&text)
}

fn cd(call: &mut Call<'_>) -> i32 {
    let target = call.arguments.first().map_or("/root", String::as_str);
    let path = call.path(target);
    if !call.shell.files.is_dir(&path) {
        return call.complain(&format!(
            "sh: cd: can't cd to {target}: No such file or directory"
        ));
    }
    call.shell.cwd = path;
    0
}

fn export(call: &mut Call<'_>) -> i32 {
    for argument in call.arguments {
        if let Some((name, value)) = argument.split_once('=') {
            call.shell.env.insert(name.to_owned(), value.to_owned());
        }
    }
    0
}

fn date(call: &mut Call<'_>) -> i32 {
    let now = call.shell.clock.now();
    let text = match call.operands().first() {
        Some(format) if *format == "+%s" => now.as_second().to_string(),
        _ => now.strftime("%a %b %e %H:%M:%S UTC %Y").to_string(),
    };
    call.print(&format!("{text}\n"))
}

/// `test` and `[`: 0 if it holds, 1 if not, 2 if it cannot be read.
fn test(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call
        .arguments
        .iter()
        .map(String::as_str)
        .filter(|text| *text != "]")
        .collect();
    match holds(call, &words) {
        Some(true) => 0,
        Some(false) => 1,
        None => {
            call.complain("sh: test: unknown operand");
            2
        }
    }
}

fn holds(call: &Call<'_>, words: &[&str]) -> Option<bool> {
    for (operator, or) in [("-o", true), ("-a", false)] {
        if words.len() > 3
            && let Some(at) = words.iter().position(|word| *word == operator)
        {
            let left = holds(call, words.get(..at)?)?;
            let right = holds(call, words.get(at + 1..)?)?;
            return Some(if or { left || right } else { left && right });
        }
    }
    match words {
        [] => Some(false),
        ["!", rest @ ..] => holds(call, rest).map(|held| !held),
        [text] => Some(!text.is_empty()),
        [left, "=" | "==", right] => Some(left == right),
        [left, "!=", right] => Some(left != right),
        [left, operator, right] => {
            let (left, right): (i64, i64) = (left.trim().parse().ok()?, right.trim().parse().ok()?);
            compare(left, operator, right)
        }
        [operator, text] => call.shell.unary(operator, text),
        _ => None,
    }
}

fn seq(call: &mut Call<'_>) -> i32 {
    let numbers: Vec<i64> = call
        .arguments
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let (from, step, to) = match numbers.as_slice() {
        [to] => (1, 1, *to),
        [from, to] => (*from, 1, *to),
        [from, step, to] => (*from, *step, *to),
        _ => return call.complain("seq: usage: seq [FIRST [INC]] LAST"),
    };
    let (mut at, mut text) = (from, String::new());
    for _ in 0..100_000 {
        if step == 0 || (step > 0 && at > to) || (step < 0 && at < to) {
            break;
        }
        let _ = writeln!(text, "{at}");
        at = at.saturating_add(step);
    }
    call.print(&text)
}

fn grep(call: &mut Call<'_>) -> i32 {
    let operands = call.operands();
    let Some((pattern, files)) = operands.split_first() else {
        return call.complain("grep: usage: grep PATTERN [FILE]...");
    };
    let Ok(content) = call.input(files, "grep") else {
        return 2;
    };
    let text = String::from_utf8_lossy(&content).into_owned();
    let fixed = call.flag('F').then(|| regex::escape(pattern));
    let whole = fixed.as_deref().unwrap_or(pattern);
    let pattern = basic_pattern(whole, fixed.is_some() || call.flag('E'), call.flag('x'));
    let pattern = match pattern {
        // In small and capital letters alike.
        Some(pattern) if call.flag('i') => Regex::new(&format!("(?i){pattern}")).ok(),
        pattern => pattern,
    };
    let Some(pattern) = pattern else {
        return 2;
    };
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| pattern.is_match(line) != call.flag('v'))
        .collect();
    if call.flag('c') {
        call.print(&format!("{}\n", lines.len()));
    } else if !call.flag('q') {
        let mut found = String::new();
        for (number, line) in &lines {
            let number = match call.flag('n') {
                true => format!("{number}:"),
                false => String::new(),
            };
            if call.flag('o') {
                let parts = pattern.find_iter(line).filter(|part| !part.is_empty());
                found.extend(parts.map(|part| format!("{number}{}\n", part.as_str())));
            } else {
                found.push_str(&format!("{number}{line}\n"));
            }
        }
        call.print(&found);
    }
    i32::from(lines.is_empty())
}

fn wc(call: &mut Call<'_>) -> i32 {
    let operands = call.operands();
    let Ok(content) = call.input(&operands, "wc") else {
        return 1;
    };
    let text = String::from_utf8_lossy(&content);
    let counts = [
        ('l', content.iter().filter(|byte| **byte == b'\n').count()),
        ('w', text.split_whitespace().count()),
        ('c', content.len()),
    ];
    let asked: Vec<String> = counts
        .iter()
        .filter(|(letter, _)| {
            call.arguments.is_empty() || operands.len() == call.arguments.len() || call.flag(*letter)
        })
        .map(|(_, count)| count.to_string())
        .collect();
    call.print(&format!("{}\n", asked.join(" ")))
}

fn head_or_tail(call: &mut Call<'_>, last: bool) -> i32 {
    let mut count = 10;
    let mut files = Vec::new();
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix('-') {
            Some("n" | "c") => {
                count = arguments
                    .next()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(count);
            }
            Some(text) => count = text.trim_start_matches('n').parse().unwrap_or(count),
            None => files.push(argument),
        }
    }
    let Ok(content) = call.input(&files, "head") else {
        return 1;
    };
    let text = String::from_utf8_lossy(&content).into_owned();
    let skip = if last {
        text.lines().count().saturating_sub(count)
    } else {
        0
    };
    let lines: Vec<&str> = text.lines().skip(skip).take(count).collect();
    let out: String = lines.iter().map(|line| format!("{line}\n")).collect();
    call.print(&out)
}

fn tee(call: &mut Call<'_>) -> i32 {
    let input = call.streams.input.take();
    let mut status = 0;
    for file in call.operands() {
        if let Err(error) = call.shell.files.write(&call.path(file), &input, call.flag('a')) {
            status = call.complain(&format!("tee: {file}: {error}"));
        }
    }
    call.streams.out.write(&input);
    status
}

fn which(call: &mut Call<'_>) -> i32 {
    let operands = call.operands();
    let known = |name: &&String| TABLE.iter().any(|(names, _)| names.contains(&name.as_str()));
    if operands.iter().all(known) {
        let text: String = operands.iter().map(|name| format!("/bin/{name}\n")).collect();
        return call.print(&text);
    }
    1
}
