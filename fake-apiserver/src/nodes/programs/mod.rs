//! What containers run: programs that serve until they are stopped, scripted ones, and a small shell.
//!
//! [`script`] says per image or per pod annotation what a program does and when; [`process`] is one running; [`parse`],
//! [`shell`] and [`builtins`] are the shell of containers whose command is known; [`files`] is what it sees.

mod arith;
mod builtins;
mod files;
mod parse;
mod process;
mod script;
mod shell;

pub(super) use files::{Files, Volume};
pub(super) use process::{Exit, Launch, Process, launch};
pub use script::{ExitScript, ProbeAnswer, Program};
pub(super) use script::{argv_of, program_of};
pub(super) use shell::{Output, exec};
