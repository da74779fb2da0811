//! Documents as YAML, in the form in which the real server's library writes them: which texts are quoted, and how long lines are.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;
use shared_json::{Map, Name, Value};

/// Behind this column a text goes on in the next line.
const WIDTH: usize = 80;
const STEP: usize = 2;

/// The document as text, which ends with its last line.
pub(crate) fn write(value: &Value) -> String {
    let mut writer = Writer::default();
    match value {
        Value::Object(map) if !map.is_empty() => writer.mapping(map, 0),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0),
        scalar => {
            writer.scalar(scalar, 0);
            writer.line();
        }
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    column: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        self.put(&" ".repeat(indent));
    }

    /// The cursor is where the first key goes.
    fn mapping(&mut self, map: &Map, indent: usize) {
        let mut entries: Vec<(&Name, &Value)> = map.iter().collect();
        entries.sort_by(|(a, _), (b, _)| in_order(a, b));
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.indent(indent);
            }
            self.text(key, None);
            self.put(":");
            match value {
                Value::Object(map) if !map.is_empty() => {
                    self.line();
                    self.indent(indent + STEP);
                    self.mapping(map, indent + STEP);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.line();
                    self.indent(indent);
                    self.sequence(items, indent);
                }
                scalar => {
                    self.put(" ");
                    self.scalar(scalar, indent + STEP);
                    self.line();
                }
            }
        }
    }

    /// The cursor is where the first dash goes.
    fn sequence(&mut self, items: &[Value], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.indent(indent);
            }
            self.put("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.mapping(map, indent + STEP),
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent + STEP),
                scalar => {
                    self.scalar(scalar, indent + STEP);
                    self.line();
                }
            }
        }
    }

    /// Writes a scalar; a long text goes on at `indent`.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put("null"),
            Value::Object(_) => self.put("{}"),
            Value::Array(_) => self.put("[]"),
            Value::String(text) => self.text(text, Some(indent)),
            other => self.put(&other.to_string()),
        }
    }

    /// A text; without an indent it is a key, which stays in its line.
    fn text(&mut self, text: &str, indent: Option<usize>) {
        let looks = Looks::of(text);
        match indent {
            Some(indent) if text.contains('\n') && looks.block => self.block(text, indent),
            _ if text.contains('\n') || reads_as_another(text) => self.double_quoted(text, indent),
            _ if looks.plain => self.plain(text, indent),
            _ if looks.single_quoted => self.single_quoted(text, indent),
            _ => self.double_quoted(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: Option<usize>) {
        let mut after_space = false;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let breaks = character == ' ' && !after_space && rest.peek() != Some(&' ');
            match indent {
                Some(indent) if breaks && self.column > WIDTH => {
                    self.line();
                    self.indent(indent);
                }
                _ => self.put(character.encode_utf8(&mut [0; 4])),
            }
            after_space = character == ' ';
        }
    }

    fn single_quoted(&mut self, text: &str, indent: Option<usize>) {
        self.put("'");
        let mut after_space = false;
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(character) = rest.next() {
            let inside = !first && rest.peek().is_some_and(|next| *next != ' ');
            match (character, indent) {
                (' ', Some(indent)) if inside && !after_space && self.column > WIDTH => {
                    self.line();
                    self.indent(indent);
                }
                ('\'', _) => self.put("''"),
                _ => self.put(character.encode_utf8(&mut [0; 4])),
            }
            after_space = character == ' ';
            first = false;
        }
        self.put("'");
    }

    fn double_quoted(&mut self, text: &str, indent: Option<usize>) {
        self.put("\"");
        let mut after_space = false;
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(character) = rest.next() {
            let inside = !first && rest.peek().is_some();
            match (character, indent) {
                (' ', Some(indent)) if inside && !after_space && self.column > WIDTH => {
                    self.line();
                    self.indent(indent);
                    if rest.peek() == Some(&' ') {
                        self.put("\\");
                    }
                }
                _ => self.put(&escaped(character)),
            }
            after_space = character == ' ';
            first = false;
        }
        self.put("\"");
    }

    /// Writes a block scalar, behind a bar with the chomping indicator for the last line's end.
    fn block(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        let last = match text.strip_suffix('\n') {
            None => "-",
            Some(before) if before.is_empty() || before.ends_with('\n') => "+",
            Some(_) => "",
        };
        self.put(last);
        let lines = text.strip_suffix('\n').unwrap_or(text);
        for line in lines.split('\n') {
            self.line();
            if !line.is_empty() {
                self.indent(indent);
                self.put(line);
            }
        }
    }
}

/// In which forms a text can be written.
struct Looks {
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Looks {
    fn of(text: &str) -> Self {
        let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let special = !text.chars().all(is_printable) || text.contains(" \n");
        let broken = special || text.contains("\n ");
        Self {
            plain: !(text.is_empty() || edges || broken || has_indicator(text) || text.contains('\n')),
            single_quoted: !broken,
            block: !special && !text.ends_with(' '),
        }
    }
}

/// Whether a text has something that means more than itself outside quotes.
fn has_indicator(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    let mut first = true;
    while let Some(character) = rest.next() {
        let ends = rest.peek().is_none_or(|next| matches!(next, ' ' | '\n' | '\t'));
        let means = match character {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`'
                if first =>
            {
                true
            }
            '-' | '?' if first => ends,
            ':' => ends,
            '#' => matches!(before, ' ' | '\n' | '\t'),
            _ => false,
        };
        if means {
            return true;
        }
        before = character;
        first = false;
    }
    false
}

fn is_printable(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0A | 0x20..=0x7E | 0xA0..=0xD7FF | 0xE000..=0xFEFE | 0xFF00..=0xFFFD | 0x1_0000..=0x10_FFFF
    )
}

fn escaped(character: char) -> String {
    match character {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        other if is_printable(other) => other.to_string(),
        other => match u32::from(other) {
            code @ ..=0xFF => format!("\\x{code:02X}"),
            code @ ..=0xFFFF => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    }
}

/// Words that stand for something else than a text.
const WORDS: [&str; 40] = [
    "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE",
    "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE", ".nan", ".NaN", ".NAN",
    ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", "<<",
];

/// Numbers and times, some of which only older readers take for such.
static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?",
        r"[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[oO]?[0-7_]+|[-+]?0[bB][01_]+",
        r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?",
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?",
    ];
    Regex::new(&format!("^({})$", forms.join("|"))).ok()
});

/// Whether a reader would take the text for something else if it were not quoted.
fn reads_as_another(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '.' | '+' | '-'));
    WORDS.contains(&text) || begins && NUMBERS.as_ref().is_some_and(|numbers| numbers.is_match(text))
}

/// The order of keys: numbers in them by value, and other characters before letters.
fn in_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else {
        return a.len().cmp(&b.len());
    };
    let (left, right) = (a[at], b[at]);
    let in_number = at > 0 && a[at - 1].is_numeric();
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => left.cmp(&right),
        (true, false) if in_number => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if in_number => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            let number = |of: &[char]| {
                let begin = of[..at]
                    .iter()
                    .rposition(|c| !c.is_ascii_digit())
                    .map_or(0, |last| last + 1);
                let digits = of[begin..].iter().take_while(|c| c.is_ascii_digit());
                let text: String = digits.clone().collect();
                (text.parse::<u64>().unwrap_or_default(), digits.count())
            };
            number(&a).cmp(&number(&b)).then(left.cmp(&right))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::words(json!({"a": "yes", "b": "", "c": null, "d": true, "no": "x"}), "a: \"yes\"\nb: \"\"\nc: null\nd: true\n\"no\": x\n")]
    #[case::numbers(json!({"a": "5", "b": "1.5e3", "c": "0x1f", "d": "1:20", "e": "1.2.3.4", "f": 7, "g": "-"}), "a: \"5\"\nb: \"1.5e3\"\nc: \"0x1f\"\nd: \"1:20\"\ne: 1.2.3.4\nf: 7\ng: '-'\n")]
    #[case::times(json!({"a": "2026-01-02T03:04:05Z", "b": "2026-01-02"}), "a: \"2026-01-02T03:04:05Z\"\nb: \"2026-01-02\"\n")]
    #[case::quotes(json!({"a": "a: b", "b": " x ", "c": "{\"a\":1}", "d": "it's: ", "e": "a\tb", "f": "a\"b"}), "a: 'a: b'\nb: ' x '\nc: '{\"a\":1}'\nd: 'it''s: '\ne: \"a\\tb\"\nf: a\"b\n")]
    #[case::keys(json!({"f:a": {".": {}, "k:{\"type\":\"Ready\"}": {}}}), "f:a:\n  .: {}\n  k:{\"type\":\"Ready\"}: {}\n")]
    #[case::lines(json!({"a": "x\ny\n", "b": "x\n\ny", "c": "x\n\n", "d": " x\ny"}), "a: |\n  x\n  y\nb: |-\n  x\n\n  y\nc: |+\n  x\n\nd: |2-\n   x\n  y\n")]
    #[case::lists(json!({"a": [{"b": 1, "c": [1, [2]]}, {}, []]}), "a:\n- b: 1\n  c:\n  - 1\n  - - 2\n- {}\n- []\n")]
    #[case::order(json!({"a10": 1, "a2": 2, "a": 3, "a-b": 4, "ab": 5}), "a: 3\na-b: 4\na2: 2\na10: 1\nab: 5\n")]
    fn documents(#[case] document: Value, #[case] expected: &str) {
        assert_eq!(write(&document), expected);
    }

    #[test]
    fn long_texts_go_on_in_the_next_line() {
        let message = "only the following media types are accepted: application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        let expected = "message: 'only the following media types are accepted: application/json;stream=watch,\n  \
                        application/vnd.kubernetes.protobuf;stream=watch'\n";
        assert_eq!(write(&json!({ "message": message })), expected);
        let words = "word ".repeat(20);
        let plain = write(&json!({"a": words.trim_end()}));
        assert_eq!(plain.lines().map(str::len).collect::<Vec<_>>(), [82, 21]);
    }
}
