//! Patterns of the shell: `*`, `?`, `[a-z]`, and characters that stand for themselves.

/// A pattern.
pub(super) struct Pattern(Vec<Piece>);

enum Piece {
    Any,
    One,
    Char(char),
    Set { excludes: bool, items: Vec<Item> },
}

enum Item {
    Range(char, char),
    Class(String),
}

impl Item {
    fn has(&self, c: char) -> bool {
        match self {
            Self::Range(first, last) => (*first..=*last).contains(&c),
            Self::Class(name) => match name.as_str() {
                "alpha" => c.is_alphabetic(),
                "digit" => c.is_ascii_digit(),
                "alnum" => c.is_alphanumeric(),
                "lower" => c.is_lowercase(),
                "upper" => c.is_uppercase(),
                "space" => c.is_whitespace(),
                "blank" => matches!(c, ' ' | '\t'),
                "punct" => c.is_ascii_punctuation(),
                "xdigit" => c.is_ascii_hexdigit(),
                _ => false,
            },
        }
    }
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Char(own) => *own == c,
            Self::Set { excludes, items } => items.iter().any(|item| item.has(c)) != *excludes,
        }
    }
}

/// A text as a pattern of nothing but itself.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether a pattern may match more than one text.
pub(super) fn is_open(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    let mut opened = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '*' | '?' => return true,
            '[' => opened = true,
            ']' if opened => return true,
            _ => {}
        }
    }
    false
}

/// The text that a pattern which is not open stands for.
pub(super) fn unescape(pattern: &str) -> String {
    let mut chars = pattern.chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let (mut pieces, mut at) = (Vec::new(), 0);
        while let Some(c) = chars.get(at).copied() {
            at += 1;
            pieces.push(match c {
                '*' => Piece::Any,
                '?' => Piece::One,
                '\\' => {
                    let next = chars.get(at).copied();
                    at += 1;
                    Piece::Char(next.unwrap_or('\\'))
                }
                '[' => match set(chars.get(at..).unwrap_or_default()) {
                    Some((piece, length)) => {
                        at += length;
                        piece
                    }
                    None => Piece::Char('['),
                },
                c => Piece::Char(c),
            });
        }
        Self(pieces)
    }

    /// Whether it matches the whole text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        // The usual two-pointer walk with one place to come back to.
        let (mut p, mut t, mut star) = (0, 0, None);
        while let Some(c) = text.get(t) {
            match self.0.get(p) {
                Some(Piece::Any) => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(piece) if piece.takes(*c) => {
                    p += 1;
                    t += 1;
                }
                _ => match star {
                    Some((at, from)) => {
                        star = Some((at, from + 1));
                        p = at + 1;
                        t = from + 1;
                    }
                    None => return false,
                },
            }
        }
        self.0.iter().skip(p).all(|piece| matches!(piece, Piece::Any))
    }

    /// The length in bytes of the shortest or longest beginning that it matches.
    pub(super) fn beginning(&self, text: &str, longest: bool) -> Option<usize> {
        let mut cuts = cuts(text);
        let fits = |at: &usize| text.get(..*at).is_some_and(|begin| self.matches(begin));
        if longest {
            cuts.reverse();
        }
        cuts.into_iter().find(fits)
    }

    /// Where the shortest or longest end begins that it matches.
    pub(super) fn end(&self, text: &str, longest: bool) -> Option<usize> {
        let mut cuts = cuts(text);
        let fits = |at: &usize| text.get(*at..).is_some_and(|end| self.matches(end));
        if !longest {
            cuts.reverse();
        }
        cuts.into_iter().find(fits)
    }

    /// The text with the first match, or all of them, replaced. Each match is the longest at its place.
    pub(super) fn replace(&self, text: &str, with: &str, all: bool) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            if let Some(length) = self.beginning(rest, true).filter(|length| *length > 0) {
                out.push_str(with);
                rest = rest.get(length..).unwrap_or_default();
                if !all {
                    break;
                }
                continue;
            }
            let mut chars = rest.chars();
            out.extend(chars.next());
            rest = chars.as_str();
        }
        out + rest
    }
}

/// The places between characters, with both ends.
fn cuts(text: &str) -> Vec<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect()
}

/// A set behind its opening bracket, and how many characters it has with the closing one.
fn set(chars: &[char]) -> Option<(Piece, usize)> {
    let mut at = 0;
    let excludes = matches!(chars.first(), Some('!' | '^'));
    at += usize::from(excludes);
    let mut items = Vec::new();
    loop {
        let c = *chars.get(at)?;
        at += 1;
        match c {
            ']' if !items.is_empty() => return Some((Piece::Set { excludes, items }, at)),
            '[' if chars.get(at) == Some(&':') => {
                let rest = chars.get(at + 1..)?;
                let end = rest.iter().position(|c| *c == ':')?;
                items.push(Item::Class(rest.get(..end)?.iter().collect()));
                at += end + 3;
            }
            c => {
                let first = if c == '\\' {
                    at += 1;
                    *chars.get(at - 1)?
                } else {
                    c
                };
                let last = match (chars.get(at), chars.get(at + 1)) {
                    (Some('-'), Some(last)) if *last != ']' => {
                        at += 2;
                        *last
                    }
                    _ => first,
                };
                items.push(Item::Range(first, last));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*", "", true)]
    #[case("a*c", "abbc", true)]
    #[case("a*c", "abcd", false)]
    #[case("a?", "ab", true)]
    #[case("a?", "a", false)]
    #[case("[a-c]x", "bx", true)]
    #[case("[!a-c]x", "bx", false)]
    #[case("[^a-c]x", "dx", true)]
    #[case("[]a]", "]", true)]
    #[case("[[:digit:]]*", "4x", true)]
    #[case("[[:digit:]]", "x", false)]
    #[case("[a", "[a", true)]
    #[case("\\*", "*", true)]
    #[case("\\*", "x", false)]
    #[case("*.txt", "a.b.txt", true)]
    fn whole_texts(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(Pattern::new(pattern).matches(text), expected);
    }

    #[rstest]
    #[case("*", false)]
    #[case("[", true)]
    #[case("[a]", false)]
    #[case("\\*\\?", true)]
    #[case("plain", true)]
    fn closed_patterns(#[case] pattern: &str, #[case] expected: bool) {
        assert_eq!(!is_open(pattern), expected);
        assert_eq!(unescape(&escape(pattern)), pattern);
        assert!(!is_open(&escape(pattern)));
    }

    #[test]
    fn parts() {
        let star = Pattern::new("*/");
        assert_eq!(
            (star.beginning("a/b/c", false), star.beginning("a/b/c", true)),
            (Some(2), Some(4))
        );
        let end = Pattern::new(".*");
        assert_eq!(
            (end.end("a.b.c", false), end.end("a.b.c", true)),
            (Some(3), Some(1))
        );
        assert_eq!(Pattern::new("[0-9]").replace("a1b2", "x", true), "axbx");
        assert_eq!(Pattern::new("b*").replace("abc", "x", false), "ax");
        assert_eq!(Pattern::new("q").replace("abc", "x", true), "abc");
    }
}
