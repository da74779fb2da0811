//! The commands that sort, cut, translate and encode text, and that compute with words.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Call;

/// The options and operands of a command.
pub(super) struct Options<'a> {
    /// In order: a letter, and its value if it has one.
    pub(super) given: Vec<(char, &'a str)>,
    pub(super) operands: Vec<&'a String>,
}

impl<'a> Options<'a> {
    /// The options of a command.
    pub(super) fn read(command: &str, arguments: &'a [String]) -> Self {
        let with_value = match command {
            "awk" => "F",
            "base64" => "w",
            "cut" => "dfcb",
            "sed" => "e",
            "sort" => "kt",
            _ => "",
        };
        let mut out = Self {
            given: Vec::new(),
            operands: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(letters) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                out.operands.push(argument);
                continue;
            };
            for (at, letter) in letters.char_indices() {
                if !with_value.contains(letter) {
                    out.given.push((letter, ""));
                    continue;
                }
                let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
                let value = match rest {
                    "" => arguments.next().map_or("", String::as_str),
                    rest => rest,
                };
                out.given.push((letter, value));
                break;
            }
        }
        out
    }

    pub(super) fn has(&self, letter: char) -> bool {
        self.given.iter().any(|(given, _)| *given == letter)
    }

    pub(super) fn value(&self, letter: char) -> Option<&'a str> {
        let mut given = self.given.iter();
        given.find(|(given, _)| *given == letter).map(|(_, value)| *value)
    }
}

/// The lines of the files named, or of the input.
pub(super) fn lines_of(call: &Call<'_>, files: &[&String], name: &str) -> Result<Vec<String>, i32> {
    let content = call.input(files, name)?;
    let text = String::from_utf8_lossy(&content);
    Ok(text.lines().map(str::to_owned).collect())
}

pub(super) fn print_lines(call: &Call<'_>, lines: impl IntoIterator<Item = String>) -> i32 {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    call.print(&text)
}

/// The number that a line begins with.
fn leading_number(line: &str) -> f64 {
    let line = line.trim_start();
    let end = line
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && *c == '-')));
    let number = line.get(..end.map_or(line.len(), |(at, _)| at));
    number.and_then(|text| text.parse().ok()).unwrap_or_default()
}

pub(super) fn sort(call: &mut Call<'_>) -> i32 {
    let options = Options::read("sort", call.arguments);
    let mut lines = match lines_of(call, &options.operands, "sort") {
        Ok(lines) => lines,
        Err(code) => return code,
    };
    let separator = options.value('t');
    // `-k 2n,2`: fields from the second on, as numbers.
    let key = options.value('k').unwrap_or("1");
    let field: usize = key
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let numbers = options.has('n') || key.contains('n');
    let key_of = |line: &str| match separator {
        Some(separator) => line
            .split(separator)
            .skip(field.max(1) - 1)
            .collect::<Vec<_>>()
            .join(separator),
        None if field > 1 => line
            .split_whitespace()
            .skip(field - 1)
            .collect::<Vec<_>>()
            .join(" "),
        None => line.to_owned(),
    };
    let compare = |a: &String, b: &String| {
        let (left, right) = (key_of(a), key_of(b));
        let by_key = match numbers {
            true => leading_number(&left)
                .partial_cmp(&leading_number(&right))
                .unwrap_or(Ordering::Equal),
            false => left.cmp(&right),
        };
        by_key.then_with(|| a.cmp(b))
    };
    lines.sort_by(compare);
    if options.has('r') {
        lines.reverse();
    }
    if options.has('u') {
        lines.dedup();
    }
    print_lines(call, lines)
}

pub(super) fn uniq(call: &mut Call<'_>) -> i32 {
    let options = Options::read("uniq", call.arguments);
    let lines = match lines_of(call, &options.operands, "uniq") {
        Ok(lines) => lines,
        Err(code) => return code,
    };
    let groups = lines.chunk_by(|a, b| a == b);
    let wanted = groups.filter(|group| match (options.has('d'), options.has('u')) {
        (true, _) => group.len() > 1,
        (_, true) => group.len() == 1,
        _ => true,
    });
    let text = wanted.filter_map(|group| {
        let line = group.first()?;
        Some(match options.has('c') {
            true => format!("{:7} {line}", group.len()),
            false => line.clone(),
        })
    });
    print_lines(call, text.collect::<Vec<_>>())
}

/// The ranges of `1,3-5,7-`, from one on.
fn ranges(list: &str) -> Option<Vec<(usize, usize)>> {
    let range = |part: &str| -> Option<(usize, usize)> {
        match part.split_once('-') {
            None => part.parse().ok().map(|at| (at, at)),
            Some(("", to)) => Some((1, to.parse().ok()?)),
            Some((from, "")) => Some((from.parse().ok()?, usize::MAX)),
            Some((from, to)) => Some((from.parse().ok()?, to.parse().ok()?)),
        }
    };
    list.split(',').map(range).collect()
}

pub(super) fn cut(call: &mut Call<'_>) -> i32 {
    let options = Options::read("cut", call.arguments);
    let characters = options.value('c').or_else(|| options.value('b'));
    let Some(ranges) = characters.or_else(|| options.value('f')).and_then(ranges) else {
        return call.complain("cut: expected a list of bytes, characters, or fields");
    };
    let lines = match lines_of(call, &options.operands, "cut") {
        Ok(lines) => lines,
        Err(code) => return code,
    };
    let wanted = |at: usize| ranges.iter().any(|(from, to)| (*from..=*to).contains(&(at + 1)));
    let delimiter = options.value('d').unwrap_or("\t");
    let cut = lines.into_iter().map(|line| {
        if characters.is_some() {
            let kept = line.chars().enumerate().filter(|(at, _)| wanted(*at));
            return kept.map(|(_, c)| c).collect();
        }
        if !line.contains(delimiter) {
            return line;
        }
        let fields = line.split(delimiter).enumerate();
        let kept: Vec<&str> = fields
            .filter(|(at, _)| wanted(*at))
            .map(|(_, field)| field)
            .collect();
        kept.join(delimiter)
    });
    print_lines(call, cut.collect::<Vec<_>>())
}

/// The characters of a set of `tr`: ranges, classes and escapes.
fn set_of(text: &str) -> Vec<char> {
    let text = match text {
        "[:upper:]" => "A-Z",
        "[:lower:]" => "a-z",
        "[:digit:]" => "0-9",
        "[:alnum:]" => "A-Za-z0-9",
        "[:alpha:]" => "A-Za-z",
        "[:space:]" => " \t\n\r",
        other => other,
    };
    let text: Vec<char> = super::unescape(text).chars().collect();
    let mut out = Vec::new();
    let mut rest = text.as_slice();
    loop {
        rest = match rest {
            [] => return out,
            [from, '-', to, rest @ ..] => {
                out.extend(*from..=*to);
                rest
            }
            [c, rest @ ..] => {
                out.push(*c);
                rest
            }
        };
    }
}

pub(super) fn tr(call: &mut Call<'_>) -> i32 {
    let options = Options::read("tr", call.arguments);
    let sets: Vec<Vec<char>> = options.operands.iter().map(|text| set_of(text)).collect();
    let Some(first) = sets.first() else {
        return call.complain("tr: missing operand");
    };
    let is_in = |c: char| first.contains(&c) != options.has('c');
    let content = call.streams.input.take();
    let text = String::from_utf8_lossy(&content);
    let mut out = String::new();
    for c in text.chars() {
        let replaced = match sets.get(1) {
            _ if !is_in(c) => c,
            _ if options.has('d') => continue,
            Some(second) => {
                let at = first.iter().position(|known| *known == c).unwrap_or(usize::MAX);
                second.get(at).or(second.last()).copied().unwrap_or(c)
            }
            None => c,
        };
        if !(options.has('s') && is_in(c) && out.ends_with(replaced)) {
            out.push(replaced);
        }
    }
    call.print(&out)
}

pub(super) fn base64(call: &mut Call<'_>) -> i32 {
    let options = Options::read("base64", call.arguments);
    let Ok(content) = call.input(&options.operands, "base64") else {
        return 1;
    };
    if options.has('d') {
        let text: Vec<u8> = content
            .into_iter()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        return match STANDARD.decode(text) {
            Ok(decoded) => {
                call.streams.out.write(&decoded);
                0
            }
            Err(_) => call.complain("base64: truncated input"),
        };
    }
    let text = STANDARD.encode(content);
    let width = options.value('w').map_or(76, |text| text.parse().unwrap_or(76));
    if width == 0 {
        return call.print(&text);
    }
    let lines = text
        .as_bytes()
        .chunks(width)
        .map(|line| String::from_utf8_lossy(line).into_owned());
    print_lines(call, lines.collect::<Vec<_>>())
}

/// `/a/b.txt` without its folder, and without a suffix.
pub(super) fn basename(call: &mut Call<'_>) -> i32 {
    let Some((path, rest)) = call.arguments.split_first() else {
        return call.complain("basename: missing operand");
    };
    let name = super::base_name(path.trim_end_matches('/'));
    let suffix = rest.first().map_or("", String::as_str);
    let name = name
        .strip_suffix(suffix)
        .filter(|short| !short.is_empty())
        .unwrap_or(name);
    call.print(&format!("{name}\n"))
}

pub(super) fn dirname(call: &mut Call<'_>) -> i32 {
    let Some(path) = call.arguments.first() else {
        return call.complain("dirname: missing operand");
    };
    let folder = match path.trim_end_matches('/').rsplit_once('/') {
        None => ".",
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
    };
    call.print(&format!("{folder}\n"))
}

/// `expr`: sums, products and comparisons, from the left; 1 if the result is nothing or zero.
pub(super) fn expr(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    let Some(value) = sum(&words) else {
        call.complain("expr: syntax error");
        return 2;
    };
    call.print(&format!("{value}\n"));
    i32::from(value.is_empty() || value == "0")
}

/// The value of words with operators between; products bind more than sums, sums more than comparisons.
fn sum(words: &[&str]) -> Option<String> {
    const LEVELS: [&[&str]; 3] = [&["=", "!=", "<", "<=", ">", ">="], &["+", "-"], &["*", "/", "%"]];
    if let [word] = words {
        return Some((*word).to_owned());
    }
    for operators in LEVELS {
        let place = words.iter().rposition(|word| operators.contains(word));
        let Some(at) = place.filter(|at| *at > 0) else {
            continue;
        };
        let (left, right) = (sum(words.get(..at)?)?, sum(words.get(at + 1..)?)?);
        let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
        let order = match numbers {
            Some((left, right)) => left.cmp(&right),
            None => left.cmp(&right),
        };
        let holds = |held: bool| Some(i32::from(held).to_string());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        return match (*words.get(at)?, numbers) {
            ("=", _) => holds(order.is_eq()),
            ("!=", _) => holds(order.is_ne()),
            ("<", _) => holds(order.is_lt()),
            ("<=", _) => holds(order.is_le()),
            (">", _) => holds(order.is_gt()),
            (">=", _) => holds(order.is_ge()),
            ("+", Some((left, right))) => number(left.checked_add(right)),
            ("-", Some((left, right))) => number(left.checked_sub(right)),
            ("*", Some((left, right))) => number(left.checked_mul(right)),
            ("/", Some((left, right))) => number(left.checked_div(right)),
            ("%", Some((left, right))) => number(left.checked_rem(right)),
            _ => None,
        };
    }
    None
}
