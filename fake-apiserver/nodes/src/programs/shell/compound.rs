//! Compound commands: pipes, commands in the background, loops, conditions, `case`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::super::parse::{Node, Word};
use super::super::pattern::Pattern;
use super::super::pipe::Output;
use super::idle::{is_true, pure_sleep};
use super::{Flow, Shell, Streams};

impl Shell {
    pub(super) async fn pipe(&mut self, parts: &[Node], streams: &Streams) -> Flow {
        let mut input = streams.input.clone();
        let mut status = 0;
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            let out = if last {
                streams.out.clone()
            } else {
                Output::default()
            };
            let inner = Streams {
                out: out.clone(),
                err: streams.err.clone(),
                input: std::mem::take(&mut input),
                prompts: false,
            };
            // Each part has a shell of its own.
            let saved = self.save();
            self.run(part, &inner).await;
            self.restore(saved);
            if !last {
                input = Output::holding(out.take());
            }
            if self.status != 0 {
                status = self.status;
            }
        }
        if self.options.pipes_fail {
            self.status = status;
        }
        Flow::Next
    }

    pub(super) fn background(&mut self, body: &Node, streams: &Streams) -> Flow {
        let (keep, term) = watch::channel(false);
        let mut child = Self::new(
            self.files.clone(),
            self.env.clone(),
            &self.hostname,
            Arc::clone(&self.clock),
            term,
            false,
        );
        child.restore(self.save());
        child.run.clone_from(&self.run);
        let (body, streams) = (body.clone(), streams.clone());
        self.jobs.spawn(async move {
            child.run(&body, &streams).await;
            drop(keep);
        });
        self.status = 0;
        Flow::Next
    }

    pub(super) async fn a_loop(
        &mut self,
        until: bool,
        condition: &Node,
        body: &Node,
        streams: &Streams,
    ) -> Flow {
        if !until
            && is_true(condition)
            && let Some(pause) = pure_sleep(body)
        {
            return self.idle(pause, streams).await;
        }
        loop {
            let flow = self.run_checked(condition, streams).await;
            if flow != Flow::Next {
                return flow;
            }
            if (self.status == 0) == until {
                self.status = 0;
                return Flow::Next;
            }
            match self.run(body, streams).await {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Flow::Next,
                flow @ (Flow::Return | Flow::Exit) => return flow,
            }
        }
    }

    /// `while true; do sleep n; done`: nothing happens until a signal comes, so nothing needs to wake up before.
    pub(super) async fn idle(&mut self, pause: Duration, streams: &Streams) -> Flow {
        let begin = Instant::now();
        loop {
            self.wait_term().await;
            // The trap runs when the sleep that is under way is over.
            let pause_ms = pause.as_millis().max(1);
            let left = pause_ms - begin.elapsed().as_millis() % pause_ms;
            tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(u64::MAX))).await;
            self.status = 0;
            let flow = self.signals(streams).await;
            if flow != Flow::Next {
                return flow;
            }
        }
    }

    pub(super) async fn a_for(&mut self, name: &str, words: &[Word], body: &Node, streams: &Streams) -> Flow {
        let values = self.expand_all(words, streams).await;
        let flow = self.failed(streams);
        if flow != Flow::Next {
            return flow;
        }
        for value in values {
            self.env.insert(name.to_owned(), value);
            match self.run(body, streams).await {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ (Flow::Return | Flow::Exit) => return flow,
            }
        }
        Flow::Next
    }

    pub(super) async fn an_if(
        &mut self,
        arms: &[(Node, Node)],
        otherwise: Option<&Node>,
        streams: &Streams,
    ) -> Flow {
        for (condition, body) in arms {
            let flow = self.run_checked(condition, streams).await;
            if flow != Flow::Next {
                return flow;
            }
            if self.status == 0 {
                return self.run(body, streams).await;
            }
        }
        self.status = 0;
        match otherwise {
            Some(body) => self.run(body, streams).await,
            None => Flow::Next,
        }
    }

    pub(super) async fn a_case(
        &mut self,
        word: &Word,
        arms: &[(Vec<Word>, Node)],
        streams: &Streams,
    ) -> Flow {
        let value = self.expand_one(word, streams).await;
        for (patterns, body) in arms {
            for pattern in patterns {
                let pattern = self.expand_pattern(pattern, streams).await;
                if Pattern::new(&pattern).matches(&value) {
                    return self.run(body, streams).await;
                }
            }
        }
        self.status = 0;
        Flow::Next
    }
}
