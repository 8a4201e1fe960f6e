//! The last checkpoint of each log that this node has seen, stored apart from the database.
//!
//! A database can be restored to an earlier state; then other leaves would be signed at indexes
//! that were signed before. So a checkpoint is signed only for a log that continues the one
//! remembered here. The files are the signed notes themselves, readable by people. A node remembers
//! the checkpoints that it signs and, by following the logs' heads (`follow.rs`), those of other
//! nodes, so that the first node to seal after a restore notices it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;

use authority_core::{config::private_folder, store::new_id};
use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};

pub(super) struct Witness {
    folder: PathBuf,
    /// One writer at a time; other nodes may share the folder.
    writing: Mutex<()>,
}

impl Witness {
    pub(super) fn new(folder: PathBuf) -> Self {
        make_private(&folder);
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

    /// Remembers a committed checkpoint. Of two with one origin the larger stays, since another
    /// node may be ahead.
    pub(super) fn keep(&self, slug: &str, checkpoint: &Checkpoint, note: &str) -> io::Result<()> {
        let _turn = self.writing.lock();
        let known = self.last(slug)?;
        let is_behind =
            |known: Checkpoint| known.origin == checkpoint.origin && known.size >= checkpoint.size;
        if known.is_some_and(is_behind) {
            return Ok(());
        }
        private_folder(&self.folder)?;
        let new = self.folder.join(format!("{slug}.{}", new_id()));
        let mut file = private_file(&new)?;
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.folder.join(slug))?;
        sync(&self.folder)
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

/// Syncs the folder: only then does a renamed file survive a power failure.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
