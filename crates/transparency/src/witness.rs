//! The last checkpoint of each log that this node has seen, stored apart from the database.
//!
//! A database can be restored to an earlier state; then other leaves would be signed at indexes
//! that were signed before. So a checkpoint is signed only for a log that continues the one
//! remembered here. The files are the signed notes themselves, readable by people. A node remembers
//! the checkpoints that it signs and, by following the logs' heads (`follow.rs`), those of other
//! nodes, so that the first node to seal after a restore notices it.
//!
//! A checkpoint is written before the commit and takes its name after it. So a full disk prevents the
//! commit, and what is committed is remembered by a rename, which needs no room.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;

use authority_core::{config::private_folder, store::new_id};
use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};

/// The name of a file that nothing is remembered by, and its size in bytes.
const PROBE: &str = ".room";
const PROBE_SIZE: usize = 8192;
/// The age from which a prepared checkpoint belongs to no transaction any more.
const LEFT: Duration = Duration::from_hours(1);

pub(super) struct Witness {
    folder: PathBuf,
    /// One writer at a time; other nodes may share the folder.
    writing: Mutex<()>,
}

impl Witness {
    pub(super) fn new(folder: PathBuf) -> Self {
        make_private(&folder);
        remove_left(&folder);
        Self { folder, writing: Mutex::default() }
    }

    /// The last known checkpoint of the tenant's log.
    ///
    /// # Errors
    /// The file cannot be read: then nothing may be signed.
    pub(super) fn last(&self, slug: &str) -> io::Result<Option<Checkpoint>> {
        match fs::read_to_string(self.folder.join(slug)) {
            Ok(note) => {
                let note = SignedCheckpoint::parse(&note).map_err(io::Error::other)?;
                Ok(Some(note.checkpoint))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a checkpoint that is not committed yet. Only [`Self::remember`] makes it the last known.
    ///
    /// # Errors
    /// The folder cannot be written; nothing is left in it.
    pub(super) fn prepare(&self, slug: &str, note: &str) -> io::Result<Prepared> {
        private_folder(&self.folder)?;
        let path = self.folder.join(format!("{slug}.{}", new_id()));
        let mut file = private_file(&path)?;
        let prepared = Prepared { path };
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        Ok(prepared)
    }

    /// Writes as much as a checkpoint has, and removes it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn try_writing(&self) -> io::Result<()> {
        self.prepare(PROBE, &"x".repeat(PROBE_SIZE)).map(drop)
    }

    /// Remembers a committed checkpoint. Of two with one origin the larger stays, since another
    /// node may be ahead.
    ///
    /// # Errors
    /// The folder cannot be written: the last known checkpoint stays.
    pub(super) fn remember(
        &self,
        slug: &str,
        checkpoint: &Checkpoint,
        prepared: &Prepared,
    ) -> io::Result<()> {
        let _turn = self.writing.lock();
        if self.knows(slug, checkpoint)? {
            return Ok(());
        }
        fs::rename(&prepared.path, self.folder.join(slug))?;
        sync(&self.folder)
    }

    /// Writes and remembers a committed checkpoint, unless it is known.
    ///
    /// # Errors
    /// The folder cannot be read or written: the last known checkpoint stays.
    pub(super) fn keep(&self, slug: &str, checkpoint: &Checkpoint, note: &str) -> io::Result<()> {
        if self.knows(slug, checkpoint)? {
            return Ok(());
        }
        self.remember(slug, checkpoint, &self.prepare(slug, note)?)
    }

    fn knows(&self, slug: &str, checkpoint: &Checkpoint) -> io::Result<bool> {
        let is_behind =
            |known: Checkpoint| known.origin == checkpoint.origin && known.size >= checkpoint.size;
        Ok(self.last(slug)?.is_some_and(is_behind))
    }
}

/// A checkpoint on the disk that is not the last known one. Dropping it removes its file.
pub(super) struct Prepared {
    path: PathBuf,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Once it is remembered there is none.
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, file = %self.path.display(), "the file cannot be removed");
            }
            _ => {}
        }
    }
}

/// Creates a file that only this user can read, since it reveals how many decisions a tenant has.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes files of older versions private, which were created without the mode.
fn make_private(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    #[cfg(unix)]
    for file in files.flatten() {
        use std::os::unix::fs::PermissionsExt;
        let closed = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600));
        if let Err(error) = closed {
            tracing::warn!(%error, file = %file.path().display(), "the file may be readable by others");
        }
    }
    if let Err(error) = private_folder(folder) {
        tracing::warn!(%error, "the folder of logs cannot be closed to others");
    }
}

/// Removes what processes that were killed had prepared. Other nodes may share the folder.
fn remove_left(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A slug has no dot.
        let is_prepared = file.file_name().as_encoded_bytes().contains(&b'.');
        let age = file.metadata().and_then(|about| about.modified()).map(|at| at.elapsed());
        if is_prepared && age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT)) {
            // Removing it is of no importance.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Syncs the folder: only then does a renamed file survive a power failure.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use authority_core::clock::Clock;
    use authority_evidence::log::note::signed;

    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn only_what_is_remembered_stays() {
        let folder = std::env::temp_dir().join(format!("authority-witness-{}", new_id()));
        let witness = Witness::new(folder.clone());
        let checkpoint =
            |size| Checkpoint { origin: "example.org/log/acme".to_owned(), size, root: [7; 32] };
        let note = |size| {
            let checkpoint = checkpoint(size);
            signed(&checkpoint.body(), &checkpoint.origin, [0; 4], &[0; 64])
        };
        drop(witness.prepare("acme", &note(1)).unwrap());
        witness.try_writing().unwrap();
        assert_eq!(files(&folder), Vec::<String>::new());
        for (size, known) in [(2, 2), (1, 2), (3, 3)] {
            let prepared = witness.prepare("acme", &note(size)).unwrap();
            witness.remember("acme", &checkpoint(size), &prepared).unwrap();
            drop(prepared);
            assert_eq!(files(&folder), ["acme"]);
            assert_eq!(witness.last("acme").unwrap().unwrap().size, known);
        }
        // Another node's, which is being signed, and one of a process that is gone.
        fs::write(folder.join("acme.new"), "").unwrap();
        let old = File::create(folder.join("acme.old")).unwrap();
        let now = std::time::SystemTime::from(Clock::default().now());
        old.set_modified(now - 2 * LEFT).unwrap();
        drop(Witness::new(folder.clone()));
        let mut left = files(&folder);
        left.sort();
        assert_eq!(left, ["acme", "acme.new"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
