//! Files with secrets. Only their owner may access them.

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
};

use authority_crypto::random;

use authority_process::folder::data_folder;

/// The maximum size of a file, in bytes.
const LONGEST_FILE: u64 = 64 * 1024;

/// Reads a file that only its owner may access (0600 or less).
///
/// # Errors
/// The problem, with the file's path.
pub(super) fn read(path: &Path) -> Result<String, String> {
    read_private(path).map_err(|what| format!("`{}`: {what}", path.display()))
}

fn read_private(path: &Path) -> Result<String, String> {
    let mut file = fs::File::open(path).map_err(|e| e.to_string())?;
    let about = file.metadata().map_err(|e| e.to_string())?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    refuse_shared(&about)?;
    if about.len() > LONGEST_FILE {
        return Err("it is over 64 KiB".to_owned());
    }
    let mut text = String::new();
    (&mut file).take(LONGEST_FILE).read_to_string(&mut text).map_err(|e| e.to_string())?;
    Ok(text)
}

/// Creates the file with this text if it does not exist.
///
/// # Errors
/// The reason why the file cannot be created, with its path.
pub(super) fn make(
    path: &Path,
    text: impl FnOnce() -> Result<String, authority_crypto::Error>,
) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let text = text().map_err(|e| e.to_string())?;
    create(path, &text).map_err(|e| format!("`{}`: {e}", path.display()))
}

#[cfg(unix)]
fn refuse_shared(about: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode() & 0o777;
    let of_others = mode % 0o100;
    if of_others == 0 {
        return Ok(());
    }
    Err(format!("other users can access it (mode {mode:o}); run `chmod 600` on it"))
}

#[cfg(not(unix))]
fn refuse_shared(_: &fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// Writes a temporary file and links it into place.
///
/// Two nodes that start together in one folder get the same text, and a partial file is never read.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() {
        data_folder(folder, None)?;
    }
    let own = random::<8>().map_err(io::Error::other)?;
    let draft = folder.join(format!(".draft-{}", hex::encode(own)));
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
