//! Lists the migrations that the binary contains. Runs again when a migration is added or changed.

use std::{env, error::Error, fmt::Write, fs, path::Path};

const ROOT: &str = "../../migrations";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ROOT}");
    let folders = fs::read_dir(ROOT)?.map(|entry| entry.map(|entry| entry.path()));
    let mut folders = folders.collect::<Result<Vec<_>, _>>()?;
    folders.sort();
    let mut list = "&[".to_owned();
    for folder in folders {
        let name =
            folder.file_name().and_then(|name| name.to_str()).ok_or("a name is not UTF-8")?;
        let (version, _) = name.split_once('_').ok_or(format!("`{name}` has no version"))?;
        let metadata = folder.join("metadata.toml");
        let metadata =
            if metadata.exists() { fs::read_to_string(metadata)? } else { String::new() };
        let in_transaction = !metadata.replace(' ', "").contains("run_in_transaction=false");
        let sql = fs::read_to_string(folder.join("up.sql"))?;
        writeln!(
            list,
            "Migration {{ version: {version:?}, name: {name:?}, sql: {sql:?}, \
             in_transaction: {in_transaction} }},"
        )?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("migrations.rs"), list)?;
    Ok(())
}
