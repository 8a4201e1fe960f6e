//! Removes the database of a data folder, for a fresh start.

use std::{
    fs::{self, OpenOptions, TryLockError},
    io::ErrorKind,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::fcntl::OFlag;

use super::{elsewhere, error::Error, options::Options, server::Embedded};

/// Removes the database of this data folder, unless a process uses it. Returns whether it existed.
///
/// # Errors
/// [`Error::InUse`]; a link that the service did not create; an error of the file system.
pub async fn remove(data_dir: &Path) -> Result<bool, Error> {
    let link = data_dir.join("postgres");
    let linked = elsewhere::linked(&link)?;
    let home = linked.clone().unwrap_or_else(|| link.clone());
    if !home.is_dir() {
        return Ok(false);
    }
    if home.join("data/postmaster.pid").exists() {
        // A killed process may have left the server running. This process joins the server and
        // leaves it again, and the last user to leave stops it.
        let options = Options { data_dir: data_dir.to_owned(), ..Options::default() };
        Embedded::start(options).await?.stop().await?;
    }
    let users = home.join("users.lock");
    // The folder belongs to the database's user. When run as root, this must not follow the user's
    // links.
    let unfollowed = OFlag::O_NOFOLLOW.bits();
    let opened = OpenOptions::new().write(true).custom_flags(unfollowed).open(&users);
    let lock = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        opened => Some(opened.map_err(Error::io("open", &users))?),
    };
    if let Some(lock) = &lock {
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { data_dir: data_dir.into() });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &users)(error)),
        }
    }
    fs::remove_dir_all(&home).map_err(Error::io("remove", &home))?;
    if linked.is_some() {
        fs::remove_file(&link).map_err(Error::io("remove", &link))?;
    }
    Ok(true)
}
