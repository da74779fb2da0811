//! Expansion of a command's words and redirections before it runs.

use std::sync::PoisonError;

use client_kit::Seed;
use machinery::meta::ObjectMeta as _;

use super::super::arith;
use super::super::files::resolve;
use super::super::parse::{Part, Redirect, RedirectKind, Word};
use super::super::pattern::{Pattern, escape, is_open, unescape};
use super::super::pipe::Output;
use super::{Shell, Streams};

/// How many files a pattern may stand for.
const FILES_MAX: usize = 10_000;

/// The streams of a command, and the files that its output goes to in the end.
pub(super) struct Redirected {
    pub(super) streams: Streams,
    files: Vec<(String, Output)>,
}

impl Redirected {
    pub(super) fn finish(self, shell: &mut Shell, streams: &Streams) {
        for (path, out) in self.files {
            if let Err(error) = shell.files.write(&path, &out.bytes(), true) {
                streams
                    .err
                    .write(format!("{}: write error: {error}\n", shell.name).as_bytes());
                shell.status = 1;
            }
        }
    }
}

impl Shell {
    pub(super) async fn redirect(&mut self, redirects: &[Redirect], streams: &Streams) -> Option<Redirected> {
        let mut redirected = Redirected {
            streams: streams.clone(),
            files: Vec::new(),
        };
        for redirect in redirects {
            let target = self.expand_one(&redirect.target, streams).await;
            let path = resolve(&self.cwd, &target);
            match (redirect.kind, redirect.stream) {
                (RedirectKind::Duplicate, 2) => redirected.streams.err = redirected.streams.out.clone(),
                (RedirectKind::Here, _) => redirected.streams.input = Output::holding(target.into_bytes()),
                (RedirectKind::Duplicate, _) => redirected.streams.out = redirected.streams.err.clone(),
                (RedirectKind::Read, _) => match self.files.read(&path) {
                    Ok(content) => redirected.streams.input = Output::holding(content),
                    Err(error) => {
                        streams
                            .err
                            .write(format!("{}: can't open {target}: {error}\n", self.name).as_bytes());
                        self.status = 1;
                        return None;
                    }
                },
                (kind, stream) => {
                    let append = kind == RedirectKind::Append;
                    // Containers write to their log through these.
                    let to_log = matches!(
                        path.as_str(),
                        "/dev/stdout" | "/dev/stderr" | "/proc/1/fd/1" | "/proc/1/fd/2"
                    );
                    let out = if to_log {
                        streams.out.clone()
                    } else {
                        Output::default()
                    };
                    if !to_log {
                        if let Err(error) = self.files.write(&path, b"", append) {
                            streams
                                .err
                                .write(format!("{}: can't create {target}: {error}\n", self.name).as_bytes());
                            self.status = 1;
                            return None;
                        }
                        redirected.files.push((path, out.clone()));
                    }
                    if stream == 2 || kind == RedirectKind::Both {
                        redirected.streams.err = out.clone();
                    }
                    if stream != 2 {
                        redirected.streams.out = out;
                    }
                }
            }
        }
        Some(redirected)
    }

    /// The words of a command: expanded, split at blanks, and replaced by the names of the files that they match.
    pub(super) async fn expand_all(&mut self, words: &[Word], streams: &Streams) -> Vec<String> {
        let mut out = Vec::new();
        for word in words {
            let mut fields = Fields::default();
            for (index, part) in word.0.iter().enumerate() {
                match part {
                    Part::Text(text, false) if index == 0 && (text == "~" || text.starts_with("~/")) => {
                        let home = self.value("HOME").unwrap_or_default();
                        fields.add(&home, true);
                        fields.add(text.get(1..).unwrap_or_default(), false);
                    }
                    // The arguments in double quotes are as many words as there are, or none.
                    Part::Text(text, true)
                        if text.is_empty() && word.0.get(index + 1).is_some_and(is_list) => {}
                    Part::Text(text, is_quoted) => fields.add(text, *is_quoted),
                    part if is_list(part) => fields.list(&self.arguments),
                    _ => {
                        let (text, is_whole) = self.part(part, streams).await;
                        if is_whole {
                            fields.add(&text, true);
                        } else {
                            fields.split(&text, &self.separators());
                        }
                    }
                }
            }
            for field in fields.done {
                let found = match is_open(&field.pattern) {
                    true => self.matching_files(&field.pattern),
                    false => Vec::new(),
                };
                if found.is_empty() {
                    out.push(field.text);
                } else {
                    out.extend(found);
                }
            }
        }
        out
    }

    /// The characters at which the values of variables are split.
    pub(super) fn separators(&self) -> String {
        self.value("IFS").unwrap_or_else(|| " \t\n".to_owned())
    }

    pub(super) async fn expand_one(&mut self, word: &Word, streams: &Streams) -> String {
        let mut out = String::new();
        for part in &word.0 {
            out.push_str(&self.part(part, streams).await.0);
        }
        out
    }

    /// A word as a pattern: what was quoted in it stands for itself.
    pub(super) async fn expand_pattern(&mut self, word: &Word, streams: &Streams) -> String {
        let mut out = String::new();
        for part in &word.0 {
            let (text, is_whole) = self.part(part, streams).await;
            match part {
                Part::Text(_, false) => out.push_str(&text),
                _ if is_whole => out.push_str(&escape(&text)),
                _ => out.push_str(&text),
            }
        }
        out
    }

    /// A part's text, and whether it is taken as a whole.
    async fn part(&mut self, part: &Part, streams: &Streams) -> (String, bool) {
        match part {
            Part::Text(text, _) => (text.clone(), true),
            Part::Parameter { name, change, quoted } => {
                let value = match change {
                    None => self.required(name),
                    Some(change) => Box::pin(self.changed(name, change, streams)).await,
                };
                (value, *quoted)
            }
            Part::Command(node, quoted) => {
                let out = Output::default();
                let inner = Streams {
                    out: out.clone(),
                    err: streams.err.clone(),
                    input: Output::holding(Vec::new()),
                    prompts: false,
                };
                let saved = self.save();
                self.run(node, &inner).await;
                self.restore(saved);
                self.substituted = Some(self.status);
                (out.text().trim_end_matches('\n').to_owned(), *quoted)
            }
            Part::Arithmetic(word) => {
                let text = Box::pin(self.expand_one(word, streams)).await;
                let value = arith::evaluate(&text, self);
                if value.is_none() {
                    self.failure
                        .get_or_insert_with(|| "arithmetic syntax error".to_owned());
                }
                (value.unwrap_or_default().to_string(), true)
            }
        }
    }

    /// A number below 32,768, as `$RANDOM` is. It follows from the pod and from the cluster's time when the shell first asked for one.
    pub(super) fn next_random(&self) -> u64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let random = random.get_or_insert_with(|| {
            let nanos = self.clock.now().as_nanosecond() % i128::from(u64::MAX);
            let pod = self.nic().pod();
            let uid = pod.as_ref().map_or("", |pod| pod.uid());
            let seed = Seed(u64::try_from(nanos).unwrap_or_default());
            seed.fork(uid).fork(self.files.container()).random()
        });
        random.below(1 << 15)
    }

    /// The files that a pattern matches, by name.
    fn matching_files(&self, pattern: &str) -> Vec<String> {
        let (mut found, rest) = match pattern.strip_prefix('/') {
            Some(rest) => (vec!["/".to_owned()], rest),
            None => (vec![String::new()], pattern),
        };
        let mut pieces = rest.split('/').filter(|piece| !piece.is_empty()).peekable();
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none();
            let mut next = Vec::new();
            for base in &found {
                let names = if is_open(piece) {
                    self.names_in(base, piece)
                } else {
                    vec![unescape(piece)]
                };
                for name in names {
                    let path = format!("{base}{name}");
                    let place = resolve(&self.cwd, &path);
                    if is_last && self.files.exists(&place) {
                        next.push(path);
                    } else if !is_last && self.files.is_dir(&place) {
                        next.push(path + "/");
                    }
                }
            }
            next.truncate(FILES_MAX);
            found = next;
        }
        found.retain(|path| !path.is_empty());
        found
    }

    /// The names in a directory that a pattern matches. It must name the dot of those that are hidden.
    fn names_in(&self, base: &str, pattern: &str) -> Vec<String> {
        let names = self.files.list(&resolve(&self.cwd, base));
        let (fits, shows_hidden) = (Pattern::new(pattern), pattern.starts_with('.'));
        let mut names = names.unwrap_or_default();
        names.retain(|name| (shows_hidden || !name.starts_with('.')) && fits.matches(name));
        names.sort();
        names
    }
}

/// Whether a part is `$@` in double quotes.
fn is_list(part: &Part) -> bool {
    matches!(part, Part::Parameter { name, change: None, quoted: true } if name == "@")
}

/// A word's fields while it is expanded.
#[derive(Default)]
struct Fields {
    done: Vec<Field>,
    /// Whether what comes next belongs to the last field.
    is_open: bool,
}

/// A field: its text, and the same as a pattern.
#[derive(Default)]
struct Field {
    text: String,
    pattern: String,
}

impl Fields {
    /// Adds text that is not split.
    fn add(&mut self, text: &str, is_quoted: bool) {
        let last = if self.is_open { self.done.pop() } else { None };
        let mut field = last.unwrap_or_default();
        self.is_open = true;
        field.text.push_str(text);
        if is_quoted {
            field.pattern.push_str(&escape(text));
        } else {
            field.pattern.push_str(text);
        }
        self.done.push(field);
    }

    /// Adds a field for each of these, the first and the last of which join what stands beside them.
    fn list(&mut self, texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            self.is_open &= index == 0;
            self.add(text, true);
        }
    }

    /// Adds text that is split at separators: at each, but blanks count together.
    fn split(&mut self, text: &str, separators: &str) {
        let mut field = String::new();
        let mut after_blank = false;
        for c in text.chars() {
            if !separators.contains(c) {
                field.push(c);
                after_blank = false;
                continue;
            }
            let is_blank = c.is_whitespace();
            if !field.is_empty() || (!is_blank && !after_blank) {
                let text = std::mem::take(&mut field);
                self.add(&text, false);
            }
            self.is_open = false;
            after_blank = is_blank;
        }
        if !field.is_empty() {
            self.add(&field, false);
        }
    }
}
