//! OpenKruise's manager: `kruise-manager --help` lists its flags, which are those of the Go manager.

use std::process::ExitCode;

use controller::process::ProcessError;
use controller::process::flags::Flags;
use controller::process::logs::Logs;
use controller::process::run::{Environment, run};
use controller::process::stop::asked_to_stop;
use controller::process::version::line;

/// The exit code for a command line that is wrong, as Go's flag package has it.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(USAGE);
        }
    };
    if flags.is_set("help") {
        print!("{}", Flags::usage());
        return ExitCode::SUCCESS;
    }
    if flags.is_set("version") {
        println!("{}", line("kruise-manager"));
        return ExitCode::SUCCESS;
    }
    let logs = Logs::new(flags.number("v"), flags.text("logging-format") == "json");
    // Nobody else sets one in this process.
    let _only_once = tracing::subscriber::set_global_default(logs);
    let ended = async {
        let environment = Environment::read(|name| std::env::var(name).ok())?;
        run(&flags, &environment, asked_to_stop()).await
    };
    match ended.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (ProcessError::Flag(_) | ProcessError::Gate(_))) => {
            eprintln!("{error}");
            ExitCode::from(USAGE)
        }
        Err(error) => {
            tracing::error!(%error, "the manager ends");
            ExitCode::FAILURE
        }
    }
}
