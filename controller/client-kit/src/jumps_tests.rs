//! On a clock that runs: jumps take no time to speak of.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
/// Less than any of the times that are jumped over here.
const SHORT: Duration = Duration::from_secs(20);

/// How much time passes on tokio's clock, without and with the jumps.
async fn measured<T>(jumps: &Jumps, work: impl Future<Output = T>) -> (Duration, Duration, T) {
    let (begin, real) = (Instant::now(), jumps.real_now());
    let done = work.await;
    (jumps.real_now() - real, begin.elapsed(), done)
}

#[tokio::test]
async fn what_is_due_on_the_way_happens_in_its_order_at_its_time() {
    let jumps = Arc::new(Jumps::default());
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    for minutes in [30, 10, 20, 90] {
        let sender = sender.clone();
        tokio::spawn(async move {
            let begin = Instant::now();
            tokio::time::sleep(Duration::from_secs(minutes * 60)).await;
            let _ = sender.send((minutes, begin.elapsed().as_secs() / 60));
        });
    }
    tokio::task::yield_now().await;
    let (real, passed, done) = measured(&jumps, jumps.by(HOUR)).await;
    assert_eq!(done, Ok(()));
    assert!(
        real < SHORT && passed >= HOUR && passed < HOUR + SHORT,
        "{real:?} {passed:?}"
    );
    let mut order = Vec::new();
    while let Ok(one) = seen.try_recv() {
        order.push(one);
    }
    assert_eq!(order, [(10, 10), (20, 20), (30, 30)]);
    assert!(jumps.jumped() >= HOUR);
}

#[tokio::test]
async fn a_wait_on_the_real_clock_is_not_over_after_a_jump() {
    let jumps = Arc::new(Jumps::default());
    let done = Arc::new(AtomicUsize::new(0));
    for sleep in [
        jumps.real_sleep(HOUR),
        jumps.real_sleep(Duration::from_millis(50)),
    ] {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            sleep.await;
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    tokio::task::yield_now().await;
    jumps.by(HOUR * 3).await.expect("to jump");
    assert_eq!(done.load(Ordering::Relaxed), 0);
    // The short one is over in its own time.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(done.load(Ordering::Relaxed), 1);
    let late = jumps
        .real_timeout(Duration::from_millis(1), std::future::pending::<()>())
        .await;
    assert_eq!(late, None);
    assert_eq!(jumps.real_timeout(HOUR, async { 7 }).await, Some(7));
}

/// While another program works, no time is jumped over: a limit of ten seconds for it is not reached.
#[tokio::test]
async fn the_clock_stands_while_another_program_works() {
    let jumps = Arc::new(Jumps::default());
    let (sender, mut told) = tokio::sync::oneshot::channel();
    let other = Arc::clone(&jumps);
    let call = async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let _outside = other.outside();
        let begin = Instant::now();
        // Another thread stands for another program: it answers after 50 ms, whatever this program's clock says.
        let (answer, answered) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(50));
            let _ = answer.send(());
        });
        let answered = tokio::time::timeout(Duration::from_secs(10), answered).await;
        let _ = sender.send((answered.is_ok(), begin.elapsed()));
    };
    tokio::spawn(call);
    tokio::task::yield_now().await;
    jumps.by(HOUR).await.expect("to jump");
    let (answered, took) = told.try_recv().expect("the call's end");
    assert!(answered && took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_jump_that_is_given_up_leaves_the_clock_running() {
    let jumps = Arc::new(Jumps::default());
    let given_up = tokio::time::timeout(Duration::from_secs(60), jumps.by(HOUR)).await;
    assert!(given_up.is_err());
    let jumped = jumps.jumped();
    assert!(jumped >= Duration::from_secs(59) && jumped < HOUR, "{jumped:?}");
    jumps.by(HOUR).await.expect("to jump");
    assert!(jumps.jumped() - jumped < HOUR + SHORT);
}
