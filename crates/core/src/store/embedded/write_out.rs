//! Has what the server adds to its tables put on disk a little at a time.
//!
//! Postgres writes a new page, still empty, when it adds it to a table, long before its own
//! flushing looks at it (15 and before, and later versions for single pages). Linux leaves such
//! pages in memory for 30 seconds and then writes all of them at once: at 5,000 decisions a second
//! some 400 MB, behind which every commit waits 100 to 400 ms. Written every so often they are a
//! few megabytes, behind which nobody waits.
//!
//! The kernel is asked by advice, not by a sync: an error of the disk that our sync was told of
//! would be kept from Postgres, which would then take a page for stored that is not. What the
//! advice drops from the kernel's cache are empty pages whose contents Postgres holds.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// Between two looks, while something is added.
const BUSY: Duration = Duration::from_millis(200);
/// While nothing is. Well below the kernel's 30 s.
pub(super) const IDLE: Duration = Duration::from_secs(2);
/// In bytes, for each file: what is less holds up nobody.
const STEP: u64 = 256 << 10;
/// Looks at the files that grow, for each at all of them: a server has some thousand files, and
/// asking for the lengths of all takes 5 ms of a processor that decisions wait for.
const NARROW: u32 = 10;

pub(super) struct WriteOut {
    databases: PathBuf,
    /// Up to where each file was put on disk, in bytes.
    done: HashMap<PathBuf, u64>,
    /// What grew when all were last looked at; other files are looked at again when that many
    /// looks are over.
    growing: Vec<PathBuf>,
    narrow: u32,
}

/// The part of a file that was added.
#[derive(Debug, PartialEq, Eq)]
struct Added {
    path: PathBuf,
    from: u64,
    to: u64,
}

impl WriteOut {
    /// Of the server whose data folder this is. What it holds now was written long ago.
    pub(super) fn new(data: &Path) -> Self {
        let databases = data.join("base");
        let done = files(&databases).collect();
        Self { databases, done, growing: Vec::new(), narrow: 0 }
    }

    /// Has put on disk what was added since the last look; says when to look again. What cannot be
    /// opened now is left to the kernel.
    pub(super) fn look(&mut self) -> Duration {
        for Added { path, from, to } in self.added() {
            let _ = put_on_disk(&path, from, to);
        }
        if self.growing.is_empty() { IDLE } else { BUSY }
    }

    /// What files grew by since the last look, where it is enough to be put on disk. At a look at
    /// all of them, files that are gone are forgotten.
    fn added(&mut self) -> Vec<Added> {
        if self.narrow > 0 {
            self.narrow -= 1;
            let growing = std::mem::take(&mut self.growing);
            let lengths = growing.iter().filter_map(|file| Some((file, length(file)?)));
            let added = lengths.filter_map(|(file, to)| self.grown(file, to)).collect();
            self.growing = growing;
            return added;
        }
        let files: HashMap<_, _> = files(&self.databases).collect();
        self.done.retain(|file, _| files.contains_key(file));
        let added: Vec<_> = files.iter().filter_map(|(file, to)| self.grown(file, *to)).collect();
        self.growing = added.iter().map(|added| added.path.clone()).collect();
        self.narrow = if added.is_empty() { 0 } else { NARROW };
        added
    }

    /// What a file grew by to its length `to`, if that is enough to be put on disk.
    fn grown(&mut self, file: &Path, to: u64) -> Option<Added> {
        let done = self.done.entry(file.to_owned()).or_default();
        // A file that was cut grows again from where it was cut.
        let from = (*done).min(to);
        *done = if to - from >= STEP { to } else { from };
        (to - from >= STEP).then(|| Added { path: file.to_owned(), from, to })
    }
}

/// The files of every database, with their lengths. One that goes meanwhile is passed over.
fn files(databases: &Path) -> impl Iterator<Item = (PathBuf, u64)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(databases).flat_map(move |database| entries(&database.path()));
    files.map(|file| file.path()).filter_map(|file| length(&file).map(|length| (file, length)))
}

fn length(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
}

fn put_on_disk(path: &Path, from: u64, to: u64) -> io::Result<()> {
    let offset = |bytes: u64| bytes.try_into().map_err(io::Error::other);
    let file = File::open(path)?;
    // On Linux this begins to write what is dirty, and drops what is written.
    let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    Ok(posix_fadvise(&file, offset(from)?, offset(to - from)?, advice)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_grew_by_is_put_on_disk() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("base/13573");
        fs::create_dir_all(&folder).unwrap();
        let set = |file: &str, length| {
            let file = File::options().create(true).append(true).open(folder.join(file)).unwrap();
            file.set_len(length).unwrap();
        };
        set("old", 8 * STEP);
        let mut out = WriteOut::new(data.path());
        assert_eq!(out.look(), IDLE, "what was there is no news");

        set("old", 10 * STEP);
        set("new", STEP);
        set("small", STEP - 1);
        let mut added = out.added();
        added.sort_by_key(|added| added.from);
        let added_to = |file, from, to| Added { path: folder.join(file), from, to };
        assert_eq!(added, [added_to("new", 0, STEP), added_to("old", 8 * STEP, 10 * STEP)]);

        // Only what grew is looked at, until all are again.
        set("small", STEP);
        set("old", 11 * STEP);
        assert_eq!(out.added(), [added_to("old", 10 * STEP, 11 * STEP)]);
        for _ in 1..NARROW {
            assert_eq!(out.look(), BUSY);
        }
        assert_eq!(out.added(), [added_to("small", 0, STEP)], "little by little is enough, once");
        out.narrow = 0;
        assert_eq!(out.look(), IDLE);

        set("old", STEP);
        assert_eq!(out.look(), IDLE);
        set("old", 2 * STEP);
        assert_eq!(out.added(), [added_to("old", STEP, 2 * STEP)]);
        fs::remove_file(folder.join("old")).unwrap();
        out.narrow = 0;
        out.look();
        assert!(!out.done.contains_key(&folder.join("old")));
    }

    #[test]
    fn added_bytes_reach_the_disk_and_stay_what_they_are() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("file");
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(64 << 10).collect();
        fs::write(&path, &bytes).unwrap();
        put_on_disk(&path, 8192, bytes.len() as u64).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_folder_that_is_not_there_is_looked_for_again() {
        assert_eq!(WriteOut::new(Path::new("/nonexistent")).look(), IDLE);
    }
}
