//! Builds anew when a migration comes or changes: they are part of the binary.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../migrations");
}
