//! The pace at which a status is written.

use std::time::Duration;

use tokio::time::Instant;

/// How long a write costs (OpenKruise: half a write a second).
const COST: Duration = Duration::from_secs(2);
/// How many writes may come at once.
const BURST: u32 = 5;

/// Allows so many writes at once, and one after each while after that.
#[derive(Debug)]
pub(super) struct Pace {
    /// When all writes so far are paid for.
    paid: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { paid: Instant::now() }
    }

    /// Whether there may be a write now. If so it counts.
    pub(super) fn allows(&mut self) -> bool {
        let now = Instant::now();
        let paid = self.paid.max(now) + COST;
        let is_allowed = paid <= now + COST * BURST;
        if is_allowed {
            self.paid = paid;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn five_at_once_and_then_one_every_two_seconds() {
        let mut pace = Pace::new();
        let allowed = |pace: &mut Pace| (0..10).take_while(|_| pace.allows()).count();
        assert_eq!(allowed(&mut pace), 5);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(allowed(&mut pace), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(allowed(&mut pace), 1);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(allowed(&mut pace), 5);
    }
}
