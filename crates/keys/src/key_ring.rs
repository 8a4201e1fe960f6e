//! The key ring's file.

use std::path::Path;

use authority_crypto::KeyRing;

use super::{Error, private_file};

/// Reads a ring from a private file.
pub fn load(path: &Path) -> Result<KeyRing, Error> {
    Ok(KeyRing::parse(&private_file::read(path).map_err(Error::RingFile)?)?)
}

/// Reads the file. Creates it with one new key if it does not exist.
pub fn load_or_create(path: &Path) -> Result<KeyRing, Error> {
    private_file::make(path, KeyRing::generate).map_err(Error::RingFile)?;
    load(path)
}
