//! The stored logins: one file in the user's configuration folder, readable only by its owner.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use authority_config::Sources;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    logins::device::{Provider, Tokens},
    outcome::Failure,
};

const FOLDER: &str = "agent-authority";
const FILE: &str = "logins.json";
const LOCK: &str = "logins.lock";

/// Every login of this user.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Logins {
    /// The service that commands call without `--url`; `None` for the local service.
    pub(crate) current: Option<Url>,
    services: BTreeMap<String, Login>,
}

/// A login at a service.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Login {
    Device { provider: Provider, tokens: Tokens },
    Development(Person),
}

/// A person of the development provider; without a role, the owner.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Person {
    pub(crate) role: Option<String>,
    pub(crate) tenant: String,
    pub(crate) email: Option<String>,
}

impl Logins {
    /// Reads the stored logins; none if the file does not exist.
    pub(crate) fn read(sources: &Sources) -> Result<Self, Failure> {
        let Ok(folder) = folder(sources) else { return Ok(Self::default()) };
        let file = folder.join(FILE);
        let failed =
            |why: &dyn std::fmt::Display| Failure::new(format!("`{}`: {why}", file.display()));
        let text = match fs::read_to_string(&file) {
            Err(error) if is_absent(&error) => return Ok(Self::default()),
            read => read.map_err(|error| failed(&error))?,
        };
        let mode = fs::metadata(&file).map_err(|error| failed(&error))?.mode();
        if mode & 0o077 != 0 {
            return Err(failed(
                &"the file holds tokens and other users can read it: chmod 600, then log in again",
            ));
        }
        serde_json::from_str(&text).map_err(|error| failed(&error))
    }

    /// Changes and writes the logins under a lock.
    pub(crate) fn change<T>(
        sources: &Sources,
        change: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Failure> {
        let _turn = Self::lock(sources)?;
        let mut logins = Self::read(sources)?;
        let changed = change(&mut logins);
        logins.write(sources)?;
        Ok(changed)
    }

    /// Waits until no other command is changing the logins. `None` without a folder for them.
    pub(crate) fn lock(sources: &Sources) -> Result<Option<File>, Failure> {
        let Ok(folder) = folder(sources) else { return Ok(None) };
        let open = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(LOCK));
        match open {
            Ok(file) => file.lock().map(|()| Some(file)).map_err(Failure::new),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Failure::new(format!("`{}`: {error}", folder.display()))),
        }
    }

    /// Writes the logins atomically.
    pub(crate) fn write(&self, sources: &Sources) -> Result<(), Failure> {
        let folder = folder(sources)?;
        let text = serde_json::to_string_pretty(self).map_err(Failure::new)?;
        replace(&folder, &text)
            .map_err(|error| Failure::new(format!("`{}`: {error}", folder.display())))
    }

    pub(crate) fn of(&self, url: &Url) -> Option<&Login> {
        self.services.get(url.as_str())
    }

    pub(crate) fn put(&mut self, url: &Url, login: Login) {
        self.services.insert(url.to_string(), login);
    }

    /// Removes a login and returns it, if it existed.
    pub(crate) fn forget(&mut self, url: &Url) -> Option<Login> {
        self.current.take_if(|current| current == url);
        self.services.remove(url.as_str())
    }
}

fn replace(folder: &Path, text: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = folder.join(format!("{FILE}.new"));
    // A file that an interrupted command left may have other permissions.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, folder.join(FILE))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the folder by the XDG Base Directory Specification.
pub(crate) fn folder(sources: &Sources) -> Result<PathBuf, Failure> {
    let of = |name: &str| {
        let found = sources.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let base = of("XDG_CONFIG_HOME").or_else(|| Some(of("HOME")?.join(".config")));
    base.map(|base| base.join(FOLDER)).ok_or_else(|| {
        Failure::usage("cannot save the login: set XDG_CONFIG_HOME or HOME to a folder")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_its_owners_alone() {
        let home = tempfile::tempdir().unwrap();
        let environment = vec![("HOME".to_owned(), home.path().display().to_string())];
        let sources = Sources { environment, ..Sources::default() };
        assert!(Logins::read(&sources).unwrap().current.is_none());
        let url: Url = "https://a.example".parse().unwrap();
        let person = Person { role: None, tenant: "acme".to_owned(), email: None };
        // This runs twice, because the folder with the lock exists only the second time.
        for _ in 0..2 {
            Logins::change(&sources, |logins| {
                logins.put(&url, Login::Development(person.clone()));
                logins.current = Some(url.clone());
            })
            .unwrap();
        }
        let folder = home.path().join(".config/agent-authority");
        let file = folder.join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert!(Logins::read(&sources).unwrap().of(&url).is_some());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Logins::read(&sources).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        Logins::change(&sources, |logins| logins.forget(&url)).unwrap();
        let logins = Logins::read(&sources).unwrap();
        assert!(logins.current.is_none() && logins.of(&url).is_none());
    }
}
