//! `cargo xtask histories`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use conformance::histories::{self, Kind};

/// Plays random histories of a kind and checks invariants after every commit.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The kind; all of them without it.
    #[arg(long, value_parser = Kind::ALL.map(Kind::name))]
    kind: Option<String>,
    /// How many of each kind, from seed 0 on.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Only the one of this seed; prints its changes.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> miette::Result<ExitCode> {
    let asked = |kind: &Kind| arguments.kind.as_ref().is_none_or(|name| name == kind.name());
    let mut all_well = true;
    for kind in Kind::ALL.into_iter().filter(asked) {
        all_well &= play(kind, arguments)?;
    }
    Ok(if all_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Plays the histories of one kind. Gives whether all went well.
fn play(kind: Kind, arguments: &Arguments) -> miette::Result<bool> {
    let (first, end) = match arguments.seed {
        Some(seed) => (seed, seed.saturating_add(1)),
        None => (0, arguments.count),
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicU64::new(first);
    let bad = Mutex::new(Vec::new());
    let struck = AtomicU64::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let played =
                        histories::play(kind, seed, &|seed, job| seeded_entropy::simulate(seed, job));
                    if let Ok(played) = &played {
                        struck.fetch_add(u64::from(played.struck), Ordering::Relaxed);
                    }
                    match played {
                        Ok(played) if played.wrongs.is_empty() && arguments.seed.is_none() => {}
                        Ok(played) => {
                            if arguments.seed.is_some() {
                                println!("{}", played.story.join("\n"));
                            }
                            if played.wrongs.is_empty() {
                                return;
                            }
                            let all = played.wrongs.join("\n  ");
                            println!("{}, seed {seed}:\n  {all}", kind.name());
                            bad.lock().map(|mut bad| bad.push(seed)).unwrap_or_default();
                        }
                        Err(error) => {
                            failed
                                .lock()
                                .map(|mut first| first.get_or_insert(error).to_string())
                                .unwrap_or_default();
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_default() {
        return Err(error.into());
    }
    let bad = bad.into_inner().unwrap_or_default();
    println!(
        "{}: {} histories, {} went wrong; {} requests of the manager and events for it were struck",
        kind.name(),
        end - first,
        bad.len(),
        struck.load(Ordering::Relaxed)
    );
    Ok(bad.is_empty())
}
