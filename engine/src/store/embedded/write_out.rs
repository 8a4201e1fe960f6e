//! Has what the server wrote to its tables put on disk a little at a time.
//!
//! Postgres writes a new page of a table when it adds it, long before its own flushing looks at it
//! (15 and before, and later versions for single pages). Linux leaves such pages in memory for 30
//! seconds and then writes all of them at once: at 5,000 decisions a second some 400 MB, behind
//! which every commit waits 100 to 400 ms. Written every so often they are a few megabytes, behind
//! which nobody waits.

use std::{
    collections::HashMap,
    fs::{self, DirEntry, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Between two looks, while something is written.
const BUSY: Duration = Duration::from_millis(200);
/// While nothing is. Well below the kernel's 30 s.
const IDLE: Duration = Duration::from_secs(2);
/// In bytes: what is smaller holds up nobody.
const SMALLEST: u64 = 1 << 20;

pub(super) struct WriteOut {
    databases: PathBuf,
    /// When each large file was last written to, as far as we have put it on disk.
    seen: HashMap<PathBuf, SystemTime>,
}

impl WriteOut {
    /// Of the server whose data folder this is.
    pub(super) fn new(data: &Path) -> Self {
        Self { databases: data.join("base"), seen: HashMap::new() }
    }

    /// Puts on disk what was written since the last look; says when to look again. What cannot be
    /// read now is left to the kernel: Postgres itself sees to what a checkpoint needs.
    pub(super) fn look(&mut self) -> Duration {
        let written = self.written().unwrap_or_default();
        for (path, _) in &written {
            let _ = File::open(path).and_then(|file| file.sync_data());
        }
        let pause = if written.is_empty() { IDLE } else { BUSY };
        self.seen.extend(written);
        pause
    }

    fn written(&self) -> io::Result<Vec<(PathBuf, SystemTime)>> {
        let mut written = Vec::new();
        for database in fs::read_dir(&self.databases)? {
            let files = fs::read_dir(database?.path())?;
            written.extend(files.filter_map(|file| self.newly_written(&file.ok()?)));
        }
        Ok(written)
    }

    /// The file, if it is large and was written to since we saw it. It may be gone meanwhile.
    fn newly_written(&self, file: &DirEntry) -> Option<(PathBuf, SystemTime)> {
        let metadata = file.metadata().ok()?;
        let modified = metadata.modified().ok()?;
        let path = file.path();
        let is_new = metadata.is_file()
            && metadata.len() >= SMALLEST
            && self.seen.get(&path).is_none_or(|seen| *seen != modified);
        is_new.then_some((path, modified))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn large_files_are_put_on_disk_when_they_were_written_to() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("base/13573");
        fs::create_dir_all(&folder).unwrap();
        for (file, length) in [("small", 8192), ("large", SMALLEST)] {
            File::create(folder.join(file)).unwrap().set_len(length).unwrap();
        }
        let large = folder.join("large");
        let mut out = WriteOut::new(data.path());
        let names = |out: &WriteOut| -> Vec<_> {
            out.written().unwrap().into_iter().map(|(path, _)| path).collect()
        };
        assert_eq!(names(&out), std::slice::from_ref(&large));
        assert_eq!((out.look(), out.look()), (BUSY, IDLE));

        let mut file = fs::OpenOptions::new().append(true).open(&large).unwrap();
        file.write_all(b"page").unwrap();
        file.set_modified(out.seen[&large] + BUSY).unwrap();
        assert_eq!(names(&out), [large]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_looked_for_again() {
        assert_eq!(WriteOut::new(Path::new("/nonexistent")).look(), IDLE);
    }
}
