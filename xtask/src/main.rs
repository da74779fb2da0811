//! `cargo xtask`: the project's verbs. Thin: each calls a function of a crate.

mod apidiff;
mod bench;
mod chart;
mod ci;
mod conformance;
mod dist;
mod fuzz;
mod histories;
mod manifests;
mod record;
mod serve;
mod soak;
mod timings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A run is many short-lived JSON documents: the allocator is a good part of its cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seatrial's verbs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Play the scenarios and compare them with recordings of real OpenKruise.
    Conformance(conformance::Arguments),
    /// Play exchanges recorded from a real kube-apiserver and compare the answers.
    Apidiff(apidiff::Arguments),
    /// Run the checks of CI: format, lints, tests, conformance.
    Ci,
    /// Print the objects that install `kruise-manager`: definitions, roles, Service, webhook configurations, Deployment.
    Manifests(manifests::Arguments),
    /// Write the data files of the Helm chart: definitions, rights and webhooks of an installation.
    Chart(chart::Arguments),
    /// Make what a release has: static programs, the chart's archive, a bill of materials, a changelog, checksums.
    Dist(dist::Arguments),
    /// Measure the tutorial, a cluster's start, and large CloneSets (in a release build).
    Bench(bench::Arguments),
    /// Play random histories of each kind and check invariants after every commit.
    Histories(histories::Arguments),
    /// Serve a cluster with OpenKruise in it: the manager, and the daemon on each node.
    Serve(serve::Arguments),
    /// Do the steps of a recording on a cluster, and write the changes there as a recording.
    Record(record::Arguments),
    /// Fuzz the API server's decoders, patches, selectors, schemas and expressions (needs cargo-fuzz and a nightly toolchain).
    Fuzz(fuzz::Arguments),
    /// Measure the build time of the README's commands, the time until a change is tested, and the size of release binaries.
    Timings(timings::Arguments),
    /// Send random requests to a cluster with watches open, and check that all adds up.
    Soak(soak::Arguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Conformance(arguments) => conformance::run(arguments),
        Verb::Apidiff(arguments) => apidiff::run(arguments),
        Verb::Ci => ci::run(),
        Verb::Manifests(arguments) => manifests::run(arguments),
        Verb::Chart(arguments) => chart::run(&arguments),
        Verb::Dist(arguments) => dist::run(&arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::Histories(arguments) => histories::run(&arguments),
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Record(arguments) => record::run(arguments),
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        Verb::Timings(arguments) => timings::run(&arguments),
        Verb::Soak(arguments) => soak::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(report) => {
            eprintln!("{report:?}");
            ExitCode::from(2)
        }
    }
}
