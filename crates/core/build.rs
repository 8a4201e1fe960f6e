//! Writes the digests of the migrations, and rebuilds when a migration is added or changed.
//! Migrations are part of the binary.

use std::{env, error::Error, fs, path::Path};

use sha2::{Digest, Sha256};

const FOLDER: &str = "../../migrations";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut digests = Vec::new();
    for folder in fs::read_dir(FOLDER)? {
        let folder = folder?;
        let name =
            folder.file_name().into_string().map_err(|name| format!("{}", name.display()))?;
        let (version, _) = name.split_once('_').ok_or("a migration has no version")?;
        let digest = Sha256::digest(fs::read(folder.path().join("up.sql"))?);
        digests.push(format!("(\"{version}\", \"{digest:x}\")"));
    }
    digests.sort();
    let list = Path::new(&env::var("OUT_DIR")?).join("digests.rs");
    Ok(fs::write(list, format!("[{}]", digests.join(", ")))?)
}
