//! The state of a probe: the sum of its answers.

use k8s_openapi::api::core::v1::Probe;

/// The longest text of a result (OpenKruise: 1024 bytes).
const MESSAGE_BYTES_MAX: usize = 1024;

/// A result as the status has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Nothing is known yet of this container.
    #[default]
    Unknown,
    /// The probe succeeds.
    Succeeded,
    /// The probe fails.
    Failed,
}

impl State {
    /// The word in the status.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

/// How often in a row a probe has given its last answer, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Count {
    last: Option<bool>,
    in_a_row: i32,
    /// The result.
    pub(super) state: State,
    /// The text of the result.
    pub(super) message: String,
}

impl Count {
    /// Takes an answer of a probe: whether it succeeded, and its text.
    pub(super) fn answer(&mut self, probe: &Probe, succeeded: bool, message: &str) {
        self.in_a_row = match self.last == Some(succeeded) {
            true => self.in_a_row.saturating_add(1),
            false => 1,
        };
        self.last = Some(succeeded);
        let (threshold, state) = match succeeded {
            true => (probe.success_threshold, State::Succeeded),
            false => (probe.failure_threshold, State::Failed),
        };
        if self.in_a_row >= threshold.unwrap_or_default().max(1) {
            self.set(state, message);
        }
    }

    /// Sets the result.
    pub(super) fn set(&mut self, state: State, message: &str) {
        self.state = state;
        let mut end = message.len().min(MESSAGE_BYTES_MAX);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        self.message = message.get(..end).unwrap_or_default().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The thresholds of success and failure, the answers (`S`, `F`), and the result.
    #[rstest]
    #[case::below((1, 3), "SFF", State::Succeeded)]
    #[case::reached((1, 3), "SFFF", State::Failed)]
    #[case::back((1, 3), "FFFS", State::Succeeded)]
    #[case::interrupted((1, 3), "FFSFF", State::Succeeded)]
    #[case::not_yet((2, 1), "S", State::Unknown)]
    #[case::two_successes((2, 1), "FSS", State::Succeeded)]
    #[case::no_thresholds((0, 0), "F", State::Failed)]
    #[case::negative((-1, -1), "S", State::Succeeded)]
    fn thresholds(#[case] numbers: (i32, i32), #[case] answers: &str, #[case] expect: State) {
        let probe = Probe {
            success_threshold: Some(numbers.0),
            failure_threshold: Some(numbers.1),
            ..Probe::default()
        };
        let mut count = Count::default();
        for answer in answers.chars() {
            count.answer(&probe, answer == 'S', "");
        }
        assert_eq!(count.state, expect);
    }

    #[rstest]
    #[case::short("ok", "ok")]
    #[case::long(&"a".repeat(2000), &"a".repeat(1024))]
    #[case::in_the_middle_of_a_letter(&format!("{}ä", "a".repeat(1023)), &"a".repeat(1023))]
    fn messages(#[case] message: &str, #[case] expect: &str) {
        let mut count = Count::default();
        count.set(State::Failed, message);
        assert_eq!(count.message, expect);
    }
}
