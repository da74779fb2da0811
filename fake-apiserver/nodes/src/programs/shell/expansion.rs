//! Expansion of a command's words and redirections before it runs.

use std::sync::PoisonError;

use client_kit::Seed;
use machinery::meta::ObjectMeta as _;

use super::super::arith;
use super::super::files::resolve;
use super::super::parse::{Part, Redirect, RedirectKind, Word};
use super::super::pipe::Output;
use super::{Shell, Streams};

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
                    if stream == 2 {
                        redirected.streams.err = out;
                    } else {
                        redirected.streams.out = out;
                    }
                }
            }
        }
        Some(redirected)
    }

    pub(super) async fn expand_all(&mut self, words: &[Word], streams: &Streams) -> Vec<String> {
        let mut out = Vec::new();
        for word in words {
            let mut fields: Vec<String> = Vec::new();
            let mut open = false;
            for part in &word.0 {
                let (text, whole) = self.part(part, streams).await;
                if whole {
                    match fields.last_mut().filter(|_| open) {
                        Some(last) => last.push_str(&text),
                        None => fields.push(text),
                    }
                    open = true;
                    continue;
                }
                if text.starts_with(char::is_whitespace) {
                    open = false;
                }
                for (index, field) in text.split_whitespace().enumerate() {
                    match fields.last_mut().filter(|_| open && index == 0) {
                        Some(last) => last.push_str(field),
                        None => fields.push(field.to_owned()),
                    }
                    open = true;
                }
                if text.ends_with(char::is_whitespace) {
                    open = false;
                }
            }
            out.extend(fields);
        }
        out
    }

    pub(super) async fn expand_one(&mut self, word: &Word, streams: &Streams) -> String {
        let mut out = String::new();
        for part in &word.0 {
            out.push_str(&self.part(part, streams).await.0);
        }
        out
    }

    /// A part's text, and whether it is taken as a whole.
    async fn part(&mut self, part: &Part, streams: &Streams) -> (String, bool) {
        match part {
            Part::Text(text, _) => (text.clone(), true),
            Part::Variable {
                name,
                default,
                quoted,
            } => {
                let value = self.variable(name);
                match default {
                    Some(word) if value.is_empty() => {
                        (Box::pin(self.expand_one(word, streams)).await, *quoted)
                    }
                    _ => (value, *quoted),
                }
            }
            Part::Command(node, quoted) => {
                let out = Output::default();
                let inner = Streams {
                    out: out.clone(),
                    err: streams.err.clone(),
                    input: Output::holding(Vec::new()),
                    prompts: false,
                };
                self.run(node, &inner).await;
                (out.text().trim_end_matches('\n').to_owned(), *quoted)
            }
            Part::Arithmetic(text) => {
                let value = arith::evaluate(text, &|name| self.variable(name));
                (value.unwrap_or_default().to_string(), true)
            }
        }
    }

    /// A number below 32,768, as `$RANDOM` is. It follows from the pod and from the cluster's time when the shell first asked for one.
    fn next_random(&self) -> u64 {
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

    fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "$" => "1".to_owned(),
            "#" => "0".to_owned(),
            "RANDOM" if !self.env.contains_key(name) => self.next_random().to_string(),
            name => self.env.get(name).cloned().unwrap_or_default(),
        }
    }
}
