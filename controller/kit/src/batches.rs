//! Slow start: requests in batches that double, so that few fail should something be wrong with all of them.

use std::future::Future;

use futures::future::join_all;
use futures::stream::{FuturesOrdered, StreamExt};

/// The size of the first batch; each further one is twice as large.
const FIRST_BATCH: usize = 1;
/// How many requests of a batch wait for an answer at once, so that those of other objects are not behind thousands of them.
const AT_ONCE: usize = 64;

/// Whether a failure stops the batches after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Begin no further batch.
    Stop,
    /// Go on.
    GoOn,
}

/// Has `act` done for each item, a batch at a time. Gives the results in the order of the items; there are fewer of them than
/// items if a failure has stopped it.
pub async fn in_batches<'a, T, O, E, F>(
    items: &'a [T],
    on_failure: OnFailure,
    act: impl Fn(&'a T) -> F,
) -> Vec<Result<O, E>>
where
    F: Future<Output = Result<O, E>>,
{
    let mut results = Vec::with_capacity(items.len());
    let mut rest = items;
    let mut size = FIRST_BATCH;
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(size.min(rest.len()));
        let done = together(batch, &act).await;
        let failed = done.iter().any(Result::is_err);
        results.extend(done);
        if failed && on_failure == OnFailure::Stop {
            break;
        }
        rest = after;
        size *= 2;
    }
    results
}

/// Has `act` done for all items, for [`AT_ONCE`] of them at a time. Gives the results in the order of the items.
pub async fn together<'a, T, O, F>(items: &'a [T], act: impl Fn(&'a T) -> F) -> Vec<O>
where
    F: Future<Output = O>,
{
    if items.len() <= AT_ONCE {
        return join_all(items.iter().map(act)).await;
    }
    // A request occupies kilobytes as soon as it is made, so it is made when its turn comes.
    let mut waiting = items.iter();
    let mut running: FuturesOrdered<F> = waiting.by_ref().take(AT_ONCE).map(&act).collect();
    let mut results = Vec::with_capacity(items.len());
    while let Some(result) = running.next().await {
        results.push(result);
        running.extend(waiting.next().map(&act));
    }
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use rstest::rstest;
    use tokio::time::Instant;

    use super::*;

    /// Each item takes a second: the seconds at which they begin, where item `fails` fails.
    #[rstest]
    #[case(7, 99, OnFailure::Stop, &[0, 1, 1, 2, 2, 2, 2])]
    #[case(4, 99, OnFailure::GoOn, &[0, 1, 1, 2])]
    #[case(7, 1, OnFailure::Stop, &[0, 1, 1])]
    #[case(7, 1, OnFailure::GoOn, &[0, 1, 1, 2, 2, 2, 2])]
    #[case(7, 0, OnFailure::Stop, &[0])]
    #[case(0, 0, OnFailure::Stop, &[])]
    #[case(200, 999, OnFailure::Stop, &[&[0][..], &[1; 2], &[2; 4], &[3; 8], &[4; 16], &[5; 32], &[6; 64], &[7; 64], &[8; 9]].concat())]
    #[tokio::test(start_paused = true)]
    async fn batches(
        #[case] count: usize,
        #[case] fails: usize,
        #[case] on: OnFailure,
        #[case] want: &[u64],
    ) {
        let (began, starts) = (Instant::now(), Mutex::new(Vec::new()));
        let items: Vec<usize> = (0..count).collect();
        let results = in_batches(&items, on, |&item| {
            let starts = &starts;
            async move {
                starts.lock().unwrap().push(began.elapsed().as_secs());
                tokio::time::sleep(Duration::from_secs(1)).await;
                if item == fails { Err(item) } else { Ok(item) }
            }
        })
        .await;
        assert_eq!(starts.into_inner().unwrap(), want);
        let items: Vec<usize> = results
            .iter()
            .map(|result| result.unwrap_or_else(|item| item))
            .collect();
        assert_eq!(items, (0..want.len()).collect::<Vec<_>>());
    }

    #[rstest]
    #[case(AT_ONCE)]
    #[case(AT_ONCE + 1)]
    #[case(1_000)]
    #[tokio::test(start_paused = true)]
    async fn a_request_is_made_when_its_turn_comes(#[case] count: usize) {
        let items: Vec<usize> = (0..count).collect();
        let unanswered = Mutex::new(0);
        let results = together(&items, |item| {
            *unanswered.lock().unwrap() += 1;
            let unanswered = &unanswered;
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut unanswered = unanswered.lock().unwrap();
                let most = *unanswered;
                *unanswered -= 1;
                (*item, most)
            }
        });
        let results = results.await;
        assert!(results.iter().all(|(_, most)| *most <= AT_ONCE));
        assert!(
            results
                .into_iter()
                .map(|(item, _)| item)
                .eq(items.iter().copied())
        );
    }
}
