//! The errors of a run, for the person that started it.

use std::path::{Path, PathBuf};

use miette::Diagnostic;

/// A failure that is not a failed comparison: bad input, or a cluster that cannot be had. Exit code 2.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("read {}: {source}", path.display())]
    #[diagnostic(help("check the path; relative paths start at the folder the command runs in"))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is invalid.
    #[error("read {}{}: {why}", path.display(), place(*line, *column))]
    #[diagnostic(help("{help}"))]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 if it is not known.
        line: usize,
        /// The column, from 1; 0 if it is not known.
        column: usize,
        /// The error, with the field's path where there is one.
        why: String,
        /// The advice.
        help: String,
    },
    /// No scenario or recording was found where there should be some.
    #[error("find {what} in {}: there is none", path.display())]
    #[diagnostic(help("{help}"))]
    Nothing {
        /// The missing thing.
        what: String,
        /// Where.
        path: PathBuf,
        /// The advice.
        help: String,
    },
    /// The server refused an object, where the scenario does not expect it.
    #[error("{action} {}: {why}", origin.as_deref().unwrap_or("an object"))]
    Refused {
        /// The attempted action, such as `apply`.
        action: String,
        /// The file and document it came from.
        origin: Option<String>,
        /// The server's words, with the field paths.
        why: String,
    },
    /// A cluster cannot be reached or started.
    #[error("{what}: {why}")]
    #[diagnostic(help("{help}"))]
    Backend {
        /// The attempted action.
        what: String,
        /// Why it did not work.
        why: String,
        /// The advice.
        help: String,
    },
    /// An option's value is wrong.
    #[error("understand {option}: {why}")]
    Option {
        /// The option.
        option: String,
        /// The error in it.
        why: String,
    },
}

fn place(line: usize, column: usize) -> String {
    match (line, column) {
        (0, _) => String::new(),
        (line, 0) => format!(":{line}"),
        (line, column) => format!(":{line}:{column}"),
    }
}

impl Error {
    /// A file that is not the JSON it should be.
    #[must_use]
    pub fn json(path: &Path, error: &shared_json::Error) -> Self {
        Self::Parse {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            why: error.to_string(),
            help: "the file must be JSON of the expected form".to_owned(),
        }
    }

    /// An invalid line of JSON lines.
    #[must_use]
    pub fn json_line(path: &Path, line: usize, error: &shared_json::Error) -> Self {
        Self::Parse {
            path: path.to_owned(),
            line,
            column: error.column(),
            why: error.to_string(),
            help: "each line of the file must be one JSON object of the expected form".to_owned(),
        }
    }

    /// A file that is not the YAML it should be.
    #[must_use]
    pub fn yaml(path: &Path, error: &serde_saphyr::Error) -> Self {
        let (line, column) = error
            .location()
            .map_or((0, 0), |at| (at.line() as usize, at.column() as usize));
        Self::Parse {
            path: path.to_owned(),
            line,
            column,
            why: error.to_string().lines().next().unwrap_or_default().to_owned(),
            help: "the file must be YAML of the expected form".to_owned(),
        }
    }

    /// Something that a client said.
    #[must_use]
    pub fn refused(action: &str, origin: Option<String>, error: &kube::Error) -> Self {
        let why = match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        };
        Self::Refused {
            action: action.to_owned(),
            origin,
            why,
        }
    }
}
