//! The time of a served cluster: it can jump, and run faster than the machine's.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{Agenda, Due, Jumps, SharedClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use machinery::status::ApiError;
use server::{PageRequest, Server};
use shared_json::{Value, json};

use crate::Cluster;

/// The path of the clock: GET tells the time, POST lets it jump.
pub const CLOCK_PATH: &str = "/fake/clock";

/// The longest jump: a year.
const JUMP_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);
/// How long what is due at the end of a jump, and what follows from it at once, may take.
const REST: Duration = Duration::from_millis(1);
/// How often a faster clock is moved on.
const TICK: Duration = Duration::from_millis(10);
/// What is due is told to the nearest second.
const HALF_SECOND: Duration = Duration::from_millis(500);
/// How much of what is due next is told.
const NEXT_MAX: usize = 10;
/// How long the parts of the cluster may take to tell what they wait for.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How many times as fast as the machine's clock the cluster's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed(u32);

impl Default for Speed {
    fn default() -> Self {
        Self(1)
    }
}

impl std::str::FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = text.parse().ok().filter(|speed| (1..=10_000).contains(speed));
        read.map(Self)
            .ok_or_else(|| "a whole number from 1 to 10000 is expected".to_owned())
    }
}

/// The time of a cluster that is served on a runtime with one thread, whose clock runs.
#[derive(Clone)]
pub struct ClusterTime {
    clock: SharedClock,
    jumps: Arc<Jumps>,
    agenda: Agenda,
    speed: Speed,
}

impl ClusterTime {
    /// The time of this cluster, which is to run that fast.
    #[must_use]
    pub fn new(cluster: &Cluster, speed: Speed) -> Self {
        Self {
            clock: cluster.clock(),
            jumps: Arc::clone(cluster.server().jumps()),
            agenda: cluster.agenda().clone(),
            speed,
        }
    }

    /// Has the server answer at [`CLOCK_PATH`].
    pub fn publish(&self, server: &Server) {
        let time = self.clone();
        let page = move |request: PageRequest| {
            let time = time.clone();
            async move { time.answer(request).await }.boxed()
        };
        server.add_page(CLOCK_PATH, Arc::new(page));
    }

    /// Lets the clock run at its speed until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(self) {
        let further = self.speed.0.saturating_sub(1);
        if further == 0 {
            return std::future::pending().await;
        }
        let mut last = self.jumps.real_now();
        loop {
            self.jumps.real_sleep(TICK).await;
            let now = self.jumps.real_now();
            let passed = now.saturating_duration_since(last);
            last = now;
            if let Err(error) = self.jumps.by(passed.saturating_mul(further)).await {
                tracing::warn!(%error, "let the clock run faster");
                return;
            }
        }
    }

    async fn answer(&self, request: PageRequest) -> Result<Value, ApiError> {
        match request.method {
            Method::GET => Ok(self.status().await),
            Method::POST => {
                self.advance(jump_of(&request.body)?).await?;
                Ok(self.status().await)
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Lets time jump. What is due on the way has happened when this returns.
    ///
    /// # Errors
    /// On a runtime with several threads.
    pub async fn advance(&self, duration: Duration) -> Result<(), ApiError> {
        let jumped = self.jumps.by(duration + REST).await;
        jumped.map_err(|error| {
            let code = StatusCode::NOT_IMPLEMENTED;
            ApiError::new(code, "NotImplemented", error.to_string())
        })
    }

    /// The time, and what is due next.
    async fn status(&self) -> Value {
        let asked = self.jumps.real_timeout(ANSWER_MAX, self.agenda.ask()).await;
        let now = self.clock.now();
        let next: Vec<Value> = asked
            .unwrap_or_default()
            .into_iter()
            .take(NEXT_MAX)
            .map(|due| told(&due, now))
            .collect();
        let ahead = SignedDuration::try_from(self.jumps.jumped()).unwrap_or(SignedDuration::MAX);
        json!({
            "time": second(now).to_string(),
            "speed": self.speed.0,
            "ahead": format!("{:#}", SignedDuration::from_secs(ahead.as_secs())),
            "next": next,
        })
    }
}

fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn told(due: &Due, now: Timestamp) -> Value {
    let left = due.at.saturating_duration_since(tokio::time::Instant::now());
    // The two clocks are read one after the other: what is due at a full second seems to be due a moment earlier.
    let at = now.saturating_add(left + HALF_SECOND).unwrap_or(Timestamp::MAX);
    json!({"time": second(at).to_string(), "who": due.who, "what": due.what})
}

/// The jump that a request asks for: `{"advance": "5m"}`.
fn jump_of(body: &[u8]) -> Result<Duration, ApiError> {
    let refused = |why: &str| ApiError::bad_request(format!("advance: {why}"));
    let body: Value = shared_json::from_slice(body).map_err(|error| refused(&error.to_string()))?;
    let length = body.get("advance").and_then(Value::as_str);
    let length = length.ok_or_else(|| refused("the body is to be like {\"advance\": \"5m\"}"))?;
    let length: SignedDuration = length
        .parse()
        .map_err(|error: jiff::Error| refused(&error.to_string()))?;
    if length > JUMP_MAX {
        return Err(refused("time jumps by a year at most"));
    }
    Duration::try_from(length).map_err(|_| refused("time does not go back"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_moment_too_early(999_700, "1970-01-01T00:00:01Z")]
    #[case::a_moment_too_late(1_000_300, "1970-01-01T00:00:01Z")]
    #[case::soon(400_000, "1970-01-01T00:00:00Z")]
    #[tokio::test(start_paused = true)]
    async fn times_of_what_is_due(#[case] left_us: u64, #[case] expected: &str) {
        let due = Due {
            at: tokio::time::Instant::now() + Duration::from_micros(left_us),
            who: "w".to_owned(),
            what: "n/a".to_owned(),
        };
        assert_eq!(told(&due, Timestamp::UNIX_EPOCH)["time"], json!(expected));
    }

    #[rstest]
    #[case(r#"{"advance": "5m"}"#, Ok(300))]
    #[case(r#"{"advance": "1h30m"}"#, Ok(5400))]
    #[case(r#"{"advance": "0s"}"#, Ok(0))]
    #[case(r#"{"advance": "8784h"}"#, Ok(31_622_400))]
    #[case(r#"{"advance": "8785h"}"#, Err("advance: time jumps by a year at most"))]
    #[case(r#"{"advance": "-1s"}"#, Err("advance: time does not go back"))]
    #[case(
        r#"{"advance": 5}"#,
        Err("advance: the body is to be like {\"advance\": \"5m\"}")
    )]
    #[case("{}", Err("advance: the body is to be like {\"advance\": \"5m\"}"))]
    #[case("[]", Err("advance: the body is to be like {\"advance\": \"5m\"}"))]
    #[case(r#"{"advance": "soon"}"#, Err("advance: "))]
    #[case("", Err("advance: "))]
    fn jumps_that_are_asked_for(#[case] body: &str, #[case] expected: Result<u64, &str>) {
        match (jump_of(body.as_bytes()), expected) {
            (Ok(jump), Ok(seconds)) => assert_eq!(jump, Duration::from_secs(seconds)),
            (Err(error), Err(begin)) => {
                assert_eq!(error.code, StatusCode::BAD_REQUEST);
                assert!(error.message.starts_with(begin), "{}", error.message);
            }
            (got, _) => panic!("{got:?}"),
        }
    }

    #[rstest]
    #[case("1", true)]
    #[case("60", true)]
    #[case("10000", true)]
    #[case("0", false)]
    #[case("10001", false)]
    #[case("-1", false)]
    #[case("fast", false)]
    fn speeds(#[case] text: &str, #[case] is_one: bool) {
        assert_eq!(text.parse::<Speed>().is_ok(), is_one);
    }
}
