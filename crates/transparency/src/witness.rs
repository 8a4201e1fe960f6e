//! The last checkpoint of each log that this node has seen, stored apart from the database.
//!
//! A database can be restored to an earlier state. Without protection, the service could then sign
//! different leaves at indexes that it had already signed. A checkpoint is therefore signed only
//! for a log that continues the checkpoint remembered here. The files are the signed notes
//! themselves, as text. A node remembers the checkpoints that it signs. By following the logs'
//! heads (`follow.rs`) it also remembers the checkpoints of other nodes. The first node that seals
//! after a restore therefore notices the restore.
//!
//! A checkpoint is written to a temporary file before the commit. A full disk therefore prevents
//! the commit. After the commit the file is renamed, which needs no disk space.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;

use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};
use authority_process::folder::private_folder;
use authority_store::new_id;

/// The name and size in bytes of a file that only tests whether the folder is writable.
const PROBE: &str = ".room";
const PROBE_SIZE: usize = 8192;
/// The age from which a temporary file can't belong to a running transaction.
const LEFT: Duration = Duration::from_hours(1);

pub(super) struct Witness {
    folder: PathBuf,
    /// Serialises the writers of this node. Other nodes may share the folder.
    writing: Mutex<()>,
}

impl Witness {
    pub(super) fn new(folder: PathBuf) -> Self {
        make_private(&folder);
        remove_left(&folder);
        Self { folder, writing: Mutex::default() }
    }

    /// Returns the last known checkpoint of the tenant's log.
    ///
    /// # Errors
    /// The file cannot be read. The log must then not be signed.
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

    /// Writes a checkpoint that is not committed yet to a temporary file.
    ///
    /// Only [`Self::remember`] makes it the last known checkpoint.
    ///
    /// # Errors
    /// The folder cannot be written. No file remains in it.
    pub(super) fn prepare(&self, slug: &str, note: &str) -> io::Result<Prepared> {
        private_folder(&self.folder)?;
        let path = self.folder.join(format!("{slug}.{}", new_id()));
        let mut file = private_file(&path)?;
        let prepared = Prepared { path };
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        Ok(prepared)
    }

    /// Writes a file of a checkpoint's size and removes it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn try_writing(&self) -> io::Result<()> {
        self.prepare(PROBE, &"x".repeat(PROBE_SIZE)).map(drop)
    }

    /// Remembers a committed checkpoint.
    ///
    /// If the remembered checkpoint has the same origin and is not smaller, it is kept: another
    /// node may be ahead.
    ///
    /// # Errors
    /// The folder cannot be written. The last known checkpoint is not changed.
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
    /// The folder cannot be read or written. The last known checkpoint is not changed.
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

/// A checkpoint in a temporary file. Dropping it removes the file.
pub(super) struct Prepared {
    path: PathBuf,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // If the checkpoint was remembered, its file was renamed and is not found here.
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.path.display();
                tracing::warn!(%error, file.path = %path, "failed to remove a temporary file");
            }
            _ => {}
        }
    }
}

/// Creates a file that only this user can read. A checkpoint reveals how many decisions a tenant
/// has.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes files private that older versions created without the mode.
fn make_private(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    #[cfg(unix)]
    for file in files.flatten() {
        use std::os::unix::fs::PermissionsExt;
        let closed = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600));
        if let Err(error) = closed {
            let path = file.path();
            tracing::warn!(%error, file.path = %path.display(), "failed to make a file private");
        }
    }
    if let Err(error) = private_folder(folder) {
        tracing::warn!(%error, "failed to make the folder of checkpoints private");
    }
}

/// Removes temporary files of killed processes. Recent ones are kept, because other nodes may share
/// the folder.
fn remove_left(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A slug has no dot.
        let is_prepared = file.file_name().as_encoded_bytes().contains(&b'.');
        let age = file.metadata().and_then(|about| about.modified()).map(|at| at.elapsed());
        if is_prepared && age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT)) {
            // A failure to remove the file does no harm.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Syncs the folder. Without the sync, a renamed file may be lost in a power failure.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use authority_evidence::log::note::signed;
    use authority_process::clock::Clock;

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
        // `acme.new` belongs to another node that is signing, and `acme.old` to a process that has
        // died.
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
