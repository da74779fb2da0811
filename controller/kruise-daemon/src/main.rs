//! OpenKruise's daemon: `kruise-daemon --help` lists its flags, which are those of the Go daemon.

fn main() -> std::process::ExitCode {
    kruise_daemon::main()
}
