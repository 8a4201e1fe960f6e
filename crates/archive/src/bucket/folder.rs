//! Folder entries that are not complete files: partly written files, links, pipes and devices.

use std::{fs, io, path::Path};

use tokio::time::Duration;

use crate::format::names;

/// The age from which a partly written file is abandoned: its process has died.
pub(super) const HALF: Duration = Duration::from_secs(60);

/// Returns why a path must not be opened; `None` if it is a regular file or is absent.
///
/// Reading a pipe would wait forever, and a link can lead out of the archive.
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

/// Deletes partly written files of killed processes. Returns `false` if a partly written file
/// remains because it is still recent.
///
/// While a file is being written, its name is `name#1`. If it is older than [`HALF`], its process
/// has died.
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
