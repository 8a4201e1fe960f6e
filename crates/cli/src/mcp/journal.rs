//! Permitted actions that have begun and are not reported. After a crash, the next process reports
//! them.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use authority_crypto::{hex, random};
use rustix::fs::{FlockOperation, flock};

const ENDING: &str = "pending";

/// The file of this process. It is locked while the process lives.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    pending: BTreeSet<String>,
}

impl Journal {
    /// Creates the file of this process in a folder, which has the files of one agent and server.
    ///
    /// # Errors
    /// The folder can't be written.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let name = random::<8>().map_err(io::Error::other)?;
        let path = folder.join(format!("{}.{ENDING}", hex(&name)));
        let mut options = OpenOptions::new();
        let file = options.create_new(true).write(true).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, file, pending: BTreeSet::new() })
    }

    /// Remembers an action before it begins. It survives a crash of the process.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn begin(&mut self, decision_id: &str) -> io::Result<()> {
        self.pending.insert(decision_id.to_owned());
        self.file.write_all(format!("{decision_id}\n").as_bytes())
    }

    /// Returns a function that waits until the file is on the disk. An action that people approved
    /// begins after that: the approval can't be used again.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub(crate) fn sync(&self) -> io::Result<impl FnOnce() -> io::Result<()> + Send + use<>> {
        let (file, path) = (self.file.try_clone()?, self.path.clone());
        Ok(move || {
            file.sync_data()?;
            // The name of a new file is in its folder.
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        })
    }

    /// Forgets an action that is reported.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn reported(&mut self, decision_id: &str) -> io::Result<()> {
        if !self.pending.remove(decision_id) {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        let mut lines = String::new();
        for id in &self.pending {
            lines.push_str(id);
            lines.push('\n');
        }
        self.file.write_all(lines.as_bytes())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.pending.is_empty() {
            // If the file stays, it is empty and has no effect.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The actions of a crashed process, and the file to remove after they are reported.
pub(crate) struct Left {
    pub(crate) decisions: Vec<String>,
    path: PathBuf,
    /// Keeps others from reporting the same.
    _locked: File,
}

impl Left {
    pub(crate) fn remove(self) {
        // A file that stays is reported again. The service refuses a second report.
        let _ = fs::remove_file(&self.path);
    }
}

/// Finds the actions of crashed processes. Files of living processes are locked.
pub(crate) fn left(folder: &Path) -> Vec<Left> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .filter_map(one)
        .collect()
}

fn one(path: PathBuf) -> Option<Left> {
    let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    // A line without its end was never followed by an action.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let decisions: BTreeSet<_> = whole.lines().map(str::to_owned).collect();
    if decisions.is_empty() {
        // Its process may be about to lock it.
        return None;
    }
    Some(Left { decisions: decisions.into_iter().collect(), path, _locked: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_leaves_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path()).unwrap();
        for id in ["a", "b", "c"] {
            journal.begin(id).unwrap();
        }
        journal.sync().unwrap()().unwrap();
        journal.reported("b").unwrap();
        journal.begin("d").unwrap();
        // The process lives: its file is locked.
        assert!(left(folder.path()).is_empty());
        drop(journal);
        let found = left(folder.path());
        assert_eq!(found[0].decisions, ["a", "c", "d"]);
        assert!(left(folder.path()).is_empty());
        found.into_iter().for_each(Left::remove);
        assert!(left(folder.path()).is_empty());
    }

    #[test]
    fn a_process_that_reported_everything_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path()).unwrap();
        journal.begin("a").unwrap();
        journal.reported("a").unwrap();
        drop(journal);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
