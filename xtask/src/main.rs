//! `cargo xtask`: the project's verbs.

fn main() {}
