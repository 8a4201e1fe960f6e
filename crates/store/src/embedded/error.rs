//! The reasons why the embedded database is unavailable, with remedies.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Each message includes a remedy for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no PostgreSQL server (version 14 or newer) was found on this machine\n\n  \
         install one:      script/postgres\n                    \
         (or: apt-get install postgresql, dnf install postgresql-server,\n                     \
         apk add postgresql, pacman -S postgresql, brew install postgresql@17)\n  \
         or name a folder: AGENT_AUTHORITY_PG_BIN=/path/with/initdb/and/postgres\n  \
         or use another:   DATABASE_URL=postgres://user:password@host/database"
    )]
    NoPrograms,
    #[error(
        "AGENT_AUTHORITY_PG_BIN is `{}`, which has no `initdb` and `postgres` of version 14 or newer that \
         run here; name another folder, or unset it", folder.display()
    )]
    NotThere { folder: PathBuf },
    #[error("{variable} is `{}`, a relative path; give an absolute path, or unset it", folder.display())]
    Relative { variable: &'static str, folder: PathBuf },
    #[error(
        "the database was created by PostgreSQL {made}, which is not installed; \
         install that version, or choose another --data-dir"
    )]
    OtherVersion { made: u32 },
    #[error(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` for it; \
         create one, or start the service as another user"
    )]
    NoUser,
    #[error(
        "PostgreSQL's initdb needs a name for user {uid}, which has none; add the user to /etc/passwd, or \
         use another database: DATABASE_URL=postgres://user:password@host/database"
    )]
    NamelessUser { uid: u32 },
    #[error(
        "the database in `{}` is no longer accessible to its user {uid}, because `{}` has mode \
         {mode:04o}; run `chmod {remedy} {}`", path.display(), barrier.display(), barrier.display()
    )]
    Unreachable { path: PathBuf, uid: u32, barrier: PathBuf, mode: u32, remedy: &'static str },
    #[error(
        "`{}` is a link to `{}`, which the service did not create; remove the link, or choose another \
         --data-dir", link.display(), home.display()
    )]
    ForeignLink { link: PathBuf, home: PathBuf },
    #[error(
        "the database of this data folder is in `{}`, where a service run by root keeps it; start the service \
         as root, or choose another --data-dir (`{}` links to it)", home.display(), link.display()
    )]
    NotRoot { link: PathBuf, home: PathBuf },
    #[error("a service runs on `{}`: stop it first", data_dir.display())]
    InUse { data_dir: PathBuf },
    #[error("cannot {doing} `{}`: {fault}", path.display())]
    Io { doing: &'static str, path: PathBuf, fault: io::Error },
    #[error("the database could not be initialised: {0}")]
    Init(String),
    #[error("the database stopped while it was starting; its log ends:\n{log}")]
    Stopped { log: String },
    #[error("the database was not ready within a minute; its log ends:\n{log}")]
    Slow { log: String },
    #[error("the database (process {pid}) does not stop")]
    Stuck { pid: i32 },
    #[error("the launcher crashed: {0}")]
    Crashed(String),
}

impl Error {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |fault| Self::Io { doing, path, fault }
    }
}
