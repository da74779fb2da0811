//! The address of one mailbox, as Go reads it (`net/mail`): `name@example.com`, `A Name <name@example.com>`.

/// Whether the text is the address of one mailbox.
pub(super) fn is_one(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    let alone = reader.address() && reader.ends();
    alone || {
        let mut reader = Reader { rest: text };
        reader.display_name() && reader.takes('<') && reader.address() && reader.takes('>') && reader.ends()
    }
}

struct Reader<'a> {
    rest: &'a str,
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

impl Reader<'_> {
    /// Passes over spaces and comments. False for a comment that does not end.
    fn blank(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.rest.starts_with('(') {
                return true;
            }
            let mut depth = 0_usize;
            let mut end = None;
            let mut is_escaped = false;
            for (at, c) in self.rest.char_indices() {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    end = Some(at + 1);
                    break;
                }
            }
            match end.and_then(|end| self.rest.get(end..)) {
                Some(rest) => self.rest = rest,
                None => return false,
            }
        }
    }

    fn ends(&mut self) -> bool {
        self.blank() && self.rest.is_empty()
    }

    fn takes(&mut self, c: char) -> bool {
        if !self.blank() {
            return false;
        }
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Words of a name, quoted or not; there may be none.
    fn display_name(&mut self) -> bool {
        while self.blank() {
            let read = match self.rest.chars().next() {
                Some('"') => self.quoted(),
                Some(c) if is_atom(c) || c == '.' => self.word(|c| is_atom(c) || c == '.'),
                _ => return true,
            };
            if !read {
                return false;
            }
        }
        false
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> bool {
        let rest = self.rest.trim_start_matches(is_part);
        let has_read = rest.len() < self.rest.len();
        self.rest = rest;
        has_read
    }

    /// Text in quotes.
    fn quoted(&mut self) -> bool {
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => _ = chars.next(),
                '"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return true;
                }
                c if c.is_ascii_control() && c != '\t' => return false,
                _ => {}
            }
        }
        false
    }

    /// Atoms with dots between them.
    fn dotted(&mut self) -> bool {
        loop {
            if !self.word(is_atom) {
                return false;
            }
            match self.rest.strip_prefix('.') {
                Some(rest) => self.rest = rest,
                None => return true,
            }
        }
    }

    /// `local@domain`.
    fn address(&mut self) -> bool {
        if !self.blank() {
            return false;
        }
        let local = if self.rest.starts_with('"') {
            self.rest.starts_with("\"\"").then_some(()).is_none() && self.quoted()
        } else {
            self.dotted()
        };
        local && self.takes('@') && self.blank() && self.domain()
    }

    fn domain(&mut self) -> bool {
        let Some(rest) = self.rest.strip_prefix('[') else {
            return self.dotted();
        };
        let Some((literal, rest)) = rest.split_once(']') else {
            return false;
        };
        self.rest = rest;
        literal
            .strip_prefix("IPv6:")
            .unwrap_or(literal)
            .parse::<std::net::IpAddr>()
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    /// The results of Go 1.26.
    #[rstest]
    #[case("a@example.com", true)]
    #[case("mailto:a@example.com", false)]
    #[case("A B <a@example.com>", true)]
    #[case("<a>", false)]
    #[case("<a@b>", true)]
    #[case("a@localhost", true)]
    #[case("a@-b", true)]
    #[case("a b@c.d", false)]
    #[case("\"a b\"@c.d", true)]
    #[case("a..b@c.d", false)]
    #[case(".a@c.d", false)]
    #[case("a@c..d", false)]
    #[case("a@[1.2.3.4]", true)]
    #[case("a@b (c)", true)]
    #[case("a@b, c@d", false)]
    #[case(" a@b ", true)]
    #[case("ä@b.de", true)]
    #[case("a@b_c.d", true)]
    #[case("\"A. B\" <a@b>", true)]
    #[case("A. B <a@b>", true)]
    #[case("a+b@c", true)]
    #[case("a@b.", false)]
    #[case("a@", false)]
    #[case("@b", false)]
    #[case("a@b@c", false)]
    #[case("a@b;c", false)]
    #[case("=?utf-8?q?x?= <a@b>", true)]
    #[case("a <a@b", false)]
    fn one_as_in_go(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(super::is_one(text), expected);
    }
}
