//! The key-encryption keys: the only secret that is not in the database.
//!
//! A ring is text: one `id:base64` a line (or separated by commas, in an environment variable),
//! `#` opens a comment. The first key seals; all of them open, so that a new one is put in front,
//! what is stored is wrapped anew, and only then the old one is dropped.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};

use super::{Error, random};
use crate::config::data_folder;

const LONGEST_FILE: u64 = 64 * 1024;
const LONGEST_ID: usize = 32;

/// Several versions of the key-encryption key, the current one first.
pub struct KeyRing {
    keys: Vec<(String, LessSafeKey)>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.keys.iter().map(|(id, _)| id.as_str()).collect();
        f.debug_struct("KeyRing").field("ids", &ids).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// Reads a ring from a file that nobody but its owner may touch (0600 or less).
    pub fn load(path: &Path) -> Result<Self, Error> {
        let unusable =
            |what: &dyn fmt::Display| Error::Ring(format!("`{}`: {what}", path.display()));
        let mut file = fs::File::open(path).map_err(|e| unusable(&e))?;
        let about = file.metadata().map_err(|e| unusable(&e))?;
        if !about.is_file() {
            return Err(unusable(&"it is no plain file"));
        }
        refuse_shared(&about).map_err(|what| unusable(&what))?;
        if about.len() > LONGEST_FILE {
            return Err(unusable(&"it is over 64 KiB"));
        }
        let mut text = String::new();
        (&mut file).take(LONGEST_FILE).read_to_string(&mut text).map_err(|e| unusable(&e))?;
        Self::parse(&text)
    }

    /// Reads the file, or makes it with one new key where there is none.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            create(path, &Self::generate()?)
                .map_err(|e| Error::Ring(format!("`{}`: {e}", path.display())))?;
        }
        Self::load(path)
    }

    /// The text of a new ring of one key.
    pub fn generate() -> Result<String, Error> {
        let id = hex::encode(random::<4>()?);
        Ok(format!("{id}:{}\n", STANDARD.encode(random::<32>()?)))
    }

    /// Reads a ring's text. No message repeats any of it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut keys: Vec<(String, LessSafeKey)> = Vec::new();
        let entries = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        for entry in entries.flat_map(|line| line.split(',')).map(str::trim) {
            if entry.is_empty() {
                continue;
            }
            let (id, secret) = entry
                .split_once(':')
                .ok_or_else(|| Error::Ring("an entry is not `id:base64`".to_owned()))?;
            if id.is_empty()
                || id.len() > LONGEST_ID
                || !id.bytes().all(|b| b.is_ascii_alphanumeric())
            {
                return Err(Error::Ring("an id is not 1 to 32 letters and digits".to_owned()));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(Error::Ring(format!("the id `{id}` comes twice")));
            }
            let wrong = || Error::Ring(format!("the key `{id}` is not base64 of 32 bytes"));
            let secret = STANDARD.decode(secret).map_err(|_| wrong())?;
            let key = UnboundKey::new(&AES_256_GCM, &secret).map_err(|_| wrong())?;
            keys.push((id.to_owned(), LessSafeKey::new(key)));
        }
        if keys.is_empty() {
            return Err(Error::Ring("it holds no key".to_owned()));
        }
        Ok(Self { keys })
    }

    /// The key that seals, and its id.
    pub(super) fn current(&self) -> Result<(&str, &LessSafeKey), Error> {
        let first = self.keys.first().ok_or_else(|| Error::Ring("it holds no key".to_owned()))?;
        Ok((&first.0, &first.1))
    }

    pub(super) fn find(&self, id: &str) -> Option<&LessSafeKey> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, key)| key)
    }
}

#[cfg(unix)]
fn refuse_shared(about: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode() & 0o777;
    let of_others = mode % 0o100;
    if of_others == 0 {
        return Ok(());
    }
    Err(format!("others may reach it (mode {mode:o}); run `chmod 600` on it"))
}

#[cfg(not(unix))]
fn refuse_shared(_: &fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// Writes a file of its own and links it into place: two nodes that start together on one folder
/// end with one ring, and nobody reads half of it.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() {
        data_folder(folder, None)?;
    }
    let own = random::<8>().map_err(io::Error::other)?;
    let draft = folder.join(format!(".ring-{}", hex::encode(own)));
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
