//! Objects in the versions of their owners, where a webhook converts.
//!
//! The tracker of managed fields cannot wait. It notes the conversions that it lacks, and is called again after the webhook has
//! answered.

use std::sync::{Mutex, PoisonError};

use shared_json::Value;

use super::webhook::{convert, hook};
use crate::resources::Resource;
use crate::server::ServerState;

/// The conversions that a request has asked of its webhook, and those that it lacks.
#[derive(Debug, Default)]
pub(crate) struct Asked(Mutex<Questions>);

#[derive(Debug, Default)]
struct Questions {
    open: Vec<(Value, String)>,
    answered: Vec<(Value, String, Result<Value, String>)>,
}

impl Asked {
    /// The object in another version, if that is known; otherwise it will be asked for, and until then is an error.
    pub(crate) fn answer(&self, object: &Value, version: &str) -> Result<Value, String> {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = questions
            .answered
            .iter()
            .find(|(asked, wanted, _)| wanted == version && asked == object);
        if let Some((_, _, answer)) = known {
            return answer.clone();
        }
        questions.open.push((object.clone(), version.to_owned()));
        Err("not asked yet".to_owned())
    }

    fn take_open(&self) -> Vec<(Value, String)> {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut questions.open)
    }

    fn know(&self, object: Value, version: String, answer: Result<Value, String>) {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        questions.answered.push((object, version, answer));
    }
}

/// Whether owners in other versions are a webhook's concern.
pub(crate) fn asks(resource: &Resource) -> bool {
    hook(resource).is_some()
}

/// Asks the webhook of a resource for the missing conversions. False if none is missing.
pub(crate) async fn ask(state: &ServerState, resource: &Resource, asked: &Asked) -> bool {
    let open = asked.take_open();
    let Some(hook) = hook(resource).filter(|_| !open.is_empty()) else {
        return false;
    };
    for (object, version) in open {
        let answer = convert(state, hook, &[&object], &version, false).await;
        let answer = answer.map_err(|error| error.message).and_then(|converted| {
            let first = converted.into_iter().next();
            first.ok_or_else(|| "the webhook gave nothing back".to_owned())
        });
        asked.know(object, version, answer);
    }
    true
}
