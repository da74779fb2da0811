//! The grammar of the small shell: the constructs that are common in the commands of containers, hooks and probes.

use lexer::Lexer;

pub(super) use condition::Condition;
pub(super) use parameter::{Change, ChangeKind};

mod condition;
mod lexer;
mod parameter;

/// How deep commands may be nested.
const DEPTH_MAX: usize = 64;

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Simple {
        assignments: Vec<(String, Word)>,
        words: Vec<Word>,
        redirects: Vec<Redirect>,
    },
    /// A compound command with redirections behind it.
    Redirected(Box<Node>, Vec<Redirect>),
    Pipe(Vec<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Sequence(Vec<Node>),
    Subshell(Box<Node>),
    Background(Box<Node>),
    Function {
        name: String,
        body: Box<Node>,
    },
    Loop {
        until: bool,
        condition: Box<Node>,
        body: Box<Node>,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: Box<Node>,
    },
    If {
        arms: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Case {
        word: Word,
        arms: Vec<(Vec<Word>, Node)>,
    },
    Condition(Condition),
}

/// A redirection: which stream, how, where to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    pub stream: u8,
    pub kind: RedirectKind,
    pub target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Write,
    Append,
    Read,
    /// `2>&1`
    Duplicate,
    /// `&>`: both outputs.
    Both,
    /// A here-document: the target is the text itself.
    Here,
}

/// A word before expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Word(pub Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Text that is never split; whether it was quoted.
    Text(String, bool),
    /// A parameter, and what is made of its value; whether it was quoted.
    Parameter {
        name: String,
        change: Option<Box<Change>>,
        quoted: bool,
    },
    Command(Box<Node>, bool),
    /// An expression, whose own expansions come first.
    Arithmetic(Word),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(Word),
    Operator(&'static str),
    /// A stream's number directly before a redirection.
    Redirect(u8, RedirectKind),
    Newline,
}

/// Why a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("syntax error: {0}")]
pub(super) struct SyntaxError(String);

impl SyntaxError {
    /// Whether more text could make it right.
    pub(super) fn is_unfinished(&self) -> bool {
        self.0.starts_with("unexpected end of file") || self.0.starts_with("unterminated")
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, SyntaxError> {
    Err(SyntaxError(text.into()))
}

/// Reads a script.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    parse_nested(text, 0)
}

fn parse_nested(text: &str, depth: usize) -> Result<Node, SyntaxError> {
    if depth > DEPTH_MAX {
        return error("too deeply nested");
    }
    let tokens = Lexer::new(text, depth).tokens()?;
    let mut parser = Parser { tokens, at: 0, depth };
    let node = parser.list(&[])?;
    match parser.peek() {
        None => Ok(node),
        Some(token) => error(format!("unexpected {}", show(token))),
    }
}

fn show(token: &Token) -> String {
    match token {
        Token::Operator(text) => format!("\"{text}\""),
        Token::Newline => "newline".to_owned(),
        Token::Redirect(..) => "redirection".to_owned(),
        Token::Word(word) => match literal(word) {
            Some(text) => format!("\"{text}\""),
            None => "word".to_owned(),
        },
    }
}

/// The text of a word that has nothing to expand and no quotes.
fn literal(word: &Word) -> Option<&str> {
    match word.0.as_slice() {
        [Part::Text(text, false)] => Some(text),
        _ => None,
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_operator(&self, text: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == text)
    }

    fn take_operator(&mut self, text: &str) -> bool {
        let found = self.is_operator(text);
        self.at += usize::from(found);
        found
    }

    /// The next token as a bare word, such as a keyword.
    fn keyword(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => literal(word),
            _ => None,
        }
    }

    fn expect(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.keyword() == Some(keyword) {
            self.at += 1;
            return Ok(());
        }
        match self.peek() {
            Some(token) => error(format!("unexpected {} (expecting \"{keyword}\")", show(token))),
            None => error(format!("unexpected end of file (expecting \"{keyword}\")")),
        }
    }

    fn skip_separators(&mut self) {
        while matches!(self.peek(), Some(Token::Newline | Token::Operator(";"))) {
            self.at += 1;
        }
    }

    fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return error("too deeply nested");
        }
        Ok(())
    }

    /// Commands up to one of the words `ends`, a closing bracket or the end.
    fn list(&mut self, ends: &[&str]) -> Result<Node, SyntaxError> {
        self.deeper()?;
        let mut nodes = Vec::new();
        loop {
            self.skip_separators();
            let over = match self.peek() {
                None | Some(Token::Operator(")" | "}" | ";;")) => true,
                Some(Token::Word(word)) => literal(word).is_some_and(|text| ends.contains(&text)),
                _ => false,
            };
            if over {
                break;
            }
            let node = self.and_or()?;
            if self.take_operator("&") {
                nodes.push(Node::Background(Box::new(node)));
                continue;
            }
            nodes.push(node);
            match self.peek() {
                None | Some(Token::Newline | Token::Operator(";" | ")" | "}" | ";;")) => {}
                Some(token) => return error(format!("unexpected {}", show(token))),
            }
        }
        self.depth -= 1;
        Ok(Node::Sequence(nodes))
    }

    fn and_or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.pipeline()?;
        loop {
            let and = self.take_operator("&&");
            if !and && !self.take_operator("||") {
                return Ok(left);
            }
            while self.peek() == Some(&Token::Newline) {
                self.at += 1;
            }
            let right = Box::new(self.pipeline()?);
            left = if and {
                Node::And(Box::new(left), right)
            } else {
                Node::Or(Box::new(left), right)
            };
        }
    }

    fn pipeline(&mut self) -> Result<Node, SyntaxError> {
        if self.keyword() == Some("!") {
            self.at += 1;
            return Ok(Node::Not(Box::new(self.pipeline()?)));
        }
        let mut parts = vec![self.command()?];
        while self.take_operator("|") {
            parts.push(self.command()?);
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => Ok(only),
            Some(last) => {
                parts.push(last);
                Ok(Node::Pipe(parts))
            }
            None => error("unexpected end of file"),
        }
    }

    fn command(&mut self) -> Result<Node, SyntaxError> {
        let node = self.bare_command()?;
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(if redirects.is_empty() {
            node
        } else {
            Node::Redirected(Box::new(node), redirects)
        })
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let Some(Token::Redirect(stream, kind)) = self.peek() else {
            return Ok(None);
        };
        let (stream, kind) = (*stream, *kind);
        self.at += 1;
        let Some(Token::Word(target)) = self.peek().cloned() else {
            return error("missing file for redirection");
        };
        self.at += 1;
        Ok(Some(Redirect { stream, kind, target }))
    }

    fn bare_command(&mut self) -> Result<Node, SyntaxError> {
        if self.take_operator("(") {
            let body = self.list(&[])?;
            if !self.take_operator(")") {
                return error("missing \")\"");
            }
            return Ok(Node::Subshell(Box::new(body)));
        }
        if self.take_operator("{") {
            let body = self.list(&[])?;
            if !self.take_operator("}") {
                return error("missing \"}\"");
            }
            return Ok(body);
        }
        if let (Some(name), [Token::Operator("("), Token::Operator(")"), ..]) =
            (self.keyword(), self.tokens.get(self.at + 1..).unwrap_or_default())
        {
            let name = name.to_owned();
            self.at += 3;
            while self.peek() == Some(&Token::Newline) {
                self.at += 1;
            }
            let body = Box::new(self.bare_command()?);
            return Ok(Node::Function { name, body });
        }
        match self.keyword() {
            Some("while") => self.a_loop(false),
            Some("until") => self.a_loop(true),
            Some("for") => self.a_for(),
            Some("if") => self.an_if(),
            Some("case") => self.a_case(),
            Some("[[") => self.condition().map(Node::Condition),
            _ => self.simple(),
        }
    }

    fn a_loop(&mut self, until: bool) -> Result<Node, SyntaxError> {
        self.at += 1;
        let condition = Box::new(self.list(&["do"])?);
        self.expect("do")?;
        let body = Box::new(self.list(&["done"])?);
        self.expect("done")?;
        Ok(Node::Loop {
            until,
            condition,
            body,
        })
    }

    fn a_for(&mut self) -> Result<Node, SyntaxError> {
        self.at += 1;
        let Some(name) = self.keyword().map(str::to_owned) else {
            return error("bad for loop variable");
        };
        self.at += 1;
        // Without words a loop goes over the arguments.
        let mut words = vec![Word(vec![Part::Parameter {
            name: "@".to_owned(),
            change: None,
            quoted: true,
        }])];
        if self.keyword() == Some("in") {
            self.at += 1;
            words.clear();
            while let Some(Token::Word(word)) = self.peek() {
                words.push(word.clone());
                self.at += 1;
            }
        }
        self.skip_separators();
        self.expect("do")?;
        let body = Box::new(self.list(&["done"])?);
        self.expect("done")?;
        Ok(Node::For { name, words, body })
    }

    fn an_if(&mut self) -> Result<Node, SyntaxError> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.at += 1;
            let condition = self.list(&["then"])?;
            self.expect("then")?;
            arms.push((condition, self.list(&["elif", "else", "fi"])?));
            match self.keyword() {
                Some("elif") => {}
                Some("else") => {
                    self.at += 1;
                    otherwise = Some(Box::new(self.list(&["fi"])?));
                    break;
                }
                _ => break,
            }
        }
        self.expect("fi")?;
        Ok(Node::If { arms, otherwise })
    }

    fn a_case(&mut self) -> Result<Node, SyntaxError> {
        self.at += 1;
        let Some(Token::Word(word)) = self.peek().cloned() else {
            return error("bad case");
        };
        self.at += 1;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_separators();
            if self.keyword() == Some("esac") {
                self.at += 1;
                return Ok(Node::Case { word, arms });
            }
            self.take_operator("(");
            let mut patterns = Vec::new();
            loop {
                let Some(Token::Word(pattern)) = self.peek().cloned() else {
                    return error("bad pattern in case");
                };
                self.at += 1;
                patterns.push(pattern);
                if !self.take_operator("|") {
                    break;
                }
            }
            if !self.take_operator(")") {
                return error("missing \")\" in case");
            }
            arms.push((patterns, self.list(&["esac"])?));
            self.take_operator(";;");
        }
    }

    fn simple(&mut self) -> Result<Node, SyntaxError> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(token) = self.peek().cloned() {
            match token {
                Token::Word(word) => {
                    self.at += 1;
                    match assignment(&word) {
                        Some(pair) if words.is_empty() => assignments.push(pair),
                        _ => words.push(word),
                    }
                }
                Token::Redirect(..) => redirects.extend(self.redirect()?),
                // `}` and `{` end a command only where one could begin.
                Token::Operator(text @ ("{" | "}")) if !words.is_empty() => {
                    self.at += 1;
                    words.push(Word(vec![Part::Text(text.to_owned(), true)]));
                }
                Token::Operator(_) | Token::Newline => break,
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return match self.peek() {
                Some(token) => error(format!("unexpected {}", show(token))),
                None => error("unexpected end of file"),
            };
        }
        Ok(Node::Simple {
            assignments,
            words,
            redirects,
        })
    }
}

/// `NAME=value` as a pair.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text(text, false)) = word.0.first() else {
        return None;
    };
    let (name, rest) = text.split_once('=')?;
    let valid = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut value = vec![Part::Text(rest.to_owned(), true)];
    value.extend(word.0.iter().skip(1).cloned());
    valid.then(|| (name.to_owned(), Word(value)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("while true; do sleep 1")]
    #[case("echo 'x")]
    #[case("if true; fi")]
    #[case("&& true")]
    #[case("echo $(true")]
    #[case("(true")]
    #[case("[[ a == ]]")]
    #[case("[[ a")]
    #[case("[[ ( a ]]")]
    #[case("cat <<E\nx")]
    #[case("echo ${x!}")]
    #[case("echo ${}")]
    fn what_is_refused(#[case] script: &str) {
        assert!(parse(script).is_err());
    }

    #[test]
    fn nesting_has_a_limit() {
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"$(".repeat(10_000)).is_err());
        assert!(parse(&format!("[[ {} a ]]", "! ".repeat(10_000))).is_err());
        assert!(parse(&format!("[[ {} a ]]", "( ".repeat(10_000))).is_err());
        assert!(parse(&"${x:-".repeat(10_000)).is_err());
        assert!(parse(&format!("{}true{}", "(".repeat(20), ")".repeat(20))).is_ok());
    }
}
