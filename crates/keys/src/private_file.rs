//! Files with secrets. Only their owner may access them, with one exception for a file of root.

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
};

use authority_crypto::random;

use authority_process::folder::data_folder;

/// The maximum size of a file, in bytes.
const LONGEST_FILE: u64 = 64 * 1024;

/// Reads a file that only its owner may access (0600 or less), or that belongs to root and that a
/// group of this process may read (0640 or less).
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
    use std::os::unix::fs::MetadataExt;
    let access = Access { mode: about.mode() & 0o777, owner: about.uid(), group: about.gid() };
    let Some(remedy) = access.remedy(Reader::of_process)? else { return Ok(()) };
    let Access { mode, .. } = access;
    Err(format!("other users can access it (mode {mode:o}); {remedy}"))
}

/// The permissions of a file.
#[cfg(unix)]
struct Access {
    mode: u32,
    owner: u32,
    group: u32,
}

/// The user of a process and its groups.
#[cfg(unix)]
struct Reader {
    user: u32,
    groups: Vec<u32>,
}

#[cfg(unix)]
impl Access {
    /// Returns how to make the file private, or `None` if it is private.
    ///
    /// Kubernetes gives the files of a Secret to root and to the pod's group (0440): the pod's user
    /// does not own them. As with PostgreSQL's keys, a file of root may therefore be readable by a
    /// group of this process. Any other owner can run `chmod 600`.
    fn remedy(
        &self,
        reader: impl FnOnce() -> Result<Reader, String>,
    ) -> Result<Option<&'static str>, String> {
        /// The group or others have any access.
        const NOT_PRIVATE: u32 = 0o077;
        /// The group may write, or others have any access.
        const TOO_OPEN: u32 = 0o037;
        if self.mode & NOT_PRIVATE == 0 {
            return Ok(None);
        }
        let reader = reader()?;
        if self.owner != ROOT || reader.user == ROOT {
            return Ok(Some("run `chmod 600` on it"));
        }
        if self.mode & TOO_OPEN != 0 {
            return Ok(Some(
                "run `chmod 640` on it, or set `defaultMode: 0440` for a Secret of Kubernetes",
            ));
        }
        let is_ours = reader.groups.contains(&self.group);
        Ok((!is_ours).then_some(
            "run `chmod 600` on it, or give it to a group of this user, on Kubernetes the pod's `fsGroup`",
        ))
    }
}

#[cfg(unix)]
const ROOT: u32 = 0;

#[cfg(unix)]
impl Reader {
    fn of_process() -> Result<Self, String> {
        use rustix::process::{Gid, getegid, geteuid, getgroups};
        let further = getgroups().map_err(|e| format!("this user's groups are unknown: {e}"))?;
        let groups = std::iter::once(getegid()).chain(further);
        Ok(Self { user: geteuid().as_raw(), groups: groups.map(Gid::as_raw).collect() })
    }
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 65532;
    const GROUP: u32 = 2000;

    fn remedy(mode: u32, owner: u32, group: u32, user: u32) -> Option<&'static str> {
        let reader = || Ok(Reader { user, groups: vec![user, GROUP] });
        Access { mode, owner, group }.remedy(reader).unwrap()
    }

    #[test]
    fn a_file_is_its_owners_alone_or_roots_and_readable_by_a_group_of_this_process() {
        for (mode, owner, group) in [
            (0o600, USER, USER),
            (0o400, USER, GROUP),
            (0o600, ROOT, ROOT),
            // A Secret of Kubernetes with `fsGroup`.
            (0o440, ROOT, GROUP),
            (0o640, ROOT, GROUP),
            (0o440, ROOT, USER),
        ] {
            assert_eq!(remedy(mode, owner, group, USER), None, "{mode:o} {owner}:{group}");
        }
    }

    #[test]
    fn every_other_file_is_refused_with_a_remedy() {
        for (mode, owner, group, part) in [
            // This user can close its own file.
            (0o640, USER, GROUP, "`chmod 600`"),
            (0o440, USER, USER, "`chmod 600`"),
            // Another user could change it.
            (0o440, 1000, GROUP, "`chmod 600`"),
            (0o640, 1000, GROUP, "`chmod 600`"),
            (0o440, ROOT, ROOT, "`fsGroup`"),
            (0o440, ROOT, 2001, "`fsGroup`"),
            (0o460, ROOT, GROUP, "`chmod 640`"),
            (0o420, ROOT, GROUP, "`chmod 640`"),
            (0o450, ROOT, GROUP, "`chmod 640`"),
            (0o444, ROOT, GROUP, "`defaultMode: 0440`"),
            (0o644, ROOT, ROOT, "`defaultMode: 0440`"),
            (0o641, ROOT, GROUP, "`chmod 640`"),
            (0o602, ROOT, GROUP, "`chmod 640`"),
        ] {
            let told = remedy(mode, owner, group, USER);
            let is_named = told.is_some_and(|remedy| remedy.contains(part));
            assert!(is_named, "{mode:o} {owner}:{group}: {told:?}");
        }
        // A process of root owns the file.
        assert!(remedy(0o440, ROOT, ROOT, ROOT).is_some());
        assert!(remedy(0o440, ROOT, GROUP, ROOT).is_some());
    }

    #[test]
    fn the_error_names_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(
            error.contains("ring`") && error.contains("(mode 604); run `chmod 600`"),
            "{error}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap(), "secret");
    }

    #[test]
    fn unknown_groups_refuse() {
        let access = Access { mode: 0o440, owner: ROOT, group: GROUP };
        assert!(access.remedy(|| Err("unknown".to_owned())).is_err());
    }
}
