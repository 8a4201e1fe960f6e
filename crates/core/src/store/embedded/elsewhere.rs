//! A database outside the data folder, which its user may not enter: then `postgres` in the data folder is a link
//! to it. So the folder leads to its database wherever it is moved, and without the folder there is none.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use authority_crypto::random;

use super::Error;

/// Used by root, whose own folders the database's user often cannot enter.
const ROOT: &str = "/var/lib/agent-authority";

/// Where the link leads, if there is one.
pub(super) fn linked(link: &Path) -> Result<Option<PathBuf>, Error> {
    let Ok(about) = fs::symlink_metadata(link) else { return Ok(None) };
    if !about.is_symlink() {
        return Ok(None);
    }
    let home = fs::read_link(link).map_err(Error::io("read", link))?;
    // Root gives the folder to the database's user, so it follows only links that root made.
    if about.uid() == 0 && home.parent() == Some(Path::new(ROOT)) && home.file_name().is_some() {
        return Ok(Some(home));
    }
    Err(Error::ForeignLink { link: link.to_owned(), home })
}

/// A database of an earlier version, which made no links.
pub(super) fn unlinked(link: &Path) -> Option<PathBuf> {
    let home = Path::new(ROOT).join(name(link));
    home.join("data/PG_VERSION").exists().then_some(home)
}

/// The folder for a database, a new one unless there is one, and the link to it.
pub(super) fn make(link: &Path, unlinked: Option<PathBuf>) -> Result<PathBuf, Error> {
    let root = Path::new(ROOT);
    fs::create_dir_all(root).map_err(Error::io("make", root))?;
    let own = random::<4>().map_err(io::Error::other).map_err(Error::io("name", root))?;
    let new = root.join(format!("{}-{}", name(link), hex::encode(own)));
    let home = unlinked.unwrap_or(new);
    match symlink(&home, link) {
        // Another process was faster.
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
            linked(link)?.ok_or_else(|| Error::io("link", link)(fault))
        }
        made => made.map(|()| home).map_err(Error::io("link", link)),
    }
}

/// Databases of earlier data folders at this place, to which nothing leads.
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

/// FNV-1a of a path, for a name: the same in every build.
pub(super) fn fingerprint(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
