//! The documentation's pages, to be included in the binary: the Markdown of `docs/`, except the
//! folder for contributors.

use std::{fmt::Write as _, fs, io, path::Path};

const FOLDER: &str = "docs";
/// The folder for contributors.
const UNSERVED: &str = "internals";

/// Returns Rust source: a list with the path below `docs/` and the text of each page.
pub(super) fn pages() -> io::Result<String> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut paths = Vec::new();
    find(Path::new(FOLDER), "", &mut paths)?;
    paths.sort();
    let mut source = String::from("&[\n");
    for path in paths {
        let text = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{FOLDER}/{path}\")");
        let _ = writeln!(source, "    ({path:?}, include_str!({text})),");
    }
    source.push_str("]\n");
    Ok(source)
}

/// Adds the pages of a folder and of the folders in it. `prefix` is the folder's path below
/// `docs/`, with a `/` at its end.
fn find(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if name != UNSERVED {
                find(&entry.path(), &format!("{prefix}{name}/"), paths)?;
            }
        } else if entry.path().extension().is_some_and(|extension| extension == "md") {
            paths.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}
