//! Private folders: the data folder has keys, sockets and tenants' logs.

use std::{fs, io, path::Path};

/// Creates a folder of the service, and missing parents, for this user only (mode 0700). An existing one is made
/// private.
///
/// # Errors
/// When it cannot be made.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    make(folder)?;
    close(folder, true, None);
    Ok(())
}

/// Creates the data folder likewise. An existing one is made private if it is empty or has the service's
/// own files; for any other the log warns. `group` may pass through, if the database runs as another user
/// (mode 0710). A folder that an existing database passes through stays so, whoever creates it: the next
/// start needs it.
///
/// # Errors
/// When it cannot be made.
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

/// The group of a database in this folder that another user runs, unless the folder is closed to it, which it
/// then stays.
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
    /// Such as /tmp: shared on purpose.
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
            "others may enter the folder {path} (mode {mode:o}); run `chmod {wanted:o}` on it"
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
