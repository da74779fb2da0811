//! The ordinals that a set has: creates the pods that are missing, and looks after those that are there.

use std::sync::Arc;

use serde_json::json;

use super::pass::Part;
use super::view::{Slot, View, is_terminating};
use super::{Action, claims};
use crate::api::labels;
use crate::pods::refresh;
use crate::pods::{CachedPod, PodAction, PodRef};
use crate::pods::{pod, removal};

/// How a slot leaves the loop.
#[derive(PartialEq, Eq)]
enum Then {
    /// On to the next.
    Next,
    /// No further slot; the pass goes on.
    Break,
    /// The pass ends if the set's pods come and go one by one; otherwise the next.
    Exit,
}

/// Plans the slots, lowest ordinal first.
pub(super) fn plan(view: &View<'_>) -> Part {
    let mut walk = Walk {
        view,
        budget: view.settings.scale_max_unavailable,
        part: Part::default(),
    };
    for slot in &view.slots {
        let then = match &slot.pod {
            Err(which) => {
                if claims::is_stale(view, slot.ordinal) {
                    Then::Exit
                } else {
                    walk.part.actions.push(Action::Create {
                        ordinal: slot.ordinal,
                        revision: *which,
                    });
                    walk.exit_or_spend()
                }
            }
            Ok(pod) => walk.existing(slot, pod),
        };
        match then {
            Then::Next => {}
            Then::Break => break,
            Then::Exit if view.settings.ordered => {
                walk.part.ends = true;
                break;
            }
            Then::Exit => {}
        }
    }
    walk.part
}

struct Walk<'a> {
    view: &'a View<'a>,
    /// How many more pods may be unavailable, if that is limited.
    budget: Option<i32>,
    part: Part,
}

impl Walk<'_> {
    /// Takes one off the budget.
    fn spend(&mut self) -> Then {
        let Some(budget) = &mut self.budget else {
            return Then::Next;
        };
        *budget -= 1;
        if *budget <= 0 { Then::Break } else { Then::Next }
    }

    fn exit_or_spend(&mut self) -> Then {
        if self.view.settings.ordered {
            Then::Exit
        } else {
            self.spend()
        }
    }

    fn existing(&mut self, slot: &Slot, pod: &Arc<CachedPod>) -> Then {
        let view = self.view;
        if matches!(pod::phase(pod), "Failed" | "Succeeded") {
            if !is_terminating(pod) {
                let removal = removal::plan(pod, view.pre_delete(), Vec::new(), view.now());
                self.part.act(removal);
            }
            return self.exit_or_spend();
        }
        if pod::phase(pod) == "Pending" && !is_terminating(pod) {
            if claims::some_missing(view, slot.ordinal) {
                self.part.actions.push(Action::CreateClaims {
                    ordinal: slot.ordinal,
                });
            }
            self.part.act(claims::owners(view, slot.ordinal, pod, false));
        }
        if is_terminating(pod) {
            match self.exit_or_spend() {
                Then::Next => {}
                then => return then,
            }
        }
        let refreshed = refresh::plan(&view.care(std::slice::from_ref(pod)));
        self.part.act(refreshed.actions);
        self.part.look_again(refreshed.requeue);
        if (view.settings.ordered || self.budget.is_some()) && !view.is_available(pod) {
            let then = self.exit_or_spend();
            if then != Then::Next {
                self.part.look_again(view.wait_of(pod));
                return then;
            }
        }
        if !is_terminating(pod) {
            self.part.actions.extend(identity(pod));
            self.part.act(claims::owners(view, slot.ordinal, pod, false));
        }
        Then::Next
    }
}

/// Puts the label of its name back on a pod.
fn identity(pod: &Arc<CachedPod>) -> Option<Action> {
    let name = pod::name(pod);
    if pod::label(pod, labels::ORDINAL_NAME) == Some(name) {
        return None;
    }
    Some(Action::Identify {
        patch: PodAction::PatchPod {
            pod: PodRef::of(pod),
            patch: json!({ "metadata": { "labels": { labels::ORDINAL_NAME: name } } }).into(),
        },
        name: name.to_owned(),
    })
}
