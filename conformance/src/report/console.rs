//! The report as a person reads it.

use std::io::{self, Write};

use super::Totals;
use crate::run::outcome::{ScenarioOutcome, Status, StepOutcome};

/// How much is shown of a play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Nothing, unless it failed.
    Failure,
    /// A line, and the failures.
    Line,
    /// Each step, without the events of pods.
    Steps,
    /// Each step whole.
    Everything,
}

/// Writes to a terminal, or to a file without colours.
pub struct Console<W> {
    out: W,
    colour: bool,
    detail: Detail,
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";
const DIM: &str = "2";

impl<W: Write> Console<W> {
    /// A console.
    pub fn new(out: W, colour: bool, detail: Detail) -> Self {
        Self { out, colour, detail }
    }

    fn shows_steps(&self) -> bool {
        matches!(self.detail, Detail::Steps | Detail::Everything)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Announces a scenario.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn scenario(&mut self, name: &str, description: &str) -> io::Result<()> {
        if !self.shows_steps() {
            return Ok(());
        }
        writeln!(self.out, "{}", self.paint(BOLD, &format!("=== {name}")))?;
        for line in description.trim().lines() {
            writeln!(self.out, "{}", self.paint(DIM, &format!("    {}", line.trim())))?;
        }
        writeln!(self.out)
    }

    /// Shows a step.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn step(&mut self, step: &StepOutcome) -> io::Result<()> {
        if !self.shows_steps() {
            return Ok(());
        }
        writeln!(self.out, "{}", self.paint(BOLD, &format!("--- {}", step.name)))?;
        for command in &step.commands {
            let sign = if command.starts_with('#') { "" } else { "$ " };
            writeln!(self.out, "{sign}{command}")?;
        }
        writeln!(self.out)?;
        if self.detail == Detail::Everything || step.status == Status::Failed {
            writeln!(self.out, "{}", step.text)?;
        } else {
            writeln!(self.out, "{}", without_events_of_pods(&step.text))?;
        }
        self.verdict(step)
    }

    fn verdict(&mut self, step: &StepOutcome) -> io::Result<()> {
        if step.status == Status::Failed {
            writeln!(self.out, "{}", self.paint(RED, "FAILED"))?;
            self.diff(&step.diff)?;
            return writeln!(self.out);
        }
        let judges = if step.judged_by.is_empty() {
            "its assertions".to_owned()
        } else {
            step.judged_by.join(", ")
        };
        writeln!(
            self.out,
            "{} {}",
            self.paint(GREEN, "ok"),
            self.paint(DIM, &format!("(as {judges})"))
        )?;
        for why in &step.forgiven {
            writeln!(
                self.out,
                "{}",
                self.paint(YELLOW, &format!("   known difference: {why}"))
            )?;
        }
        writeln!(self.out)
    }

    fn diff(&mut self, diff: &str) -> io::Result<()> {
        for line in diff.lines() {
            let colour = match line.chars().next() {
                Some('-') => RED,
                Some('+') => GREEN,
                _ => DIM,
            };
            writeln!(self.out, "{}", self.paint(colour, line))?;
        }
        Ok(())
    }

    /// Closes a scenario with one line; where steps are not shown whole, with the failures.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn end(&mut self, outcome: &ScenarioOutcome) -> io::Result<()> {
        if self.detail == Detail::Failure && outcome.status != Status::Failed {
            return Ok(());
        }
        let (word, colour) = match outcome.status {
            Status::Passed => ("ok", GREEN),
            Status::Failed => ("FAILED", RED),
            Status::Skipped => ("skipped", YELLOW),
        };
        let (steps, wall) = (outcome.steps.len(), outcome.wall.as_secs_f64());
        let times = match outcome.virtual_time {
            Some(time) => format!(
                "{steps} steps, {:.0} s of virtual time in {:.0} ms",
                time.as_secs_f64(),
                wall * 1000.0
            ),
            None => format!("{steps} steps in {wall:.0} s"),
        };
        let detail = if outcome.reason.is_empty() {
            times
        } else {
            outcome.reason.clone()
        };
        writeln!(
            self.out,
            "{} {} {}",
            self.paint(colour, word),
            outcome.name,
            self.paint(DIM, &format!("({detail})"))
        )?;
        if !self.shows_steps() {
            for step in outcome.steps.iter().filter(|step| step.status == Status::Failed) {
                writeln!(self.out, "    {}", self.paint(BOLD, &step.name))?;
                self.diff(&step.diff)?;
            }
        }
        if self.shows_steps() {
            writeln!(self.out)
        } else {
            Ok(())
        }
    }
}

/// Writes which plays failed at which step, how to look at one, and how many ended how.
///
/// # Errors
/// If the text cannot be written.
pub fn summary(out: &mut dyn Write, outcomes: &[ScenarioOutcome]) -> io::Result<()> {
    let failed: Vec<&ScenarioOutcome> = outcomes
        .iter()
        .filter(|outcome| outcome.status == Status::Failed)
        .collect();
    if let Some(first) = failed.first() {
        writeln!(out, "\nfailed:")?;
        for outcome in &failed {
            let step = outcome.steps.iter().find(|step| step.status == Status::Failed);
            let place = step.map_or(String::new(), |step| format!(": {}", step.name));
            writeln!(out, "    {}{place}", outcome.name)?;
        }
        let name = &first.name;
        writeln!(
            out,
            "the same command with --scenario '{name}' shows one of them step by step"
        )?;
    }
    writeln!(out, "{}", Totals::of(outcomes))
}

/// A step's text as `render::step` writes it, without the blocks of events that are about pods.
fn without_events_of_pods(text: &str) -> String {
    let mut shown = String::new();
    let mut of_pod = false;
    for line in text.lines() {
        if !line.starts_with(' ') {
            of_pod = line.starts_with("pod/");
        }
        if !of_pod {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;

    fn outcome(name: &str, status: Status) -> ScenarioOutcome {
        let step = StepOutcome {
            name: "scale".to_owned(),
            commands: vec!["kubectl apply -f a.yaml".to_owned()],
            text: "NAME\na\n\ncloneset/a\n  Normal  X\npod/a-1\n  Normal  Started\n".to_owned(),
            status,
            diff: if status == Status::Failed {
                "-a\n+b\n".to_owned()
            } else {
                String::new()
            },
            judged_by: vec!["snapshot".to_owned()],
            forgiven: Vec::new(),
        };
        ScenarioOutcome {
            name: name.to_owned(),
            status,
            reason: String::new(),
            steps: vec![step],
            wall: Duration::from_millis(2),
            virtual_time: Some(Duration::from_secs(3)),
        }
    }

    const END: &str = "ok a (1 steps, 3 s of virtual time in 2 ms)\n";
    const BEGINNING: &str =
        "=== a\n    why\n\n--- scale\n$ kubectl apply -f a.yaml\n\nNAME\na\n\ncloneset/a\n  Normal  X\n";
    const OF_POD: &str = "pod/a-1\n  Normal  Started\n";
    const FAILED: &str = "FAILED a (1 steps, 3 s of virtual time in 2 ms)\n    scale\n-a\n+b\n";

    #[rstest]
    #[case(Detail::Failure, Status::Passed, String::new())]
    #[case(Detail::Failure, Status::Failed, FAILED.to_owned())]
    #[case(Detail::Line, Status::Passed, END.to_owned())]
    #[case(Detail::Line, Status::Failed, FAILED.to_owned())]
    #[case(Detail::Steps, Status::Passed, format!("{BEGINNING}\nok (as snapshot)\n\n{END}\n"))]
    #[case(Detail::Everything, Status::Passed, format!("{BEGINNING}{OF_POD}\nok (as snapshot)\n\n{END}\n"))]
    fn shows_as_much_as_asked(#[case] detail: Detail, #[case] status: Status, #[case] expected: String) {
        let mut out = Vec::new();
        let mut console = Console::new(&mut out, false, detail);
        let outcome = outcome("a", status);
        console.scenario("a", "why").expect("to write");
        for step in &outcome.steps {
            console.step(step).expect("to write");
        }
        console.end(&outcome).expect("to write");
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn the_summary_says_where_to_look() {
        let mut out = Vec::new();
        let outcomes = [outcome("a", Status::Passed), outcome("b", Status::Failed)];
        summary(&mut out, &outcomes).expect("to write");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "\nfailed:\n    b: scale\nthe same command with --scenario 'b' shows one of them step by step\n\
             1 passed, 1 failed, 0 skipped\n"
        );
    }
}
