//! Writes the list of the state library's files.

use std::{env, fs, path::PathBuf};

const FOLDER: &str = "src/states/library";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={FOLDER}");
    let root = env::current_dir()?.join(FOLDER);
    let mut files = Vec::new();
    for category in fs::read_dir(&root)? {
        let category = category?.path();
        if category.is_dir() {
            for file in fs::read_dir(category)? {
                files.push(file?.path());
            }
        }
    }
    files.sort();
    let text = |file: &PathBuf| format!("include_str!({:?}),", file.to_string_lossy());
    let texts: Vec<_> = files.iter().map(text).collect();
    let list = format!("const FILES: &[&str] = &[{}];", texts.join("\n"));
    Ok(fs::write(PathBuf::from(env::var("OUT_DIR")?).join("state_library.rs"), list)?)
}
