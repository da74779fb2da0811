//! Finds and reads scenarios.

use std::path::{Path, PathBuf};

use shared_json::Value;

use super::chainsaw::{API_VERSION, Operation, Test};
use super::extras::Extras;
use crate::error::Error;
use crate::files;
use crate::manifest;

/// The name of a scenario's file, as Chainsaw has it.
const FILE_NAME: &str = "chainsaw-test.yaml";

/// A scenario: a test, where it is, and what its annotations say.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name: its folder's below the root.
    pub name: String,
    /// The test's file.
    pub path: PathBuf,
    /// The test.
    pub test: Test,
    /// What Chainsaw has no word for.
    pub extras: Extras,
}

impl Scenario {
    /// The folder that its files are relative to.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Reads a scenario and checks everything that can be checked without a cluster: its form, its operations, its files.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(root: &Path, path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let test = parse(path, &text)?;
        let wrong = |why: String, help: &str| Error::Parse {
            path: path.to_owned(),
            line: 0,
            column: 0,
            why,
            help: help.to_owned(),
        };
        if test.api_version != API_VERSION || test.kind != "Test" {
            return Err(wrong(
                format!(
                    "apiVersion {} and kind {} are not a scenario's",
                    test.api_version, test.kind
                ),
                "a scenario is a Chainsaw test: apiVersion chainsaw.kyverno.io/v1alpha1, kind Test",
            ));
        }
        let extras = Extras::read(&test.metadata.annotations).map_err(|why| {
            wrong(
                format!("metadata.annotations: {why}"),
                "the annotations are listed under \"Adding a scenario\" in README.md",
            )
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let name = folder
            .strip_prefix(root)
            .unwrap_or(folder)
            .to_string_lossy()
            .replace('\\', "/");
        let name = if name.is_empty() {
            test.metadata.name.clone()
        } else {
            name
        };
        let scenario = Self {
            name,
            path: path.to_owned(),
            test,
            extras,
        };
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), Error> {
        for (step_index, step) in self.test.spec.steps.iter().enumerate() {
            let blocks = [
                ("try", &step.operations),
                ("catch", &step.catch),
                ("finally", &step.finally),
                ("cleanup", &step.cleanup),
            ];
            for (block, operations) in blocks {
                for (index, operation) in operations.iter().enumerate() {
                    self.check_operation(operation, &format!("spec.steps[{step_index}].{block}[{index}]"))?;
                }
            }
        }
        let steps: Vec<&str> = self
            .test
            .spec
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        if let Some(unknown) = self
            .extras
            .faults
            .keys()
            .find(|name| !steps.contains(&name.as_str()))
        {
            return Err(Error::Parse {
                path: self.path.clone(),
                line: 0,
                column: 0,
                why: format!("metadata.annotations: seatrial.dev/faults: there is no step \"{unknown}\""),
                help: format!("the steps are {}", steps.join(", ")),
            });
        }
        for (index, operation) in self.test.spec.catch.iter().enumerate() {
            self.check_operation(operation, &format!("spec.catch[{index}]"))?;
        }
        Ok(())
    }

    fn check_operation(&self, operation: &Operation, place: &str) -> Result<(), Error> {
        let wrong = |why: String, help: &str| Error::Parse {
            path: self.path.clone(),
            line: 0,
            column: 0,
            why: format!("{place}: {why}"),
            help: help.to_owned(),
        };
        match operation.actions().as_slice() {
            [] => return Err(wrong("no action is given".to_owned(), OPERATIONS)),
            [_] => {}
            many => {
                return Err(wrong(
                    format!("{} are given, and only one may be", many.join(" and ")),
                    OPERATIONS,
                ));
            }
        }
        let sources = [
            &operation.apply,
            &operation.create,
            &operation.update,
            &operation.patch,
        ]
        .into_iter()
        .flatten()
        .map(|action| (&action.file, action.resource.is_some()))
        .chain(
            [&operation.assert, &operation.error]
                .into_iter()
                .flatten()
                .map(|action| (&action.file, action.resource.is_some())),
        );
        for (file, inline) in sources {
            match (file, inline) {
                (Some(file), false) => {
                    // Reading it now means that nothing is half done when it is not there.
                    manifest::read(&self.folder().join(file))?;
                }
                (None, true) => {}
                _ => {
                    return Err(wrong(
                        "exactly one of file and resource must be given".to_owned(),
                        "name a file beside the test, or write the object below `resource`",
                    ));
                }
            }
        }
        Ok(())
    }
}

const OPERATIONS: &str =
    "an operation is one of apply, create, update, patch, delete, assert, error, wait and sleep";

/// Reads a test, telling line, column and field path of what is wrong.
fn parse(path: &Path, text: &str) -> Result<Test, Error> {
    let direct: Result<Test, serde_saphyr::Error> = serde_saphyr::from_str(text);
    let error = match direct {
        Ok(test) => return Ok(test),
        Err(error) => error,
    };
    let mut failure = Error::yaml(path, &error);
    // The location is known from the text, the field's path from the tree.
    let tree: Result<Value, _> = serde_saphyr::from_str(text);
    if let (Ok(tree), Error::Parse { why, help, .. }) = (tree, &mut failure)
        && let Err(error) =
            serde_path_to_error::deserialize::<_, Test>(k8s_openapi::serde_json::Value::from(tree))
    {
        *why = format!("{}: {}", error.path(), error.inner());
        OPERATIONS.clone_into(help);
    }
    Err(failure)
}

/// The scenarios below `root`, by name.
///
/// # Errors
/// If a folder cannot be read, or a scenario is wrong.
pub fn find(root: &Path) -> Result<Vec<Scenario>, Error> {
    let files = files::named(root, FILE_NAME)?;
    if files.is_empty() {
        return Err(Error::Nothing {
            what: "scenarios".to_owned(),
            path: root.to_owned(),
            help: format!("a scenario is a folder with a {FILE_NAME}"),
        });
    }
    files.iter().map(|path| Scenario::read(root, path)).collect()
}
