//! Structured logs on standard error: a line for each event, as text or as JSON, with the fields of the spans around it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use client_kit::{Clock as _, SystemClock};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The verbosity (`--v`) from which on debug messages are written, and the one for everything.
const DEBUG_FROM: usize = 4;
const TRACE_FROM: usize = 6;

thread_local! {
    /// The spans that the thread is in, innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Writes events to standard error.
pub struct Logs {
    level: Level,
    json: bool,
    next: AtomicU64,
    spans: Mutex<Spans>,
}

/// How many hold a span, and its fields, by its id.
type Spans = BTreeMap<u64, (usize, Map<String, Value>)>;

impl Logs {
    /// Logs of verbosity `v`, as JSON if asked.
    #[must_use]
    pub fn new(v: usize, json: bool) -> Self {
        let level = match v {
            v if v >= TRACE_FROM => Level::TRACE,
            v if v >= DEBUG_FROM => Level::DEBUG,
            _ => Level::INFO,
        };
        Self {
            level,
            json,
            next: AtomicU64::new(1),
            spans: Mutex::default(),
        }
    }

    /// The line for an event.
    fn line(&self, time: &str, level: Level, target: &str, fields: &Map<String, Value>) -> String {
        let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
        let rest = fields.iter().filter(|(key, _)| *key != "message");
        if self.json {
            let mut line = Map::new();
            line.insert("ts".to_owned(), Value::from(time));
            line.insert("level".to_owned(), Value::from(level.as_str().to_lowercase()));
            line.insert("logger".to_owned(), Value::from(target));
            line.insert("msg".to_owned(), Value::from(message));
            line.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
            return Value::Object(line).to_string();
        }
        let rest: String = rest.map(|(key, value)| format!(" {key}={value}")).collect();
        format!("{time} {level:<5} {target} {message:?}{rest}")
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0
            .insert(field.name().to_owned(), Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }
}

impl Subscriber for Logs {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // What libraries say below a warning is theirs.
        let ours = ["controller", "client_kit", "kruise"]
            .iter()
            .any(|crate_name| metadata.target().starts_with(crate_name));
        *metadata.level() <= if ours { self.level } else { Level::WARN }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut fields = Map::new();
        span.record(&mut Fields(&mut fields));
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.insert(id, (1, fields));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fields)) = spans.get_mut(&span.into_u64()) {
            values.record(&mut Fields(fields));
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Map::new();
        ENTERED.with_borrow(|entered| {
            let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, of_span) in entered.iter().filter_map(|id| spans.get(id)) {
                fields.extend(of_span.clone());
            }
        });
        event.record(&mut Fields(&mut fields));
        let metadata = event.metadata();
        let time = SystemClock.now().to_string();
        let line = self.line(&time, *metadata.level(), metadata.target(), &fields);
        // There is nobody to tell if standard error is gone.
        let _closed = writeln!(std::io::stderr().lock(), "{line}");
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        let id = span.into_u64();
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|entered| *entered == id) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = spans.get_mut(&id.into_u64()) {
            *count += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let id = id.into_u64();
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((count, _)) = spans.get_mut(&id) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            spans.remove(&id);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines() {
        let fields = json!({"message": "hello", "set": "a", "n": 3});
        let fields = fields.as_object().unwrap();
        let text = Logs::new(0, false).line("T", Level::WARN, "controller", fields);
        assert_eq!(text, "T WARN  controller \"hello\" n=3 set=\"a\"");
        let line: Value =
            serde_json::from_str(&Logs::new(0, true).line("T", Level::INFO, "controller", fields)).unwrap();
        let expected =
            json!({"ts": "T", "level": "info", "logger": "controller", "msg": "hello", "set": "a", "n": 3});
        assert_eq!(line, expected);
    }

    #[test]
    fn spans_are_forgotten_once_closed() {
        let logs = std::sync::Arc::new(Logs::new(9, false));
        tracing::subscriber::with_default(std::sync::Arc::clone(&logs), || {
            let span = tracing::info_span!("pass", set = "a");
            let again = span.clone();
            assert_eq!(logs.spans.lock().unwrap().len(), 1);
            drop(span);
            assert_eq!(logs.spans.lock().unwrap().len(), 1);
            again.in_scope(|| ENTERED.with_borrow(|entered| assert_eq!(entered.len(), 1)));
            drop(again);
            assert!(logs.spans.lock().unwrap().is_empty());
        });
    }
}
