//! Finds the programs of a Postgres server on this machine.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::error::Error;

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

#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

impl Programs {
    /// Returns the newest programs, or the programs of version `made`, which created a data
    /// directory.
    ///
    /// If the user names a folder, only that folder is searched.
    pub(super) fn find(named: Option<&Path>, made: Option<u32>) -> Result<Self, Error> {
        let folders = named.map_or_else(candidates, |folder| vec![folder.to_owned()]);
        let mut found: Vec<_> = folders.into_iter().filter_map(Self::of).collect();
        found.sort_by_key(|programs| std::cmp::Reverse(programs.major));
        let is_right = |programs: &Programs| made.is_none_or(|made| made == programs.major);
        match (found.iter().find(|programs| is_right(programs)), made) {
            (Some(programs), _) => Ok(programs.clone()),
            (None, Some(made)) => Err(Error::OtherVersion { made }),
            (None, None) => Err(Error::NoPrograms),
        }
    }

    fn of(folder: PathBuf) -> Option<Self> {
        if !folder.join("initdb").is_file() || !folder.join("postgres").is_file() {
            return None;
        }
        let told = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let major = major(&String::from_utf8_lossy(&told.stdout))?;
        (major >= OLDEST).then_some(Self { folder, major })
    }
}

/// Returns the major version in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn major(told: &str) -> Option<u32> {
    let version = told.split_once(") ")?.1;
    version.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
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
        folders.extend(std::env::split_paths(&path));
    }
    folders
}

#[cfg(test)]
mod tests {
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
