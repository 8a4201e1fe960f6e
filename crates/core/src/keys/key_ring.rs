//! The key ring's file.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::Path,
};

use authority_crypto::{KeyRing, random};

use super::Error;
use crate::config::data_folder;

/// In bytes.
const LONGEST_FILE: u64 = 64 * 1024;

/// Reads a ring from a file that only its owner may access (0600 or less).
pub fn load(path: &Path) -> Result<KeyRing, Error> {
    let unusable =
        |what: &dyn fmt::Display| Error::RingFile(format!("`{}`: {what}", path.display()));
    let mut file = fs::File::open(path).map_err(|e| unusable(&e))?;
    let about = file.metadata().map_err(|e| unusable(&e))?;
    if !about.is_file() {
        return Err(unusable(&"it is not a regular file"));
    }
    refuse_shared(&about).map_err(|what| unusable(&what))?;
    if about.len() > LONGEST_FILE {
        return Err(unusable(&"it is over 64 KiB"));
    }
    let mut text = String::new();
    (&mut file).take(LONGEST_FILE).read_to_string(&mut text).map_err(|e| unusable(&e))?;
    Ok(KeyRing::parse(&text)?)
}

/// Reads the file, or creates it with one new key.
pub fn load_or_create(path: &Path) -> Result<KeyRing, Error> {
    if !path.exists() {
        create(path, &KeyRing::generate()?)
            .map_err(|e| Error::RingFile(format!("`{}`: {e}", path.display())))?;
    }
    load(path)
}

#[cfg(unix)]
fn refuse_shared(about: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode() & 0o777;
    let of_others = mode % 0o100;
    if of_others == 0 {
        return Ok(());
    }
    Err(format!("others may reach it (mode {mode:o}); run `chmod 600` on it"))
}

#[cfg(not(unix))]
fn refuse_shared(_: &fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// Writes a temporary file and links it into place: two nodes that start together on one folder get
/// the same ring, and nobody reads a partial file.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() {
        data_folder(folder, None)?;
    }
    let own = random::<8>().map_err(io::Error::other)?;
    let draft = folder.join(format!(".ring-{}", hex::encode(own)));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
