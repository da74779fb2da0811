//! Histories of PodUnavailableBudgets, of which many clients ask at once.

mod judge;
mod pod;
mod wish;

pub(super) use wish::BudgetWish;
