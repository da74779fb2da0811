//! Watch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use client_kit::{LocalEvent, LocalObjects};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use http::StatusCode;
use machinery::status::ApiError;
use shared_json::json;
use store::{BATCH_BYTES, Compacted, Event, EventKind, Revision, Scope, Stored, Watcher};
use tokio::time::Instant;

use super::read::{Selection, bad_version, check_not_future};
use crate::context::{Context, Shown};
use crate::conversion;
use crate::encode::{self, Encoder, LocalForm};
use crate::faults::{Asked, EventFate};
use crate::message::request::ResourceRequest;
use crate::request_counts::Labels;
use crate::server::Server;

/// About how many bytes are sent at once, if as many are there.
const SENT_BYTES: usize = 16 << 10;
/// How often an idle watch that allows bookmarks gets one.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before its end a watch gets its last one.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// A watch without `timeoutSeconds` ends after a random time between this and its double.
const DEFAULT_TIMEOUT_SECONDS_MIN: u64 = 1800;
/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

struct Watch {
    server: Server,
    request: ResourceRequest,
    user_agent: String,
    /// Where a watcher of this process takes objects from.
    local: Option<LocalObjects>,
    /// If it goes over a socket.
    remote: Option<Remote>,
    watcher: Watcher,
    /// Whether a webhook converts its objects.
    asks: bool,
    /// Whether others are sent the same text.
    shares: bool,
    selection: Selection,
    namespace: Option<String>,
    encoder: Encoder,
    /// The objects from before it began, which it sends first: encoded when they are sent, as there may be many.
    initial: std::vec::IntoIter<Arc<Stored>>,
    /// At which revision that was, if a bookmark is to end it.
    initial_end: Option<Revision>,
    /// Events that a fault holds back, and until when.
    late: VecDeque<Late>,
    bookmarks: bool,
    next_bookmark: Instant,
    bookmark_due: bool,
    deadline: Instant,
    over: bool,
}

/// A line of a watch, or its content before encoding.
enum Line {
    Text(Bytes),
    Object(LocalEvent),
}

/// The part of a watch over a socket.
struct Remote {
    server: Server,
    labels: Labels,
    /// When more is sent at the earliest.
    next_sent: Instant,
}

impl Remote {
    fn new(server: &Server, request: &ResourceRequest, now: Instant) -> Self {
        let labels = Labels::of_resource(request, false, false, false);
        server.state.request_counts.begin(&labels);
        server.state.remote_watches.fetch_add(1, Ordering::Relaxed);
        Self {
            server: server.clone(),
            labels,
            next_sent: now,
        }
    }

    /// Something is sent.
    fn sends(&mut self) {
        let watches = self.server.state.remote_watches.load(Ordering::Relaxed);
        let period = SENT_PERIOD_PER_WATCH.saturating_mul(watches);
        self.next_sent = Instant::now() + period.clamp(SENT_PERIOD_MIN, SENT_PERIOD_MAX);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.server.state.request_counts.end(&self.labels);
        self.server.state.remote_watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The events since a watch has last looked.
enum Told {
    /// The text that all watches at this position share.
    Text(Bytes),
    Event(Arc<Event>),
}

/// A line that a watch sends later.
struct Late {
    due: Instant,
    frame: Option<Line>,
    /// Whether the watch is over then.
    last: bool,
}

/// The shortest period between two pieces that a watch sends over a socket; it grows with the number of watches. With many
/// changes and many watches each piece costs more than its content. The first piece after a pause is sent at once, and so is the
/// one after as much as is sent at once.
const SENT_PERIOD_MIN: Duration = Duration::from_millis(1);
const SENT_PERIOD_MAX: Duration = Duration::from_millis(10);
const SENT_PERIOD_PER_WATCH: Duration = Duration::from_micros(100);

/// A fault ends a watch so much later: a client that connects again at once must not do so for ever in no time.
const END_DELAY: Duration = Duration::from_millis(100);

/// Starts a watch of the collection, or of the one object that the path names.
pub(crate) async fn watch(
    context: &Context,
    user_agent: String,
) -> Result<BoxStream<'static, Bytes>, ApiError> {
    let params = &context.params;
    let selection = Selection::parse(context, true)?;
    let store = &context.state().store;
    let asked = asked_revision(&params.resource_version)?;
    let send_initial = params.send_initial_events == Some(true);
    let from_anywhere = params.watch
        && params.send_initial_events.is_none()
        && params.resource_version_match.is_empty()
        && matches!(params.resource_version.as_str(), "" | "0");
    let without_initial = params.send_initial_events == Some(false);
    let namespace = Some(context.request.namespace.clone()).filter(|namespace| !namespace.is_empty());

    let scope = selection
        .scope()
        .or_else(|| namespace.clone().map(Scope::Namespace))
        .unwrap_or(Scope::All);
    let mut initial = Vec::new();
    let start = match asked {
        Some(revision) if revision.0 > 0 && !send_initial => revision,
        _ if without_initial => store.revision(),
        _ => {
            let table = context.table();
            let snapshot = match store.list_indexed(table, &scope, namespace.as_deref()) {
                Some(snapshot) => snapshot,
                None => store
                    .list(table, namespace.as_deref(), None, None)
                    .map_err(ApiError::expired)?,
            };
            initial = snapshot.items;
            snapshot.revision
        }
    };
    let encoder = Encoder::new(context);
    let now = Instant::now();
    let seconds = params.timeout_seconds.unwrap_or_else(|| {
        context
            .state()
            .random_between(DEFAULT_TIMEOUT_SECONDS_MIN, 2 * DEFAULT_TIMEOUT_SECONDS_MIN)
    });
    let deadline = now + Duration::from_secs(seconds);
    let started = store.watch(context.table(), scope, start, context.local.is_some());
    let watcher = match started {
        Ok(watcher) => watcher,
        // As of any other event, the client hears of it in the watch.
        Err(compacted) => {
            let failed = failed(&encoder, &ApiError::expired(compacted));
            return Ok(stream::once(async move { failed }).boxed());
        }
    };
    let asks = conversion::asks(&context.resource);
    let shares = context.local.is_none() && encoder.is_plain_json() && selection.is_everything() && !asks;
    let mut watch = Watch {
        server: context.server.clone(),
        request: context.request.clone(),
        user_agent,
        local: context.local.clone(),
        remote: context
            .is_remote
            .then(|| Remote::new(&context.server, &context.request, now)),
        watcher,
        asks,
        shares,
        selection,
        namespace,
        encoder,
        initial: Vec::new().into_iter(),
        initial_end: None,
        late: VecDeque::new(),
        bookmarks: params.allow_watch_bookmarks,
        next_bookmark: next_bookmark(now, deadline),
        bookmark_due: false,
        deadline,
        over: false,
    };
    if send_initial && let Err(error) = check_not_future(context, asked) {
        let failed = watch.failed(&error);
        return Ok(stream::once(async move { failed }).boxed());
    }
    if seconds == 0 {
        // Over before it begins.
        watch.over = true;
        initial.clear();
    }
    watch.selection.ready(&watch.server.state, &initial).await?;
    initial.retain(|stored| watch.selection.selects(stored));
    watch.ready(&initial).await?;
    watch.initial = initial.into_iter();
    // A watch that begins anywhere is sent what there is, as if that had been asked for.
    watch.initial_end =
        ((send_initial || from_anywhere) && params.allow_watch_bookmarks && !watch.over).then_some(start);
    Ok(stream::unfold(watch, |mut watch| async move {
        watch.some().await.map(|bytes| (bytes, watch))
    })
    .boxed())
}

/// When a watch is due for its next bookmark: the last one comes shortly before its end.
fn next_bookmark(now: Instant, deadline: Instant) -> Instant {
    let next = now + BOOKMARK_PERIOD;
    let last = deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
    last.map_or(next, |last| next.min(last))
}

/// The revision from which a watch is asked for.
///
/// # Errors
/// 400 for an invalid one: nothing has checked it before the watch begins.
fn asked_revision(text: &str) -> Result<Option<Revision>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", bad_version(text));
    text.parse().map(Some).map_err(wrong)
}

impl Watch {
    /// The next lines: the first, and those that are available by then, as one piece costs less. `None` when the watch is over.
    async fn some(&mut self) -> Option<Bytes> {
        if let Some(remote) = &self.remote {
            tokio::time::sleep_until(remote.next_sent).await;
        }
        let first = self.next().await?;
        // An error is the last.
        if self.encoder.is_for_lists() && !self.over {
            return None;
        }
        let sent = self.with_more(first);
        let all_sent = !self.has_more() && sent.len() < BATCH_BYTES;
        if let Some(remote) = self.remote.as_mut().filter(|_| all_sent) {
            remote.sends();
        }
        Some(sent)
    }

    /// A line and those that are there after it.
    fn with_more(&mut self, first: Bytes) -> Bytes {
        if self.local.is_some() || self.asks || !self.has_more() {
            return first;
        }
        let mut lines = first.to_vec();
        while lines.len() < SENT_BYTES && self.has_more() {
            // What nobody is asked about is there at once.
            match self.next().now_or_never() {
                Some(Some(line)) => lines.extend_from_slice(&line),
                _ => break,
            }
        }
        lines.into()
    }

    fn has_more(&self) -> bool {
        self.initial.len() > 0 || self.watcher.has_taken()
    }

    /// The next line; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(stored) = self.initial.next() {
                let line = self.line(EventKind::Added, &stored);
                return Some(self.send(line));
            }
            if let Some(revision) = self.initial_end.take() {
                return Some(self.bookmark(revision, true));
            }
            if self.over {
                return None;
            }
            if self.late.front().is_some_and(|late| late.due <= Instant::now())
                && let Some(late) = self.late.pop_front()
            {
                self.over |= late.last;
                match late.frame {
                    Some(frame) => return Some(self.send(frame)),
                    None => continue,
                }
            }
            let ends = self.late.back().is_some_and(|late| late.last);
            let shares = self.shares
                && self.late.is_empty()
                && !self.watcher.has_taken()
                && self.server.state.faults.is_idle();
            let told = match shares {
                true => self.watcher.try_text().map(|text| text.map(Told::Text)),
                false => self.watcher.try_next().map(|event| event.map(Told::Event)),
            };
            match told {
                Ok(Some(Told::Text(text))) => return Some(text),
                // What comes after its end it does not tell.
                Ok(Some(_)) if ends => continue,
                Ok(Some(Told::Event(event))) => {
                    if let Err(error) = self.ready_for(&event).await {
                        self.over = true;
                        return Some(self.failed(&error));
                    }
                    if let Some((kind, frame)) = self.translate(&event)
                        && let Some(frame) = self.meet_faults(kind, &event, frame)
                    {
                        return Some(self.send(frame));
                    }
                    continue;
                }
                // A bookmark says that all before it has been told.
                Ok(None) if self.late.is_empty() && std::mem::take(&mut self.bookmark_due) => {
                    return Some(self.bookmark(self.watcher.position(), false));
                }
                Ok(None) => {}
                Err(compacted) => {
                    self.over = true;
                    return Some(self.gone(compacted));
                }
            }
            let wake = if self.bookmarks {
                self.next_bookmark.min(self.deadline)
            } else {
                self.deadline
            };
            let due = self.late.front().map_or(wake, |late| wake.min(late.due));
            tokio::select! {
                biased;
                () = self.watcher.changed() => {}
                () = tokio::time::sleep_until(due) => {
                    let now = Instant::now();
                    if now < wake {
                        continue;
                    }
                    if now >= self.deadline {
                        self.over = true;
                        return None;
                    }
                    self.next_bookmark = next_bookmark(now, self.deadline);
                    // What does not concern it does not wake it: it looks how far it has seen all now.
                    self.bookmark_due = true;
                }
            }
        }
    }

    /// The event as this watch sees it: an object that comes to match is added, one that no longer does is deleted.
    fn translate(&self, event: &Arc<Event>) -> Option<(EventKind, Line)> {
        if self
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != event.object.key.namespace)
        {
            return None;
        }
        if self.selection.is_everything() {
            return Some((event.kind, self.unchanged(event)));
        }
        let matched = event
            .previous
            .as_ref()
            .is_some_and(|previous| self.selection.selects(previous));
        let matches = event.kind != EventKind::Deleted && self.selection.selects(&event.object);
        let kind = match (matched, matches) {
            (false, false) => return None,
            (false, true) => EventKind::Added,
            (true, true) => EventKind::Modified,
            (true, false) => EventKind::Deleted,
        };
        if kind == event.kind {
            return Some((kind, self.unchanged(event)));
        }
        // An object that left the selection is shown as it last was in it, at the revision at which it left.
        let frame = match (&event.previous, kind) {
            (Some(previous), EventKind::Deleted) if event.kind == EventKind::Modified => {
                let mut value = conversion::from_storage(self.encoder.resource(), previous.value.clone());
                machinery::meta::ObjectMeta::set_meta(
                    &mut value,
                    "resourceVersion",
                    event.revision.to_string(),
                );
                let shown = self.encoder.watched(&Shown::Made(value));
                Line::Text(self.encoder.frame("DELETED", &shown))
            }
            _ => self.line(kind, &event.object),
        };
        Some((kind, frame))
    }

    /// Applies faults to the event: gives the line that is to be sent now, if any.
    fn meet_faults(&mut self, kind: EventKind, event: &Event, frame: Line) -> Option<Line> {
        let asked = Asked {
            request: &self.request,
            user_agent: &self.user_agent,
        };
        let faults = &self.server.state.faults;
        let (after, frame, last) = match faults.of_event(&asked, kind.as_str(), &event.object.key) {
            EventFate::Sent(late) if late.is_zero() && self.late.is_empty() => return Some(frame),
            EventFate::Dropped => return None,
            EventFate::Sent(late) => (late, Some(frame), false),
            EventFate::Ended => (END_DELAY, None, true),
            EventFate::Expired => {
                let compacted = Compacted {
                    requested: self.watcher.position(),
                    compacted: event.revision,
                };
                (END_DELAY, Some(Line::Text(self.gone(compacted))), true)
            }
        };
        // What is late holds up what comes after it.
        let due = Instant::now() + after;
        let due = self.late.back().map_or(due, |before| due.max(before.due));
        self.late.push_back(Late { due, frame, last });
        None
    }

    /// The event as it is in the store.
    fn unchanged(&self, event: &Event) -> Line {
        if self.local.is_none() && self.encoder.is_plain_json() {
            return Line::Text(event.frame());
        }
        self.line(event.kind, &event.object)
    }

    /// The bytes of a line.
    fn send(&self, line: Line) -> Bytes {
        match (line, &self.local) {
            (Line::Text(bytes), _) => bytes,
            (Line::Object(event), Some(local)) => local.tell(event),
            // Lines with objects are made for local watches alone.
            (Line::Object(_), None) => Bytes::new(),
        }
    }

    fn line(&self, kind: EventKind, stored: &Arc<Stored>) -> Line {
        let object = match self.encoder.local_form() {
            Some(LocalForm::Whole)
                if self.local.is_some() && conversion::is_plain(self.encoder.resource(), stored.revision) =>
            {
                stored.local()
            }
            Some(LocalForm::Metadata(version)) if self.local.is_some() => stored.local_metadata(version),
            _ => return Line::Text(self.frame(kind, stored)),
        };
        Line::Object(match kind {
            EventKind::Deleted => LocalEvent::Gone(object),
            EventKind::Added | EventKind::Modified => LocalEvent::Present(object),
        })
    }

    fn frame(&self, kind: EventKind, stored: &Arc<Stored>) -> Bytes {
        self.encoder.frame(
            kind.as_str(),
            &self.encoder.watched(&Shown::Stored(Arc::clone(stored))),
        )
    }

    fn bookmark(&self, revision: Revision, ends_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = encode::bookmark(self.encoder.resource(), metadata);
        let object = self.encoder.watched(&Shown::Made(object));
        self.encoder.frame("BOOKMARK", &object)
    }

    /// Converts the objects that are to be shown, where a webhook does that.
    async fn ready(&self, stored: &[Arc<Stored>]) -> Result<(), ApiError> {
        conversion::ready(&self.server.state, self.encoder.resource(), stored).await
    }

    /// Converts the object of an event: if it may have left the selection, as it was before, too.
    async fn ready_for(&self, event: &Event) -> Result<(), ApiError> {
        if let Some(previous) = event
            .previous
            .as_ref()
            .filter(|_| !self.selection.is_everything())
        {
            self.ready(std::slice::from_ref(previous)).await?;
        }
        self.ready(std::slice::from_ref(&event.object)).await
    }

    fn gone(&self, compacted: Compacted) -> Bytes {
        self.failed(&ApiError::expired(compacted))
    }

    fn failed(&self, error: &ApiError) -> Bytes {
        failed(&self.encoder, error)
    }
}

/// The event that ends a watch.
fn failed(encoder: &Encoder, error: &ApiError) -> Bytes {
    encoder.frame("ERROR", shared_json::to_go_string(&error.to_status()).as_bytes())
}
