//! What this node remembers of each log apart from the database: the last checkpoint that it signed.
//!
//! A database can be restored to an earlier day, and would then have other leaves signed at places
//! that were signed before. So a checkpoint is signed only for a log that continues the one
//! remembered here; the files hold the signed notes themselves, for people as well.

use std::{collections::HashMap, fs, io, path::PathBuf};

use parking_lot::Mutex;

use crate::evidence::log::note::{Checkpoint, SignedCheckpoint};

pub(super) struct Witness {
    folder: PathBuf,
    /// By tenant.
    known: Mutex<HashMap<String, Option<Checkpoint>>>,
}

impl Witness {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, known: Mutex::default() }
    }

    /// The last checkpoint that this node signed for the tenant.
    ///
    /// # Errors
    /// When what was remembered cannot be read: nothing may be signed then.
    pub(super) fn last(&self, slug: &str) -> io::Result<Option<Checkpoint>> {
        if let Some(known) = self.known.lock().get(slug) {
            return Ok(known.clone());
        }
        let read = match fs::read_to_string(self.file(slug)) {
            Ok(note) => Some(SignedCheckpoint::parse(&note).map_err(io::Error::other)?.checkpoint),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        self.known.lock().insert(slug.to_owned(), read.clone());
        Ok(read)
    }

    /// Remembers a checkpoint that is committed, before who asked for it is answered.
    pub(super) fn keep(&self, slug: &str, checkpoint: &Checkpoint, note: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let (file, new) = (self.file(slug), self.folder.join(format!("{slug}.new")));
        fs::write(&new, note)?;
        fs::rename(&new, &file)?;
        self.known.lock().insert(slug.to_owned(), Some(checkpoint.clone()));
        Ok(())
    }

    fn file(&self, slug: &str) -> PathBuf {
        self.folder.join(slug)
    }
}
