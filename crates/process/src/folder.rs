//! Private folders. The data folder contains keys, sockets and tenants' logs.

use std::{fs, io, path::Path};

/// Creates a folder of the service, and missing parents, for the service's user only (mode 0700).
///
/// Makes an existing folder private.
///
/// # Errors
/// The folder cannot be created.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    make(folder)?;
    close(folder, true, None);
    Ok(())
}

/// Creates the data folder, and missing parents, for the service's user only (mode 0700).
///
/// Makes an existing folder private if it is empty or contains the service's own files. If other
/// users can access a folder with other files, only logs a warning. If the database runs as another
/// user, `group` is that user's group, which may pass through the folder (mode 0710). Without
/// `group`, an existing database's group keeps this right: the database needs it at its next start.
///
/// # Errors
/// The folder cannot be created.
pub fn data_folder(folder: &Path, group: Option<u32>) -> io::Result<()> {
    make(folder)?;
    let ours = folder.join("keys.ring").exists()
        || folder.join("postgres").exists()
        || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    close(folder, ours, group.or_else(|| passing(folder)));
    Ok(())
}

#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Returns the group of the database in this folder, if the database belongs to another user.
///
/// Returns `None` if the folder is closed to the database's user. The folder then stays closed.
#[cfg(unix)]
fn passing(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let (found, database) =
        (fs::metadata(folder).ok()?, fs::metadata(folder.join("postgres")).ok()?);
    let passes = database.uid() != found.uid() && found.mode() & 0o077 != 0;
    passes.then(|| database.gid())
}

#[cfg(not(unix))]
fn passing(_: &Path) -> Option<u32> {
    None
}

#[cfg(unix)]
fn close(folder: &Path, ours: bool, group: Option<u32>) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    /// The sticky bit of a folder that is shared on purpose, such as /tmp.
    const SHARED: u32 = 0o1000;
    let Ok(found) = fs::metadata(folder) else { return };
    let wanted = if group.is_some() { 0o710 } else { 0o700 };
    let passes = group.is_none_or(|group| group == found.gid() && found.mode() & 0o010 != 0);
    if found.mode() & 0o777 & !wanted == 0 && passes {
        return;
    }
    let closed = || {
        chown(folder, None, group)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(wanted))
    };
    if !ours || found.mode() & SHARED != 0 || closed().is_err() {
        let (path, mode) = (folder.display(), found.mode() & 0o7777);
        tracing::warn!(
            file.path = %path,
            file.mode = format!("{mode:o}"),
            remedy = format!("chmod {wanted:o}"),
            "found a folder that other users can access"
        );
    }
}

#[cfg(not(unix))]
fn close(_: &Path, _: bool, _: Option<u32>) {}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn own_folders_become_private_and_shared_ones_stay() -> io::Result<()> {
        let base = std::env::temp_dir().join(format!("authority-folder-{}", std::process::id()));
        let (fresh, old, theirs) = (base.join("a/b"), base.join("old"), base.join("theirs"));
        data_folder(&fresh, None)?;
        assert_eq!((mode(&base), mode(&base.join("a")), mode(&fresh)), (0o700, 0o700, 0o700));
        for folder in [&old, &theirs] {
            fs::create_dir(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(old.join("keys.ring"), "")?;
        fs::write(theirs.join("index.html"), "")?;
        data_folder(&old, None)?;
        data_folder(&theirs, None)?;
        assert_eq!((mode(&old), mode(&theirs)), (0o700, 0o755));
        private_folder(&theirs)?;
        assert_eq!(mode(&theirs), 0o700);
        fs::remove_dir_all(base)
    }
}
