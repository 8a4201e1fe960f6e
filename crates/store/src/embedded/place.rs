//! The folder of the embedded database, and the user that runs it.

use std::{
    fmt::Write,
    fs,
    io::{self, ErrorKind},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use nix::unistd::{User, geteuid};

use super::{
    elsewhere::{self, fingerprint},
    error::Error,
};
use authority_process::folder::data_folder;

/// The maximum length of the socket's folder. Its path must fit `sun_path` on all systems (104
/// bytes on macOS).
const LONGEST_SOCKET_FOLDER: usize = 103 - "/.s.PGSQL.5432.lock".len();

/// Another user for running the server. Postgres refuses to run as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

#[derive(Clone, Debug)]
pub(super) struct ServerFolder {
    pub(super) home: PathBuf,
    /// The folder of the socket: `home`, or a shorter path.
    pub(super) sockets: PathBuf,
    pub(super) user: Option<Other>,
    /// Whether `home` differs from the requested folder, which is then a link to it.
    pub(super) is_elsewhere: bool,
    wanted: PathBuf,
}

impl ServerFolder {
    /// Creates the folders: `data_dir/postgres`, private to the server's user.
    pub(super) fn prepare(data_dir: &Path) -> Result<Self, Error> {
        if version_in(&data_dir.join("postgres")).is_none() {
            // This check comes first: if it fails, the folder's mode is unchanged, and another user of
            // its group can start the service later.
            check_name()?;
        }
        let before = fs::metadata(data_dir).ok();
        let is_used = fs::read_dir(data_dir).is_ok_and(|mut files| files.next().is_some());
        if before.is_none() {
            data_folder(data_dir, None).map_err(Error::io("make", data_dir))?;
        }
        let wanted = data_dir.canonicalize().map_err(Error::io("find", data_dir))?.join("postgres");
        let user = other_user(&wanted)?;
        // If the database's user does not own the data folder, it may only pass through the folder.
        let group = user.filter(|user| owner(data_dir) != Some(user.uid)).map(|user| user.gid);
        // A private folder stays private.
        if before.is_none_or(|found| found.mode() & 0o077 != 0) {
            data_folder(data_dir, group).map_err(Error::io("make", data_dir))?;
        }
        let (home, is_elsewhere) = home(&wanted, user, is_used)?;
        let sockets = if home.as_os_str().len() > LONGEST_SOCKET_FOLDER {
            PathBuf::from(format!("/tmp/agent-authority-{:016x}", fingerprint(&home)))
        } else {
            home.clone()
        };
        for folder in [&home, &sockets] {
            make_private(folder, user).map_err(Error::io("make a private folder of", folder))?;
        }
        Ok(Self { home, sockets, user, is_elsewhere, wanted })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    pub(super) fn left_behind(&self) -> Vec<PathBuf> {
        elsewhere::left_behind(&self.wanted, &self.home)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// Returns the Postgres version that created the data directory; `None` if it does not exist
    /// yet.
    pub(super) fn version(&self) -> Option<u32> {
        version_in(&self.home)
    }

    /// Returns a URL for libpq and for [`crate::Address`].
    pub(super) fn url(&self, user: &str, database: &str) -> String {
        let host = percent(self.sockets.as_os_str().as_bytes());
        format!("postgres://{user}@{host}/{}", percent(database.as_bytes()))
    }
}

/// Percent-encodes all characters except the unreserved characters of URLs.
fn percent(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a `String` does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Fails if initdb would run as a user without a name, which containers may have.
fn check_name() -> Result<(), Error> {
    let uid = geteuid();
    // Root runs initdb as another user, which has a name.
    if uid.is_root() || !matches!(User::from_uid(uid), Ok(None)) {
        return Ok(());
    }
    Err(Error::NamelessUser { uid: uid.as_raw() })
}

fn owner(folder: &Path) -> Option<u32> {
    fs::metadata(folder).ok().map(|found| found.uid())
}

fn version_in(home: &Path) -> Option<u32> {
    fs::read_to_string(home.join("data/PG_VERSION")).ok()?.trim().parse().ok()
}

/// Returns the user that the server must run as; `None` for the current user.
///
/// For root, it is the folder's owner if that is another user (`sudo` in the user's own checkout),
/// otherwise `postgres` or `nobody`.
fn other_user(wanted: &Path) -> Result<Option<Other>, Error> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = wanted.ancestors().find_map(|folder| fs::metadata(folder).ok());
    let owner = owner.map(|found| found.uid()).filter(|uid| *uid != 0);
    // initdb looks up its user by name.
    let owner = owner.and_then(|uid| User::from_uid(uid.into()).ok().flatten());
    let named = ["postgres", "_postgres", "nobody"].iter();
    let user = owner.or_else(|| named.into_iter().find_map(|name| User::from_name(name).ok()?));
    let user = user.ok_or(Error::NoUser)?;
    Ok(Some(Other { uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
}

/// Returns the requested folder if the server's user has access to it, otherwise a linked folder.
///
/// An existing database stays where it is, even if the mode of a folder changes.
fn home(wanted: &Path, user: Option<Other>, is_used: bool) -> Result<(PathBuf, bool), Error> {
    let linked = elsewhere::linked(wanted)?;
    let Some(user) = user else {
        return match linked {
            None => Ok((wanted.to_owned(), false)),
            Some(home) => Err(Error::NotRoot { link: wanted.to_owned(), home }),
        };
    };
    if let Some(home) = linked {
        return Ok((home, true));
    }
    let barrier = barrier(wanted.parent().unwrap_or(wanted), user);
    if version_in(wanted).is_some() {
        return match barrier {
            None => Ok((wanted.to_owned(), false)),
            Some(Barrier { folder, mode, remedy }) => Err(Error::Unreachable {
                path: wanted.to_owned(),
                uid: user.uid,
                barrier: folder.to_owned(),
                mode,
                remedy,
            }),
        };
    }
    let unlinked = is_used.then(|| elsewhere::unlinked(wanted)).flatten();
    if barrier.is_none() && unlinked.is_none() {
        return Ok((wanted.to_owned(), false));
    }
    Ok((elsewhere::make(wanted, unlinked)?, true))
}

/// A folder that a user may not enter, its mode, and the `chmod` mode that lets the user enter.
struct Barrier<'p> {
    folder: &'p Path,
    mode: u32,
    remedy: &'static str,
}

/// Returns the first folder on the path to `folder`, from the root, that the user may not enter. This
/// may be `folder` itself.
fn barrier(folder: &Path, user: Other) -> Option<Barrier<'_>> {
    let closed = |folder: &Path| {
        // A missing folder cannot be entered.
        let found = fs::metadata(folder).ok();
        let (may_enter, remedy) = match &found {
            Some(found) if found.uid() == user.uid => (0o100, "u+x"),
            Some(found) if found.gid() == user.gid => (0o010, "g+x"),
            _ => (0o001, "o+x"),
        };
        let mode = found.map_or(0, |found| found.mode() & 0o7777);
        (mode & may_enter == 0).then_some((mode, remedy))
    };
    let closed = folder.ancestors().filter_map(|folder| Some((folder, closed(folder)?))).last();
    closed.map(|(folder, (mode, remedy))| Barrier { folder, mode, remedy })
}

fn make_private(folder: &Path, user: Option<Other>) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(fault) if fault.kind() != ErrorKind::AlreadyExists => return Err(fault),
        _ => {}
    }
    // In /tmp, another user may have created the folder first.
    let found = fs::symlink_metadata(folder)?;
    let me = geteuid().as_raw();
    let is_ours = found.uid() == me || user.is_some_and(|user| user.uid == found.uid());
    if !found.is_dir() || !is_ours {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if let Some(user) = user {
        chown(folder, Some(user.uid), Some(user.gid))?;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}
