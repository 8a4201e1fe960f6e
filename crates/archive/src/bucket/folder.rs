//! What a folder has beside whole files.

use std::{fs, io, path::Path};

use tokio::time::Duration;

use crate::format::names;

/// A file that is half written for so long is so for ever.
pub(super) const HALF: Duration = Duration::from_secs(60);

/// Why the file of an object is not to be opened: reading a pipe waits for ever, and a link leads to what is no part
/// of the archive. `None` if it is a file, or there is none.
pub(super) fn unfit(file: &Path) -> io::Result<Option<&'static str>> {
    let kind = match fs::symlink_metadata(file) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?.file_type(),
    };
    Ok(match (kind.is_file(), kind.is_symlink(), kind.is_dir()) {
        (true, ..) => None,
        (_, true, _) => Some("is a link and not a file"),
        (_, _, true) => Some("is a folder and not a file"),
        _ => Some("is a pipe or a device and not a file"),
    })
}

/// Deletes the files that a killed process left half written; whether none is left. A file is called `name#1` until it
/// is whole, for a moment: one that is older than [`HALF`] was left.
pub(super) fn delete_halves(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let mut none_left = true;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let half = name.to_str().and_then(|name| name.rsplit_once('#'));
        let is_half = half.is_some_and(|(whole, number)| {
            names::is_object(whole) && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_half {
            continue;
        }
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age >= HALF {
            fs::remove_file(entry.path())?;
        } else {
            none_left = false;
        }
    }
    Ok(none_left)
}
