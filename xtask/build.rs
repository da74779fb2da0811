//! Does nothing: cargo looks at the build dependencies of a package only if it has a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
