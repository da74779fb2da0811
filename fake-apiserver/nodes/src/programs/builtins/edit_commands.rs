//! `sed`, and what of `awk` prints.

use std::fmt::Write as _;

use regex::Regex;

use super::Call;
use super::text_commands::{Options, lines_of, print_lines};

/// One command of `sed`: which lines, and what with them.
struct Edit {
    lines: Option<Lines>,
    action: Action,
}

enum Lines {
    Number(usize),
    Last,
    Matching(Regex),
}

enum Action {
    Print,
    Delete,
    Quit,
    Replace {
        pattern: Regex,
        with: String,
        all: bool,
        print: bool,
    },
}

/// A regular expression of `sed` and `grep`: `\(`, `\+` and the like are special there, and the bare characters are not, unless it is
/// `extended`. A `whole` one matches all of a line.
pub(super) fn basic_pattern(text: &str, extended: bool, whole: bool) -> Option<Regex> {
    let read = |pattern: &str| match whole {
        true => Regex::new(&format!("^(?:{pattern})$")).ok(),
        false => Regex::new(pattern).ok(),
    };
    if extended {
        return read(text);
    }
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('(' | ')' | '{' | '}' | '+' | '?' | '|')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            '(' | ')' | '{' | '}' | '+' | '?' | '|' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    read(&out)
}

/// The replacement in the words of `regex`: `\1` is `${1}`, `&` is `${0}`.
fn replacement(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => out.push_str("$$"),
            '&' => out.push_str("${0}"),
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => {
                    let _ = write!(out, "${{{digit}}}");
                }
                Some('n') => out.push('\n'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

/// The text up to a delimiter that no `\` stands before, and the rest after it.
fn until(text: &str, delimiter: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == delimiter {
            return Some((out, text.get(at + c.len_utf8()..)?));
        }
        out.push(c);
        if c == '\\' {
            let (_, next) = chars.next()?;
            if next == delimiter {
                out.pop();
            }
            out.push(next);
        }
    }
    None
}

fn edit_of(text: &str, extended: bool) -> Option<Edit> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (lines, rest) = match text.chars().next()? {
        '$' => (Some(Lines::Last), text.get(1..)?),
        '0'..='9' => (
            Some(Lines::Number(text.get(..digits)?.parse().ok()?)),
            text.get(digits..)?,
        ),
        '/' => {
            let (pattern, rest) = until(text.get(1..)?, '/')?;
            (
                Some(Lines::Matching(basic_pattern(&pattern, extended, false)?)),
                rest,
            )
        }
        _ => (None, text),
    };
    let action = match rest.trim() {
        "p" => Action::Print,
        "d" => Action::Delete,
        "q" => Action::Quit,
        command => {
            let rest = command.strip_prefix('s')?;
            let delimiter = rest.chars().next()?;
            let (pattern, rest) = until(rest.get(delimiter.len_utf8()..)?, delimiter)?;
            let (with, flags) = until(rest, delimiter)?;
            let pattern = match flags.contains(['i', 'I']) {
                true => format!("(?i){pattern}"),
                false => pattern,
            };
            Action::Replace {
                pattern: basic_pattern(&pattern, extended || flags.contains(['i', 'I']), false)?,
                with: replacement(&with),
                all: flags.contains('g'),
                print: flags.contains('p'),
            }
        }
    };
    Some(Edit { lines, action })
}

/// The text after the commands of a script.
fn edited(lines: &[String], edits: &[Edit], quiet: bool) -> String {
    let mut out = String::new();
    for (at, original) in lines.iter().enumerate() {
        let (mut line, mut is_kept, mut ends) = (original.clone(), !quiet, false);
        for edit in edits {
            let applies = match &edit.lines {
                None => true,
                Some(Lines::Number(number)) => *number == at + 1,
                Some(Lines::Last) => at + 1 == lines.len(),
                Some(Lines::Matching(pattern)) => pattern.is_match(&line),
            };
            if !applies {
                continue;
            }
            match &edit.action {
                Action::Print => {
                    let _ = writeln!(out, "{line}");
                }
                Action::Delete => {
                    is_kept = false;
                    break;
                }
                Action::Quit => ends = true,
                Action::Replace {
                    pattern,
                    with,
                    all,
                    print,
                } => {
                    let matches = pattern.is_match(&line);
                    let count = if *all { 0 } else { 1 };
                    line = pattern.replacen(&line, count, with.as_str()).into_owned();
                    if *print && matches {
                        let _ = writeln!(out, "{line}");
                    }
                }
            }
        }
        if is_kept {
            let _ = writeln!(out, "{line}");
        }
        if ends {
            break;
        }
    }
    out
}

pub(super) fn sed(call: &mut Call<'_>) -> i32 {
    let options = Options::read("sed", call.arguments);
    let mut files = options.operands.clone();
    let mut scripts: Vec<&str> = options
        .given
        .iter()
        .filter(|(letter, _)| *letter == 'e')
        .map(|(_, text)| *text)
        .collect();
    if scripts.is_empty() && !files.is_empty() {
        scripts.push(files.remove(0));
    }
    let extended = options.has('r') || options.has('E');
    let commands = scripts.iter().flat_map(|script| script.split([';', '\n']));
    let edits: Option<Vec<Edit>> = commands
        .filter(|text| !text.trim().is_empty())
        .map(|text| edit_of(text, extended))
        .collect();
    let Some(edits) = edits else {
        return call.complain("sed: unsupported command");
    };
    if !options.has('i') {
        return match lines_of(call, &files, "sed") {
            Ok(lines) => call.print(&edited(&lines, &edits, options.has('n'))),
            Err(code) => code,
        };
    }
    for file in files {
        let lines = match lines_of(call, &[file], "sed") {
            Ok(lines) => lines,
            Err(code) => return code,
        };
        let text = edited(&lines, &edits, options.has('n'));
        if let Err(error) = call.shell.files.write(&call.path(file), text.as_bytes(), false) {
            return call.complain(&format!("sed: {file}: {error}"));
        }
    }
    0
}

/// A program of `awk` that prints: `[/PATTERN/] {print [WORD [, WORD]...]}`.
pub(super) fn awk(call: &mut Call<'_>) -> i32 {
    let options = Options::read("awk", call.arguments);
    let Some((program, files)) = options.operands.split_first() else {
        return call.complain("awk: no program");
    };
    let Some((pattern, words)) = printing(program) else {
        return call.complain("awk: only programs that print are known here");
    };
    let lines = match lines_of(call, files, "awk") {
        Ok(lines) => lines,
        Err(code) => return code,
    };
    let separator = options.value('F');
    let wanted = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(line)));
    let printed = wanted.map(|(at, line)| {
        let fields: Vec<&str> = match separator {
            Some(separator) => line.split(separator).collect(),
            None => line.split_whitespace().collect(),
        };
        let value = |word: &str| match word {
            "" | "$0" => line.clone(),
            "NR" => (at + 1).to_string(),
            "NF" => fields.len().to_string(),
            "$NF" => fields.last().copied().unwrap_or_default().to_owned(),
            word => match word.strip_prefix('$').map(str::parse::<usize>) {
                Some(Ok(number)) => fields
                    .get(number.saturating_sub(1))
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
                _ => super::unescape(word.trim_matches('"')),
            },
        };
        let groups = words
            .iter()
            .map(|group| group.iter().map(|word| value(word)).collect::<String>());
        groups.collect::<Vec<_>>().join(" ")
    });
    print_lines(call, printed.collect::<Vec<_>>())
}

/// The pattern and the words of a program that prints: groups with commas between, each of words that are joined.
fn printing(program: &str) -> Option<(Option<Regex>, Vec<Vec<String>>)> {
    let program = program.trim();
    let (pattern, action) = match program.strip_prefix('/') {
        Some(rest) => {
            let (pattern, rest) = until(rest, '/')?;
            (Some(Regex::new(&pattern).ok()?), rest.trim())
        }
        None => (None, program),
    };
    let action = match action {
        "" if pattern.is_some() => "{print}",
        action => action,
    };
    let inside = action.strip_prefix('{')?.strip_suffix('}')?.trim();
    let words = inside.trim_end_matches(';').strip_prefix("print")?.trim();
    let token = Regex::new(r#"^\s*("(?:[^"\\]|\\.)*"|\$NF|\$\d+|NR|NF|,)"#).ok()?;
    let (mut groups, mut rest) = (vec![Vec::new()], words);
    while !rest.trim().is_empty() {
        let found = token.captures(rest)?;
        let word = found.get(1)?;
        match word.as_str() {
            "," => groups.push(Vec::new()),
            word => groups.last_mut()?.push(word.to_owned()),
        }
        rest = rest.get(word.end()..)?;
    }
    if words.is_empty() {
        groups = vec![vec!["$0".to_owned()]];
    }
    Some((pattern, groups))
}
