//! Functions that ask a cluster within an expression: `x_k8s_list($client, 'v1', 'Node')`.
//!
//! Expressions are evaluated without waiting for anything. A function that asks notes its question and fails; the caller then
//! gets the answers from the cluster, and evaluates again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use shared_json::Value;

/// The functions, how many texts follow the client in their arguments, and how many of these may be left out.
pub(super) const FUNCTIONS: [(&str, usize, usize); 5] = [
    ("x_k8s_exists", 4, 0),
    ("x_k8s_get", 4, 0),
    ("x_k8s_list", 3, 1),
    ("x_k8s_resource_exists", 2, 0),
    ("x_k8s_server_version", 0, 0),
];

/// One question: the function's name and the texts after the client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The function's name.
    pub function: String,
    /// Its arguments after the client.
    pub arguments: Vec<String>,
}

/// The questions of an evaluation, and the answers there are.
#[derive(Debug, Clone, Default)]
pub struct Questions(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    answers: BTreeMap<Question, Result<Value, String>>,
    open: Vec<Question>,
}

impl Questions {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets the answers: the cluster may have changed.
    pub fn forget(&self) {
        self.with(|state| *state = State::default());
    }

    /// Takes the questions that have no answer yet, in the order in which they were asked.
    #[must_use]
    pub fn take_open(&self) -> Vec<Question> {
        self.with(|state| std::mem::take(&mut state.open))
    }

    /// Notes an answer.
    pub fn answer(&self, question: Question, answer: Result<Value, String>) {
        self.with(|state| _ = state.answers.insert(question, answer));
    }

    /// The answer to a question. Without one it is noted as open.
    ///
    /// # Errors
    /// The cluster's refusal, or that there is no answer yet.
    pub(super) fn ask(&self, question: Question) -> Result<Value, String> {
        self.with(|state| {
            if let Some(answer) = state.answers.get(&question) {
                return answer.clone();
            }
            let why = format!("{}: the cluster was not asked", question.function);
            state.open.push(question);
            Err(why)
        })
    }
}
