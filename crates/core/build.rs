//! Rebuilds when a migration is added or changed. Migrations are part of the binary.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../migrations");
}
