//! The next step, by the states of the containers of a request.

use super::states::{NOT_FOUND, phase};
use crate::api::v1alpha1::{ContainerRecreateState, RecreateStrategy};

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The container at this place is stopped.
    Kill(usize),
    /// Something is waited for.
    Wait,
    /// The request has ended.
    Complete,
}

/// Whether a container that cannot be stopped is passed over.
fn ignores(strategy: &RecreateStrategy) -> bool {
    strategy.failure_policy.as_deref() == Some("Ignore")
}

/// Walks the containers in their order. One that is being recreated counts as killed, whoever ended it.
pub(super) fn walk(states: &mut [ContainerRecreateState], strategy: &RecreateStrategy) -> Verdict {
    let mut all_are_done = true;
    for (place, state) in states.iter_mut().enumerate() {
        match &*state.phase {
            phase::SUCCEEDED => {}
            phase::FAILED if ignores(strategy) => {}
            phase::FAILED => return Verdict::Complete,
            phase::RECREATING => {
                state.is_killed = true;
                all_are_done = false;
                if strategy.ordered_recreate == Some(true) {
                    return Verdict::Wait;
                }
            }
            _ if state.message == NOT_FOUND => return Verdict::Wait,
            _ => return Verdict::Kill(place),
        }
    }
    match all_are_done {
        true => Verdict::Complete,
        false => Verdict::Wait,
    }
}

/// Writes down how the stop of a container went. Whether the walk goes on.
pub(super) fn note<E: std::fmt::Display>(
    state: &mut ContainerRecreateState,
    stopped: Result<(), E>,
    strategy: &RecreateStrategy,
) -> bool {
    match stopped {
        Ok(()) => {
            phase::RECREATING.clone_into(&mut state.phase);
            state.is_killed = true;
            false
        }
        Err(error) => {
            phase::FAILED.clone_into(&mut state.phase);
            state.message = format!("kill container error: {error}");
            ignores(strategy)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The states in a word each: `P`, `N` (not on the node), `R`, `S`, `F`, with `*` for killed.
    fn states(words: &str) -> Vec<ContainerRecreateState> {
        let one = |word: &str| ContainerRecreateState {
            name: "c".to_owned(),
            phase: match &word[..1] {
                "P" | "N" => phase::PENDING,
                "R" => phase::RECREATING,
                "S" => phase::SUCCEEDED,
                _ => phase::FAILED,
            }
            .to_owned(),
            message: if word.starts_with('N') {
                NOT_FOUND.to_owned()
            } else {
                String::new()
            },
            is_killed: word.ends_with('*'),
        };
        words.split_whitespace().map(one).collect()
    }

    fn shown(states: &[ContainerRecreateState]) -> String {
        let one = |state: &ContainerRecreateState| {
            let letter = if state.message == NOT_FOUND {
                "N"
            } else {
                &state.phase[..1]
            };
            format!("{letter}{}", if state.is_killed { "*" } else { "" })
        };
        states.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn strategy(value: &Value) -> RecreateStrategy {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn ordered() -> Value {
        json!({ "orderedRecreate": true })
    }

    fn ignore() -> Value {
        json!({ "failurePolicy": "Ignore" })
    }

    #[rstest]
    #[case::first("P P", json!({}), Verdict::Kill(0), "P P")]
    #[case::second_in_the_next_pass("R* P", json!({}), Verdict::Kill(1), "R* P")]
    #[case::second_waits("R* P", ordered(), Verdict::Wait, "R* P")]
    #[case::second_after_the_first("S* P", ordered(), Verdict::Kill(1), "S* P")]
    #[case::ended_by_itself("R", json!({}), Verdict::Wait, "R*")]
    #[case::all_run_again("S* S", json!({}), Verdict::Complete, "S* S")]
    #[case::not_on_the_node("N P", json!({}), Verdict::Wait, "N P")]
    #[case::failed("F P", json!({ "failurePolicy": "Fail" }), Verdict::Complete, "F P")]
    #[case::failed_without_a_policy("F P", json!({}), Verdict::Complete, "F P")]
    #[case::failure_is_ignored("F P", ignore(), Verdict::Kill(1), "F P")]
    #[case::failure_was_ignored("F S*", ignore(), Verdict::Complete, "F S*")]
    #[case::failure_after_one_that_runs_again("R* F", ignore(), Verdict::Wait, "R* F")]
    fn rows(#[case] words: &str, #[case] rules: Value, #[case] expect: Verdict, #[case] after: &str) {
        let mut states = states(words);
        assert_eq!(walk(&mut states, &strategy(&rules)), expect);
        assert_eq!(shown(&states), after);
    }

    /// How a stop went, and whether the walk goes on.
    #[rstest]
    #[case::stopped(Ok(()), json!({}), false, "R*", "")]
    #[case::failed(Err("no"), json!({}), false, "F", "kill container error: no")]
    #[case::ignored(Err("no"), ignore(), true, "F", "kill container error: no")]
    fn stops(
        #[case] stopped: Result<(), &str>,
        #[case] rules: Value,
        #[case] goes_on: bool,
        #[case] after: &str,
        #[case] message: &str,
    ) {
        let mut states = states("P");
        assert_eq!(note(&mut states[0], stopped, &strategy(&rules)), goes_on);
        assert_eq!((&*shown(&states), &*states[0].message), (after, message));
    }
}
