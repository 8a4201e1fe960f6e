//! What this node remembers of each log apart from the database: the last checkpoint that it has seen.
//!
//! A database can be restored to an earlier day, and would then have other leaves signed at places
//! that were signed before. So a checkpoint is signed only for a log that continues the one
//! remembered here; the files hold the signed notes themselves, for people as well. A node remembers
//! what it signs and, following the logs' heads (`follow.rs`), what others sign: whichever of them
//! seals first after a restore, notices.

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
        close_to_others(&folder);
        Self { folder, writing: Mutex::default() }
    }

    /// The last checkpoint known of the tenant's log.
    ///
    /// # Errors
    /// When what was remembered cannot be read: nothing may be signed then.
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

    /// Remembers a committed checkpoint. Of one origin the larger stays: others may have been faster.
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

/// A file that only this user reads: how many decisions a tenant has is nobody else's business.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Closes what was written before files were made for this user alone.
fn close_to_others(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    #[cfg(unix)]
    for file in files.flatten() {
        use std::os::unix::fs::PermissionsExt;
        let closed = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600));
        if let Err(error) = closed {
            tracing::warn!(%error, file = %file.path().display(), "others may read the file");
        }
    }
    if let Err(error) = private_folder(folder) {
        tracing::warn!(%error, "the folder of logs cannot be closed to others");
    }
}

/// A renamed file is only there after a power cut once its folder is on disk.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
