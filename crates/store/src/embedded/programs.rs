//! Finds the programs of a Postgres server on this machine.

use std::{
    cmp::Reverse,
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
};

use super::{error::Error, place::Other, process};

/// The oldest version with sufficient partition triggers and procedures for the migrations.
const OLDEST: u32 = 14;

/// The folders where packages install the programs: `<root>/bin`, or `<root>/<version>/bin`.
const ROOTS: &[&str] = &[
    "/usr/lib/postgresql",
    "/usr/libexec",
    "/usr/local/pgsql",
    "/opt/homebrew/opt",
    "/usr/local/opt",
    "/home/linuxbrew/.linuxbrew/opt",
    "/Applications/Postgres.app/Contents/Versions",
    "/Library/PostgreSQL",
    "/opt/local/lib",
];

/// The variable with the user's own folder of programs.
pub(super) const CHOSEN: &str = "AGENT_AUTHORITY_PG_BIN";
/// The variable by which the launchers of the npm and Python packages pass the folder of their own
/// dependency. It is used if the machine has no programs.
const LAUNCHERS: &str = "AGENT_AUTHORITY_LAUNCHER_PG_BIN";

/// The place where programs were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Chosen,
    Machine,
    Launcher,
}

#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
    pub(super) origin: Origin,
}

impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Chosen => "as chosen",
            Origin::Machine => "of this machine",
            Origin::Launcher => "of the installed package",
        };
        write!(f, "PostgreSQL {} {origin} ({})", self.major, self.folder.display())
    }
}

impl Programs {
    /// Returns the newest programs, or the programs of version `made`, which created a data
    /// directory.
    ///
    /// If the user names a folder, here or in the environment, only that folder is searched.
    /// Otherwise the machine's programs come before a launcher's. Their versions are read as `user`,
    /// who will run the server: root does not run a program that another user may have put there.
    pub(super) fn find(
        named: Option<&Path>,
        made: Option<u32>,
        user: Option<Other>,
    ) -> Result<Self, Error> {
        if let Some(folder) = named {
            return Self::first_of([(Origin::Chosen, vec![folder.to_owned()])], made, user);
        }
        if let Some(folder) = folder_in(CHOSEN)? {
            if Self::of(folder.clone(), Origin::Chosen, user).is_none() {
                return Err(Error::NotThere { folder });
            }
            return Self::first_of([(Origin::Chosen, vec![folder])], made, user);
        }
        let launchers = folder_in(LAUNCHERS)?.into_iter().collect();
        let places = [(Origin::Machine, candidates()), (Origin::Launcher, launchers)];
        Self::first_of(places, made, user)
    }

    fn first_of<const N: usize>(
        places: [(Origin, Vec<PathBuf>); N],
        made: Option<u32>,
        user: Option<Other>,
    ) -> Result<Self, Error> {
        let is_right = |programs: &Self| made.is_none_or(|made| made == programs.major);
        for (origin, folders) in places {
            let found = folders.into_iter().filter_map(|folder| Self::of(folder, origin, user));
            let mut found: Vec<_> = found.collect();
            found.sort_by_key(|programs| Reverse(programs.major));
            if let Some(programs) = found.into_iter().find(is_right) {
                return Ok(programs);
            }
        }
        Err(made.map_or(Error::NoPrograms, |made| Error::OtherVersion { made }))
    }

    fn of(folder: PathBuf, origin: Origin, user: Option<Other>) -> Option<Self> {
        if !folder.join("initdb").is_file() || !folder.join("postgres").is_file() {
            return None;
        }
        let mut postgres = process::command(&folder.join("postgres"), user);
        let told = postgres.arg("--version").output().ok()?;
        let major = major(&String::from_utf8_lossy(&told.stdout))?;
        (major >= OLDEST).then_some(Self { folder, major, origin })
    }
}

/// Returns the major version in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn major(told: &str) -> Option<u32> {
    let version = told.split_once(") ")?.1;
    version.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the folder in a variable of the environment; `None` if it is empty. Fails if the folder
/// depends on the working directory.
#[expect(
    clippy::disallowed_methods,
    reason = "the path of programs is not a setting of this service"
)]
fn folder_in(variable: &'static str) -> Result<Option<PathBuf>, Error> {
    let folder = std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match folder {
        Some(folder) if !folder.is_absolute() => Err(Error::Relative { variable, folder }),
        folder => Ok(folder),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the path of programs is not a setting of this service"
)]
fn candidates() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for root in ROOTS.iter().map(Path::new) {
        folders.push(root.join("bin"));
        let below = std::fs::read_dir(root).into_iter().flatten().flatten();
        folders.extend(below.map(|entry| entry.path().join("bin")));
    }
    folders.extend((OLDEST..OLDEST + 20).map(|major| format!("/usr/pgsql-{major}/bin").into()));
    if let Some(path) = std::env::var_os("PATH") {
        folders.extend(absolute(&path));
    }
    folders
}

/// Returns the absolute folders of a search path.
///
/// An empty entry means the working directory, which may belong to anyone.
fn absolute(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// Creates a folder with programs that only print their version.
    fn install(root: &Path, major: u32) -> PathBuf {
        let folder = root.join(major.to_string());
        fs::create_dir_all(&folder).unwrap();
        for name in ["initdb", "postgres"] {
            let program = folder.join(name);
            fs::write(&program, format!("#!/bin/sh\necho '{name} (PostgreSQL) {major}.1'\n"))
                .unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn the_machines_programs_come_first_unless_others_created_the_database() {
        let root = tempfile::tempdir().unwrap();
        let [old, new, launchers] = [14, 16, 18].map(|major| install(root.path(), major));
        let too_old = install(root.path(), 13);
        let find = |machine: &[&PathBuf], made| {
            let machine = machine.iter().map(|folder| (*folder).clone()).collect();
            let places = [(Origin::Machine, machine), (Origin::Launcher, vec![launchers.clone()])];
            Programs::first_of(places, made, None)
                .map(|programs| (programs.origin, programs.folder))
        };
        let machine = [&old, &new];
        assert_eq!(find(&machine, None).unwrap(), (Origin::Machine, new.clone()));
        assert_eq!(find(&machine, Some(14)).unwrap(), (Origin::Machine, old.clone()));
        assert_eq!(find(&machine, Some(18)).unwrap(), (Origin::Launcher, launchers.clone()));
        assert_eq!(find(&[&too_old], None).unwrap(), (Origin::Launcher, launchers.clone()));
        let other = find(&machine, Some(17)).unwrap_err();
        assert!(matches!(other, Error::OtherVersion { made: 17 }), "{other}");
    }

    #[test]
    fn the_working_directory_is_not_searched() {
        let found: Vec<_> = absolute(OsStr::new(":.:bin::/usr/bin:../bin:/bin:")).collect();
        assert_eq!(found, [Path::new("/usr/bin"), Path::new("/bin")]);
    }

    #[test]
    fn versions_are_read() {
        for (told, major) in [
            ("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres: not found", None),
        ] {
            assert_eq!(super::major(told), major, "{told}");
        }
    }
}
