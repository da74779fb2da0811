//! Work that waits for its time in a program: an [`Agenda`] asks all parts that take part.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Something that happens by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// When.
    pub at: Instant,
    /// The part of the program that does it.
    pub who: String,
    /// The object that it does it to.
    pub what: String,
}

/// Where an answer goes.
type Answer = oneshot::Sender<Vec<Due>>;

/// Asks the parts of a program for the work that waits for its time there. Clones ask the same parts.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use client_kit::{Agenda, Due};
///
/// let agenda = Agenda::default();
/// let mut desk = agenda.desk();
/// let due = Due { at: tokio::time::Instant::now(), who: "a".to_owned(), what: "b".to_owned() };
/// let told = vec![due.clone()];
/// let part = async { desk.asked().await.send(told).is_ok() };
/// assert_eq!(tokio::join!(agenda.ask(), part), (vec![due], true));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Agenda(Arc<Mutex<Vec<mpsc::UnboundedSender<Answer>>>>);

impl Agenda {
    /// A place for a further part, which must answer there as soon as it is asked.
    #[must_use]
    pub fn desk(&self) -> Desk {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push(sender);
        Desk(Some(receiver))
    }

    /// The waiting work of all parts, in the order of its time.
    pub async fn ask(&self) -> Vec<Due> {
        let answers: Vec<_> = {
            let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            parts.retain(|part| !part.is_closed());
            let ask = |part: &mpsc::UnboundedSender<Answer>| {
                let (sender, receiver) = oneshot::channel();
                part.send(sender).is_ok().then_some(receiver)
            };
            parts.iter().filter_map(ask).collect()
        };
        let mut all = Vec::new();
        for answer in answers {
            // A part may have ended meanwhile.
            all.extend(answer.await.unwrap_or_default());
        }
        all.sort();
        all
    }
}

/// The place where a part of a program is asked for its waiting work. The default one is never asked.
#[derive(Default)]
pub struct Desk(Option<mpsc::UnboundedReceiver<Answer>>);

impl Desk {
    /// Waits until somebody asks. Nothing is lost if the wait is given up.
    pub async fn asked(&mut self) -> Answer {
        if let Some(receiver) = &mut self.0
            && let Some(answer) = receiver.recv().await
        {
            return answer;
        }
        std::future::pending().await
    }
}
