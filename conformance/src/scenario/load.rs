//! Finds and reads scenarios.

use std::path::{Path, PathBuf};

use shared_json::{Value, json};

use super::beyond;
use super::chainsaw::{API_VERSION, Operation, Step, StepTemplate, Test};
use super::configuration::Configuration;
use super::extras::Extras;
use crate::assertion::expression::inner;
use crate::error::Error;
use crate::files;
use crate::manifest;

/// A scenario: a test, its file, and its annotations.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name: its folder's below the root.
    pub name: String,
    /// The test's file.
    pub path: PathBuf,
    /// The test.
    pub test: Test,
    /// Seatrial's annotations.
    pub extras: Extras,
    /// The parts that are not played: if there are any, the test is skipped.
    pub beyond: Vec<String>,
    /// Which of a test's scenarios it is, from 1.
    pub variant: usize,
    /// The values that a person gives, `$values` in expressions.
    pub values: Value,
}

impl Scenario {
    /// The folder that its files are relative to.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Everything that the files of its folder say.
    #[must_use]
    pub fn told(&self) -> String {
        let files = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        files
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
            .collect()
    }

    /// Reads the scenarios of a file and checks everything that can be checked without a cluster: their form, their
    /// operations, their files. A file may hold several, and one that is played with several values is several.
    ///
    /// # Errors
    /// The error, and its place.
    pub fn read_all(root: &Path, path: &Path) -> Result<Vec<Self>, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
        let documents: Vec<Value> = documents
            .into_iter()
            .filter(|document| !document.is_null())
            .collect();
        if let [] | [_] = documents.as_slice() {
            let document = documents.first().unwrap_or(&Value::Null);
            let test = match beyond::words(document).as_slice() {
                [] => parse(path, &text)?,
                _ => unplayed(path, document)?,
            };
            return Self::variants(root, path, document, test);
        }
        let mut out: Vec<Self> = Vec::new();
        for document in &documents {
            let test = match beyond::words(document).as_slice() {
                [] => of_tree(path, document)?,
                _ => unplayed(path, document)?,
            };
            for mut scenario in Self::variants(root, path, document, test)? {
                let name = format!("{}/{}", scenario.name, scenario.test.metadata.name);
                let same = out.iter().filter(|other| other.name.starts_with(&name)).count();
                scenario.name = if same == 0 {
                    name
                } else {
                    format!("{name}-{}", same + 1)
                };
                out.push(scenario);
            }
        }
        Ok(out)
    }

    /// Reads the one scenario of a file, or the first of several.
    ///
    /// # Errors
    /// As [`Self::read_all`].
    pub fn read(root: &Path, path: &Path) -> Result<Self, Error> {
        let first = Self::read_all(root, path)?.into_iter().next();
        first.ok_or_else(|| Error::Nothing {
            what: "scenarios".to_owned(),
            path: path.to_owned(),
            help: "a scenario is a Chainsaw test".to_owned(),
        })
    }

    /// A test, or one for each of the values that it is to be played with.
    fn variants(root: &Path, path: &Path, document: &Value, mut test: Test) -> Result<Vec<Self>, Error> {
        let variants = std::mem::take(&mut test.spec.scenarios);
        let beyond = beyond::words(document);
        if variants.is_empty() || !beyond.is_empty() {
            return Ok(vec![Self::new(root, path, test, beyond)?]);
        }
        let mut out = Vec::new();
        for (index, variant) in variants.into_iter().enumerate() {
            let mut test = test.clone();
            test.spec.bindings.splice(0..0, variant.bindings);
            let mut scenario = Self::new(root, path, test, beyond.clone())?;
            scenario.variant = index + 1;
            scenario.name = match variant.name.as_str() {
                "" => format!("{}#{}", scenario.name, index + 1),
                name => format!("{}#{name}", scenario.name),
            };
            out.push(scenario);
        }
        Ok(out)
    }

    fn new(root: &Path, path: &Path, mut test: Test, beyond: Vec<String>) -> Result<Self, Error> {
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
        for step in &mut test.spec.steps {
            use_template(folder, step)?;
        }
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
            beyond,
            variant: 1,
            values: json!({}),
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
        .map(|action| (&action.file, action.resource.is_some(), true))
        .chain(
            [&operation.assert, &operation.error]
                .into_iter()
                .flatten()
                .map(|action| (&action.file, action.resource.is_some(), false)),
        );
        for (file, inline, objects) in sources {
            match (file, inline) {
                // Which file that is, a value of the run says.
                (Some(file), false) if inner(file).is_some() => {}
                // Reading it now means that nothing is half done when it is not there.
                (Some(file), false) if objects => {
                    manifest::read(&self.folder().join(file))?;
                }
                (Some(file), false) => {
                    manifest::read_trees(&self.folder().join(file))?;
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

/// Takes a step's operations from the file that it names, if it does.
fn use_template(folder: &Path, step: &mut Step) -> Result<(), Error> {
    let Some(usage) = step.template_of.take() else {
        return Ok(());
    };
    let path = folder.join(&usage.template);
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let template: StepTemplate = serde_saphyr::from_str(&text).map_err(|error| Error::yaml(&path, &error))?;
    let Step { name, bindings, .. } = std::mem::replace(step, template.spec);
    step.name = name;
    // What is given hides what the template has of the same name.
    step.bindings.splice(0..0, bindings);
    step.bindings.extend(usage.with.bindings);
    Ok(())
}

/// The head of a test that is not played: its name, and whether it is to be skipped anyway.
fn unplayed(path: &Path, document: &Value) -> Result<Test, Error> {
    let name = document.pointer("/metadata/name").cloned();
    let skip = document.pointer("/spec/skip").cloned();
    of_tree(
        path,
        &json!({
            "apiVersion": document.get("apiVersion").cloned().unwrap_or_default(),
            "kind": document.get("kind").cloned().unwrap_or_default(),
            "metadata": {"name": name.unwrap_or_default()},
            "spec": {"skip": skip.unwrap_or(Value::Bool(false)), "steps": []},
        }),
    )
}

/// Reads a test; an error has the field's path.
fn of_tree(path: &Path, tree: &Value) -> Result<Test, Error> {
    let tree = k8s_openapi::serde_json::Value::from(tree.clone());
    serde_path_to_error::deserialize::<_, Test>(tree).map_err(|error| Error::Parse {
        path: path.to_owned(),
        line: 0,
        column: 0,
        why: format!("{}: {}", error.path(), error.inner()),
        help: OPERATIONS.to_owned(),
    })
}

/// Reads a test; an error has line, column and field path.
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

/// The scenarios below `root`, by name; `configuration` is Chainsaw's, if it is not the folder's `.chainsaw.yaml`.
///
/// # Errors
/// If a folder cannot be read, or a scenario is wrong.
pub fn find(root: &Path, configuration: Option<&Path>) -> Result<Vec<Scenario>, Error> {
    let configuration = Configuration::read(root, configuration)?;
    let names = configuration.file_names();
    let mut files = Vec::new();
    for name in &names {
        files.extend(files::named(root, name)?);
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::Nothing {
            what: "scenarios".to_owned(),
            path: root.to_owned(),
            help: format!("a scenario is a folder with a {}", names[0]),
        });
    }
    let mut out = Vec::new();
    for path in &files {
        for mut scenario in Scenario::read_all(root, path)? {
            if configuration.takes(&scenario.test) {
                configuration.fill(&mut scenario.test.spec);
                out.push(scenario);
            }
        }
    }
    Ok(out)
}
