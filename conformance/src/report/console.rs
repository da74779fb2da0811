//! The report as a person reads it.

use std::io::{self, Write};

use crate::run::outcome::{ScenarioOutcome, Status, StepOutcome};

/// Writes to a terminal, or to a file without colours.
pub struct Console<W> {
    out: W,
    colour: bool,
    /// Whether steps are shown whole; otherwise only what went wrong.
    whole: bool,
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";
const DIM: &str = "2";

impl<W: Write> Console<W> {
    /// A console.
    pub fn new(out: W, colour: bool, whole: bool) -> Self {
        Self { out, colour, whole }
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
        if !self.whole {
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
        if !self.whole {
            return Ok(());
        }
        writeln!(self.out, "{}", self.paint(BOLD, &format!("--- {}", step.name)))?;
        for command in &step.commands {
            let sign = if command.starts_with('#') { "" } else { "$ " };
            writeln!(self.out, "{sign}{command}")?;
        }
        writeln!(self.out)?;
        write!(self.out, "{}", step.text)?;
        writeln!(self.out)?;
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

    /// Closes a scenario with one line; where steps are not shown whole, with what went wrong.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn end(&mut self, outcome: &ScenarioOutcome) -> io::Result<()> {
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
        if !self.whole {
            for step in outcome.steps.iter().filter(|step| step.status == Status::Failed) {
                writeln!(self.out, "    {}", self.paint(BOLD, &step.name))?;
                self.diff(&step.diff)?;
            }
        }
        if self.whole { writeln!(self.out) } else { Ok(()) }
    }

    /// Writes a line of its own.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }
}
