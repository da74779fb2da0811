//! The outcomes of the cases.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::compare::Difference;

/// How many differences of a step are shown unless all are asked for.
const SHOWN_MAX: usize = 12;

/// The outcome of one case.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `group/name`.
    pub id: String,
    /// The case's group.
    pub group: String,
    /// The result.
    pub result: CaseResult,
}

/// The result of playing a case.
#[derive(Debug, Clone)]
pub enum CaseResult {
    /// It was answered as it was recorded.
    Passed,
    /// It was not; a title and the differences of each such step.
    Failed(Vec<(String, Vec<Difference>)>),
    /// It could not be played.
    Broken(String),
    /// It was not played, and why.
    Skipped(String),
}

/// How many passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answered as recorded.
    pub passed: usize,
    /// Not so.
    pub failed: usize,
    /// Not played.
    pub skipped: usize,
}

impl Counts {
    /// Counts outcomes.
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            match outcome.result {
                CaseResult::Passed => counts.passed += 1,
                CaseResult::Failed(_) | CaseResult::Broken(_) => counts.failed += 1,
                CaseResult::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }
}

impl Outcome {
    /// Whether it was played and not answered as recorded.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self.result, CaseResult::Failed(_) | CaseResult::Broken(_))
    }
}

/// Tells of the cases that failed (all with `verbose`, and then every difference), then a table by group, then the totals.
pub(super) fn tell(outcomes: &[Outcome], verbose: bool, quiet: bool, out: &mut dyn Write) -> io::Result<()> {
    for outcome in outcomes {
        let id = &outcome.id;
        match &outcome.result {
            CaseResult::Passed if verbose => writeln!(out, "ok   {id}")?,
            CaseResult::Skipped(why) if verbose => writeln!(out, "skip {id}: {why}")?,
            CaseResult::Broken(why) if !quiet => writeln!(out, "FAIL {id}: failed to {why}")?,
            CaseResult::Failed(steps) if !quiet => {
                writeln!(out, "FAIL {id}")?;
                for (title, differences) in steps {
                    writeln!(out, "   {title}")?;
                    let shown = if verbose { usize::MAX } else { SHOWN_MAX };
                    for difference in differences.iter().take(shown) {
                        writeln!(out, "    {difference}")?;
                    }
                    if let Some(more) = differences.len().checked_sub(shown).filter(|more| *more > 0) {
                        writeln!(out, "    … {more} more")?;
                    }
                }
            }
            _ => {}
        }
    }
    let mut groups: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in outcomes {
        groups.entry(&outcome.group).or_default().push(outcome);
        if let CaseResult::Failed(steps) = &outcome.result {
            let mut differing: Vec<&str> = steps
                .iter()
                .flat_map(|(_, found)| found)
                .map(Difference::kind)
                .collect();
            differing.sort_unstable();
            differing.dedup();
            *kinds.entry(differing.join("+")).or_default() += 1;
        }
    }
    let width = groups
        .keys()
        .map(|group| group.len())
        .max()
        .unwrap_or_default()
        .max("group".len());
    writeln!(
        out,
        "\n{:width$} {:>7} {:>7} {:>7}",
        "group", "passed", "failed", "skipped"
    )?;
    for (group, outcomes) in &groups {
        let counts = Counts::of(outcomes.iter().copied());
        writeln!(
            out,
            "{group:width$} {:>7} {:>7} {:>7}",
            counts.passed, counts.failed, counts.skipped
        )?;
    }
    if !kinds.is_empty() {
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        writeln!(out, "\nfailures by what differs: {}", kinds.join(", "))?;
    }
    let counts = Counts::of(outcomes);
    writeln!(
        out,
        "\n{} passed, {} failed, {} skipped",
        counts.passed, counts.failed, counts.skipped
    )
}
