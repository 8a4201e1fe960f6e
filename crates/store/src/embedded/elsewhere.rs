//! A database outside the data folder, used if the database's user may not enter that folder.
//!
//! `postgres` in the data folder is then a link to that database. A data folder that is moved keeps
//! its link and therefore its database. A data folder without the link has no database.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use authority_crypto::random;

use super::error::Error;

/// The folder for these databases. It is used when the service runs as root, because the database's
/// user often cannot enter root's own folders.
const ROOT: &str = "/var/lib/agent-authority";

/// Returns the target of `link`; `None` if `link` is not a link.
pub(super) fn linked(link: &Path) -> Result<Option<PathBuf>, Error> {
    let Ok(about) = fs::symlink_metadata(link) else { return Ok(None) };
    if !about.is_symlink() {
        return Ok(None);
    }
    let home = fs::read_link(link).map_err(Error::io("read", link))?;
    // The folder belongs to the database's user: root must only follow links that root made.
    if about.uid() == 0 && home.parent() == Some(Path::new(ROOT)) && home.file_name().is_some() {
        return Ok(Some(home));
    }
    Err(Error::ForeignLink { link: link.to_owned(), home })
}

/// Returns a database of an earlier version, which did not create links.
pub(super) fn unlinked(link: &Path) -> Option<PathBuf> {
    let home = Path::new(ROOT).join(name(link));
    home.join("data/PG_VERSION").exists().then_some(home)
}

/// Creates the link, and returns the folder for the database: an existing one, or a new one.
pub(super) fn make(link: &Path, unlinked: Option<PathBuf>) -> Result<PathBuf, Error> {
    let root = Path::new(ROOT);
    fs::create_dir_all(root).map_err(Error::io("make", root))?;
    let own = random::<4>().map_err(io::Error::other).map_err(Error::io("name", root))?;
    let new = root.join(format!("{}-{}", name(link), hex::encode(own)));
    let home = unlinked.unwrap_or(new);
    match symlink(&home, link) {
        // Another process created the link first.
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
            linked(link)?.ok_or_else(|| Error::io("link", link)(fault))
        }
        made => made.map(|()| home).map_err(Error::io("link", link)),
    }
}

/// Returns databases of earlier data folders at this path. No link refers to them.
pub(super) fn left_behind(link: &Path, home: &Path) -> Vec<PathBuf> {
    let name = name(link);
    let found = fs::read_dir(ROOT).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        path != home && file.split('-').next() == Some(name.as_str())
    };
    found.filter(is_ours).collect()
}

fn name(link: &Path) -> String {
    format!("{:016x}", fingerprint(link))
}

/// Returns the FNV-1a hash of a path, for a name. It is the same in every build.
pub(super) fn fingerprint(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
