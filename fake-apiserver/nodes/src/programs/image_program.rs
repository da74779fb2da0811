//! Programs of images that are known by name, and that ask the API server.

use std::time::Duration;

use client_kit::{ObjectClient, Random, SharedClock};

use super::builtins::base_name;
use super::certgen::{self, Certgen};
use super::pipe::Output;
use super::script::short_name;

/// How long such a program takes before its first request.
const START: Duration = Duration::from_millis(100);

/// A program's surroundings besides its arguments.
pub(crate) struct Surroundings {
    pub objects: ObjectClient,
    pub clock: SharedClock,
    pub random: Random,
}

/// A program that waits to be run.
pub(crate) struct ImageProgram {
    arguments: Vec<String>,
    surroundings: Surroundings,
}

impl ImageProgram {
    /// Whether the image is known by name.
    pub(crate) fn is_known(image: &str) -> bool {
        short_name(image) == certgen::NAME
    }

    /// The program of a known image, run by a container's `command` and `args`; none if the command is another program.
    pub(crate) fn of(command: &[String], arguments: Vec<String>, surroundings: Surroundings) -> Option<Self> {
        let is_its_own = match command {
            [] => true,
            [program] => base_name(program) == certgen::NAME,
            _ => false,
        };
        is_its_own.then_some(Self {
            arguments,
            surroundings,
        })
    }

    /// Runs it to its end; the exit code.
    pub(super) async fn run(self, logs: Output) -> i32 {
        tokio::time::sleep(START).await;
        let Surroundings {
            objects,
            clock,
            random,
        } = self.surroundings;
        let program = Certgen {
            objects,
            clock,
            random,
            logs,
        };
        program.run(&self.arguments).await
    }
}
