//! The cost of running an expression, as the real server counts it, and the limits beyond which it stops.
//!
//! Counting is slower than evaluating. So the most that an expression can cost is looked up first, by the sizes of its variables;
//! only where that may be too much is it counted, part by part: the interpreter evaluates each part with the values of the parts
//! inside of it.
//!
//! `most` is the look at sizes, `meter` counts, `costs` has the costs of calls.

mod costs;
mod meter;
mod most;

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::{Context, Value};

use meter::Meter;
use most::{Sizes, most};

/// The most that one run of an expression may cost.
pub const CALL_MAX: u64 = 1_000_000;
/// The most that all rules may cost for one object, or all validations of a policy for one request.
pub const BUDGET: u64 = 10_000_000;

/// The rest of the costs that several expressions may have together.
#[derive(Debug, Clone)]
pub struct Budget {
    left: u64,
    /// The most that expressions may have cost that were not counted.
    assumed: u64,
    /// Whether every expression is counted.
    counts: bool,
}

/// The limit at which an expression was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// That of one expression.
    Call,
    /// That of all together.
    Budget,
}

impl Budget {
    /// A budget whose expressions are counted only where one of them may be too expensive.
    #[must_use]
    pub fn assuming() -> Self {
        Self {
            left: BUDGET,
            assumed: 0,
            counts: false,
        }
    }

    /// A budget whose expressions are all counted.
    #[must_use]
    pub fn counting() -> Self {
        Self {
            counts: true,
            ..Self::assuming()
        }
    }

    /// Whether the expressions that were not counted may have cost too much together: then all are to be run again and counted.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        !self.counts && self.assumed > self.left
    }

    /// Takes the cost of an expression, before it is evaluated.
    pub(super) fn take(
        &mut self,
        tree: &IdedExpr,
        context: &Context<'_>,
        variables: &[(&str, Value)],
    ) -> Result<(), Overrun> {
        if self.left == 0 {
            return Err(Overrun::Budget);
        }
        let most = most(tree, &Sizes::of(variables));
        if !self.counts && most <= CALL_MAX {
            self.assumed = self.assumed.saturating_add(most);
            return Ok(());
        }
        let mut meter = Meter { spent: 0 };
        // One that has no value has its cost up to where it fails.
        let _value = meter.run(tree, context);
        if meter.spent > self.left {
            self.left = 0;
            return Err(Overrun::Budget);
        }
        self.left -= meter.spent;
        match meter.spent > CALL_MAX {
            true => Err(Overrun::Call),
            false => Ok(()),
        }
    }
}
