//! The programs of containers: programs that serve until they are stopped, scripted ones, and a small shell.
//!
//! [`script`] describes a program per image or per pod annotation; [`process`] is a running one; [`parse`],
//! [`pattern`], [`arith`], [`shell`] and [`builtins`] are the shell of containers whose command is known, [`files`] are its files, [`cgroup`] those that tell of its limits, and [`pipe`] its
//! input and output; [`web`] are the commands that use the network; [`image_program`] has the programs of images that are known by name, [`agnhost`] that of Kubernetes' tests; [`native`] are programs in Rust, a user's own among them; [`outside`] those that run elsewhere; [`session`] is a client's command in a
//! container, or its attachment to a running program.

mod agnhost;
mod arith;
mod builtins;
mod certgen;
mod cgroup;
mod files;
mod image_program;
mod native;
mod outside;
mod parse;
mod pattern;
mod pipe;
mod process;
mod script;
mod session;
mod shell;
mod tar;
mod web;

pub(super) use agnhost::{Agnhost, asks_api_server, is_agnhost, words_of};
pub(super) use files::{Files, STOCK_PAGE, Volume};
pub(super) use image_program::{ImageProgram, Surroundings};
pub(super) use native::NativeLaunch;
pub use native::{Container, ContainerProgram, DatagramSocket, Listener};
pub use outside::{AskedToEnd, ContainerLog, OutsideContainer, OutsideProgram, OutsidePrograms};
pub(super) use pipe::{Kept, Output};
pub(super) use process::{Exit, Launch, Process, Run, launch};
pub use script::{ExitScript, LaterReply, ProbeAnswer, Program, Reply};
pub(super) use script::{
    argv_of, document_root, files_of_image, own_ports, page_program, privileges_program, program_of, task_of,
};
pub use session::Ran;
pub(super) use session::{attach, exec_session, run_to_end};
pub(super) use shell::exec;
pub(super) use web::{HttpReply, exchange};
