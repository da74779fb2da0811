//! The report as JUnit's XML: a suite for each scenario, a case for each step.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::run::outcome::{ScenarioOutcome, Status};

/// The XML text.
///
/// # Errors
/// If a text cannot be written as XML.
pub fn report(outcomes: &[ScenarioOutcome]) -> Result<String, quick_junit::SerializeError> {
    let mut report = Report::new("conformance");
    for outcome in outcomes {
        let mut suite = TestSuite::new(outcome.name.as_str());
        suite.set_time(outcome.wall);
        for step in &outcome.steps {
            suite.add_test_case(case(&outcome.name, &step.name, step.status, &step.diff));
        }
        if outcome.steps.is_empty() {
            suite.add_test_case(case(&outcome.name, "scenario", outcome.status, &outcome.reason));
        }
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn case(scenario: &str, name: &str, status: Status, text: &str) -> TestCase {
    let status = match status {
        Status::Passed => TestCaseStatus::success(),
        Status::Skipped => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(text);
            skipped
        }
        Status::Failed => {
            let mut failed = TestCaseStatus::non_success(NonSuccessKind::Failure);
            failed
                .set_message(format!("{scenario}: {name} is not as it should be"))
                .set_description(text);
            failed
        }
    };
    let mut case = TestCase::new(name, status);
    case.set_classname(scenario);
    case
}
