//! Regular expressions as Go reads them (RE2's syntax), written for this program's library.
//!
//! Go's `\d`, `\s`, `\w` and `\b` are about ASCII. Inside of brackets Go knows no operators between classes. It takes a brace that
//! counts nothing for itself, and knows `\Q…\E`. It refuses repetitions of repetitions and counts above a thousand.

use std::fmt::Write as _;

use regex::Regex;

/// The largest count of a repetition.
const COUNT_MAX: u32 = 1000;

/// The classes that have a name of one letter, and the parts of brackets that say the same.
const CLASSES: [(char, &str); 3] = [('d', "0-9"), ('s', r"\t\n\f\r "), ('w', "0-9A-Za-z_")];
/// Names of classes that are written between colons.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Compiles a pattern.
///
/// # Errors
/// Go's complaint.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let written = translate(pattern)?;
    Regex::new(&written).map_err(|_| said("invalid regular expression", pattern))
}

/// Go's complaint about a pattern; `None` for one that it takes.
pub fn problem(pattern: &str) -> Option<String> {
    compile(pattern).err()
}

fn said(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

/// The pattern in the library's syntax.
///
/// # Errors
/// Go's complaint.
pub fn translate(pattern: &str) -> Result<String, String> {
    let mut reader = Reader {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len()),
        open: 0,
        can_repeat: false,
        repeated_from: None,
    };
    while let Some(next) = reader.peek() {
        reader.item(next)?;
    }
    if reader.open > 0 {
        return Err(said("missing closing )", pattern));
    }
    Ok(reader.out)
}

struct Reader<'a> {
    pattern: &'a str,
    /// How many bytes are read.
    at: usize,
    out: String,
    /// How many groups are open.
    open: usize,
    /// Whether something is there that can be repeated.
    can_repeat: bool,
    /// Where the repetition begins that was read last, if nothing came after it.
    repeated_from: Option<usize>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn read(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// The text that was read since.
    fn since(&self, start: usize) -> &'a str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }

    fn item(&mut self, next: char) -> Result<(), String> {
        match next {
            '(' => self.group(),
            ')' => {
                if self.open == 0 {
                    return Err(said("unexpected )", self.pattern));
                }
                self.open -= 1;
                self.at += 1;
                self.put(")");
                Ok(())
            }
            '|' => {
                self.at += 1;
                self.out.push('|');
                self.can_repeat = false;
                self.repeated_from = None;
                Ok(())
            }
            '*' | '+' | '?' => {
                let start = self.at;
                self.at += 1;
                self.repetition(start)
            }
            '{' => match self.count()? {
                Some(start) => self.repetition(start),
                None => {
                    self.at += 1;
                    self.put(r"\{");
                    Ok(())
                }
            },
            '[' => self.class(),
            '\\' => self.escape(),
            other => {
                self.at += other.len_utf8();
                self.put(other.encode_utf8(&mut [0; 4]));
                Ok(())
            }
        }
    }

    /// Writes something that can be repeated.
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.can_repeat = true;
        self.repeated_from = None;
    }

    /// The end of a repetition, whose operator has been read from `start`.
    fn repetition(&mut self, start: usize) -> Result<(), String> {
        let operator = self.since(start);
        if self.peek() == Some('?') {
            self.at += 1;
        }
        if let Some(first) = self.repeated_from {
            return Err(said("invalid nested repetition operator", self.since(first)));
        }
        if !self.can_repeat {
            return Err(said("missing argument to repetition operator", operator));
        }
        self.out.push_str(self.since(start));
        self.repeated_from = Some(start);
        Ok(())
    }

    /// Reads a count in braces, and gives where it began. `None` for a brace that counts nothing, which is left.
    fn count(&mut self) -> Result<Option<usize>, String> {
        let Some((inner, _)) = self.rest().get(1..).and_then(|rest| rest.split_once('}')) else {
            return Ok(None);
        };
        let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(low) || !(high.is_empty() || is_number(high)) {
            return Ok(None);
        }
        let start = self.at;
        self.at += inner.len() + 2;
        let number = |text: &str| text.parse().unwrap_or(u32::MAX);
        let (least, most) = (
            number(low),
            if high.is_empty() { COUNT_MAX } else { number(high) },
        );
        if least > COUNT_MAX || most > COUNT_MAX || least > most {
            return Err(said("invalid repeat count", self.since(start)));
        }
        Ok(Some(start))
    }

    /// The beginning of a group, or flags.
    fn group(&mut self) -> Result<(), String> {
        let start = self.at;
        self.open += 1;
        self.can_repeat = false;
        self.repeated_from = None;
        let Some(rest) = self.rest().strip_prefix("(?") else {
            self.at += 1;
            self.out.push('(');
            return Ok(());
        };
        let named = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<'));
        if let Some(named) = named.filter(|named| !named.starts_with(['=', '!'])) {
            let name = named.split('>').next().unwrap_or_default();
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
            let length = self.rest().len() - named.len() + name.len();
            self.at += (length + 1).min(self.rest().len());
            if !is_name || named.len() == name.len() {
                return Err(said("invalid named capture", self.since(start)));
            }
            // A name has no bearing on what matches, and Go's may be there twice.
            self.out.push('(');
            return Ok(());
        }
        self.at += 2;
        let mut is_negated = false;
        let mut is_empty = true;
        while let Some(flag) = self.read() {
            match flag {
                'i' | 'm' | 's' | 'U' => is_empty = false,
                '-' if !is_negated => {
                    is_negated = true;
                    is_empty = true;
                }
                ':' | ')' if !(is_negated && is_empty) => {
                    self.open -= usize::from(flag == ')');
                    // Flags alone can be repeated no more than a beginning.
                    self.out.push_str(match self.since(start) {
                        "(?)" => "",
                        flags => flags,
                    });
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(said("invalid or unsupported Perl syntax", self.since(start)))
    }

    /// A backslash outside of brackets.
    fn escape(&mut self) -> Result<(), String> {
        let start = self.at;
        self.at += 1;
        let Some(next) = self.peek() else {
            return Err(said("trailing backslash at end of expression", ""));
        };
        if let Some((_, inner)) = CLASSES
            .iter()
            .find(|(name, _)| *name == next.to_ascii_lowercase())
        {
            self.at += 1;
            let sign = if next.is_ascii_uppercase() { "^" } else { "" };
            self.put(&format!("[{sign}{inner}]"));
            return Ok(());
        }
        match next {
            'A' | 'z' => {
                self.at += 1;
                self.put(self.since(start));
            }
            'b' | 'B' => {
                self.at += 1;
                self.put(&format!("(?-u:{})", self.since(start)));
            }
            'Q' => {
                self.at += 1;
                let quoted = self.rest().split(r"\E").next().unwrap_or_default();
                for c in quoted.chars() {
                    self.put(&regex::escape(c.encode_utf8(&mut [0; 4])));
                }
                self.at = (self.at + quoted.len() + 2).min(self.pattern.len());
            }
            'p' | 'P' => {
                let property = self.property(start)?;
                self.put(property);
            }
            _ => {
                let c = self.character(start)?;
                self.put(&literal(c));
            }
        }
        Ok(())
    }

    /// A property of characters (`\pL`, `\p{Greek}`), whose backslash is at `start`.
    fn property(&mut self, start: usize) -> Result<&'a str, String> {
        self.at = start + 2;
        if self.peek() == Some('{') {
            let length = self.rest().find('}').map_or(self.rest().len(), |end| end + 1);
            self.at += length;
        } else {
            self.read();
        }
        let text = self.since(start);
        let name = text.get(2..).unwrap_or_default().trim_matches(['{', '}', '^']);
        // Go knows categories, which have short names, and scripts; the library knows properties beside them.
        let is_known = name == "Any" || name.len() <= 2 || {
            let script = format!(r"\p{{Script={name}}}");
            name.starts_with(|c: char| c.is_ascii_uppercase()) && Regex::new(&script).is_ok()
        };
        if is_known && Regex::new(text).is_ok() {
            Ok(text)
        } else {
            Err(said("invalid character class range", text))
        }
    }

    /// The character that an escape stands for, whose backslash is at `start` and has been read.
    fn character(&mut self, start: usize) -> Result<char, String> {
        let refused = |reader: &Self| said("invalid escape sequence", reader.since(start));
        let Some(next) = self.read() else {
            return Err(said("trailing backslash at end of expression", ""));
        };
        Ok(match next {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => {
                let digits = self
                    .rest()
                    .bytes()
                    .take_while(|byte| (b'0'..=b'7').contains(byte));
                let more = digits.take(2).count();
                if next != '0' && more == 0 {
                    return Err(refused(self));
                }
                self.at += more;
                let octal = self.since(start).get(1..).unwrap_or_default();
                let code = u32::from_str_radix(octal, 8).unwrap_or_default();
                char::from_u32(code).ok_or_else(|| refused(self))?
            }
            'x' => {
                let digits = match self.rest().strip_prefix('{') {
                    Some(rest) => {
                        let digits = rest.split('}').next().unwrap_or_default();
                        self.at = (self.at + digits.len() + 2).min(self.pattern.len());
                        digits
                    }
                    None => {
                        let digits = self.rest().get(..2).unwrap_or_default();
                        self.at += digits.len();
                        digits
                    }
                };
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                code.ok_or_else(|| refused(self))?
            }
            other if other.is_ascii_punctuation() => other,
            _ => return Err(refused(self)),
        })
    }

    /// Characters in brackets.
    fn class(&mut self) -> Result<(), String> {
        let start = self.at;
        let missing = || said("missing closing ]", self.pattern.get(start..).unwrap_or_default());
        let missing = missing();
        self.at += 1;
        let mut out = String::from("[");
        if self.peek() == Some('^') {
            self.at += 1;
            out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.peek() {
                None => return Err(missing),
                Some(']') if !is_first => {
                    self.at += 1;
                    break;
                }
                Some(_) => self.part_of_class(&mut out, &missing)?,
            }
            is_first = false;
        }
        out.push(']');
        self.put(&out);
        Ok(())
    }

    fn part_of_class(&mut self, out: &mut String, missing: &str) -> Result<(), String> {
        let start = self.at;
        if let Some((name, _)) = self
            .rest()
            .strip_prefix("[:")
            .and_then(|rest| rest.split_once(":]"))
        {
            self.at += name.len() + 4;
            if !NAMES.contains(&name.trim_start_matches('^')) {
                return Err(said("invalid character class range", self.since(start)));
            }
            out.push_str(self.since(start));
            return Ok(());
        }
        if let Some(next) = self
            .rest()
            .strip_prefix('\\')
            .and_then(|rest| rest.chars().next())
        {
            if let Some((_, inner)) = CLASSES
                .iter()
                .find(|(name, _)| *name == next.to_ascii_lowercase())
            {
                self.at += 2;
                if next.is_ascii_uppercase() {
                    // Writing to a text cannot fail.
                    let _ = write!(out, "[^{inner}]");
                } else {
                    out.push_str(inner);
                }
                return Ok(());
            }
            if matches!(next, 'p' | 'P') {
                out.push_str(self.property(start)?);
                return Ok(());
            }
        }
        let low = self.class_character(missing)?;
        out.push_str(&literal(low));
        let is_range = self
            .rest()
            .strip_prefix('-')
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(']'));
        if is_range {
            self.at += 1;
            let high = self.class_character(missing)?;
            if high < low {
                return Err(said("invalid character class range", self.since(start)));
            }
            out.push('-');
            out.push_str(&literal(high));
        }
        Ok(())
    }

    fn class_character(&mut self, missing: &str) -> Result<char, String> {
        let start = self.at;
        match self.read() {
            None => Err(missing.to_owned()),
            Some('\\') => self.character(start),
            Some(c) => Ok(c),
        }
    }
}

/// A character for itself, within brackets and outside.
fn literal(c: char) -> String {
    if c.is_ascii_punctuation() || c.is_ascii_control() {
        format!(r"\x{{{:x}}}", u32::from(c))
    } else {
        c.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The results of Go 1.26.
    #[rstest]
    #[case(r"^\d+$", "٣", false)]
    #[case(r"^\d+$", "3", true)]
    #[case(r"^\w+$", "é", false)]
    #[case(r"^\W$", "é", true)]
    #[case(r"^\s$", "\u{a0}", false)]
    #[case(r"^\s$", "\u{b}", false)]
    #[case(r"^\s$", "\u{c}", true)]
    #[case(r"^\S$", "\u{a0}", true)]
    #[case(r"^\D$", "٣", true)]
    #[case(r"\bé", "é", false)]
    #[case(r"a\b", "aé", true)]
    #[case(r"^[\w.-]+$", "a.b-ü", false)]
    #[case(r"^[\w.-]+$", "a.b-u", true)]
    #[case(r"^[^\s]+$", "\u{a0}", true)]
    #[case(r"^[\D]$", "٣", true)]
    #[case(r"^[[]$", "[", true)]
    #[case(r"^[a&&b]+$", "a&b", true)]
    #[case(r"^[a~~b]+$", "~", true)]
    #[case(r"^[+--]$", ",", true)]
    #[case(r"^a{$", "a{", true)]
    #[case(r"^a{,2}$", "a{,2}", true)]
    #[case(r"^a{2}$", "aa", true)]
    #[case(r"^\<a\>$", "<a>", true)]
    #[case(r"^\Qa.b\E$", "a.b", true)]
    #[case(r"^\Qa.b\E$", "axb", false)]
    #[case(r"^[[:alpha:]]$", "é", false)]
    #[case(r"^[]a]$", "]", true)]
    #[case(r"\Ba", "éa", false)]
    #[case(r"^(?i)ä$", "Ä", true)]
    #[case(r"^\pL$", "é", true)]
    #[case(r"^[\]\[]$", "[", true)]
    #[case(r"^[\d-x]$", "-", true)]
    #[case(r"^\x41$", "A", true)]
    #[case(r"^a{1,}b", "aab", true)]
    fn matches_as_in_go(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        let compiled = compile(pattern).expect("a pattern");
        assert_eq!(compiled.is_match(text), expected, "{compiled}");
    }

    #[rstest]
    #[case("^[a-z]+$", "")]
    #[case("a(b", "error parsing regexp: missing closing ): `a(b`")]
    #[case("a)b", "error parsing regexp: unexpected ): `a)b`")]
    #[case(r"\", "error parsing regexp: trailing backslash at end of expression: ``")]
    #[case("a(?=b)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`")]
    #[case(r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`")]
    #[case(r"a**", "error parsing regexp: invalid nested repetition operator: `**`")]
    #[case(r"a*?*", "error parsing regexp: invalid nested repetition operator: `*?*`")]
    #[case(r"a{1001}", "error parsing regexp: invalid repeat count: `{1001}`")]
    #[case(
        r"a{2}{3}",
        "error parsing regexp: invalid nested repetition operator: `{2}{3}`"
    )]
    #[case(r"(?x)a", "error parsing regexp: invalid or unsupported Perl syntax: `(?x`")]
    #[case(r"(?P=n)", "error parsing regexp: invalid or unsupported Perl syntax: `(?P`")]
    #[case(r"(?<n>a)", "")]
    #[case(r"\C", "error parsing regexp: invalid escape sequence: `\\C`")]
    #[case(r"\E", "error parsing regexp: invalid escape sequence: `\\E`")]
    #[case(r"[a--b]", "error parsing regexp: invalid character class range: `a--`")]
    #[case(r"[b-a]", "error parsing regexp: invalid character class range: `b-a`")]
    #[case(r"a{2,1}", "error parsing regexp: invalid repeat count: `{2,1}`")]
    #[case(r"(?u)a", "error parsing regexp: invalid or unsupported Perl syntax: `(?u`")]
    #[case(r"\Z", "error parsing regexp: invalid escape sequence: `\\Z`")]
    #[case(r"[\b]", "error parsing regexp: invalid escape sequence: `\\b`")]
    #[case(r"(?i", "error parsing regexp: invalid or unsupported Perl syntax: `(?i`")]
    #[case(r"(?z)", "error parsing regexp: invalid or unsupported Perl syntax: `(?z`")]
    #[case(r"+a", "error parsing regexp: missing argument to repetition operator: `+`")]
    #[case(r"a|*", "error parsing regexp: missing argument to repetition operator: `*`")]
    #[case(r"(*)", "error parsing regexp: missing argument to repetition operator: `*`")]
    #[case(r"^*", "")]
    #[case(r"[[:word:]]", "")]
    #[case(
        r"[[:foo:]]",
        "error parsing regexp: invalid character class range: `[:foo:]`"
    )]
    #[case(r"\p{Foo}", "error parsing regexp: invalid character class range: `\\p{Foo}`")]
    #[case(
        r"\p{Alphabetic}",
        "error parsing regexp: invalid character class range: `\\p{Alphabetic}`"
    )]
    #[case(r")", "error parsing regexp: unexpected ): `)`")]
    #[case(r"a++", "error parsing regexp: invalid nested repetition operator: `++`")]
    #[case(r"a?+", "error parsing regexp: invalid nested repetition operator: `?+`")]
    #[case(r"[", "error parsing regexp: missing closing ]: `[`")]
    #[case(r"(?P<n>a)(?P<n>b)", "")]
    #[case(r"\8", "error parsing regexp: invalid escape sequence: `\\8`")]
    fn as_go_says_it(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(problem(pattern).unwrap_or_default(), expected);
    }
}
