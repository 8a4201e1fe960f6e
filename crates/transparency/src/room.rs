//! Checks whether the folder with the last checkpoints is writable.
//!
//! If it is not writable, decisions are not sealed, and this node is not ready.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::Error;
use authority_process::worker::Worker;

const EVERY: Duration = Duration::from_secs(5);

/// The result of the last attempt to write: `None` or the error. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<Mutex<Option<String>>>);

impl Room {
    /// Records that the folder cannot be written.
    pub(super) fn lacks(&self, error: &io::Error) -> Error {
        let why = error.to_string();
        *self.0.lock() = Some(why.clone());
        Error::NoRoom(why)
    }

    /// Returns the last result. The error states the reason and what operators can do.
    pub(super) fn get(&self) -> Result<(), String> {
        match &*self.0.lock() {
            None => Ok(()),
            Some(why) => Err(format!(
                "`logs` in the data folder cannot be written ({why}): make room on its disk, or let the \
                 service's user write there; until then no decisions are sealed"
            )),
        }
    }

    /// Returns the worker that regularly calls `write` and records the result.
    pub(super) fn worker(
        self,
        write: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) -> Worker {
        let write = Arc::new(write);
        Worker::periodic("data_folder", EVERY, move || {
            let (room, write) = (self.clone(), Arc::clone(&write));
            async move {
                write().map_err(|error| room.lacks(&error))?;
                *room.0.lock() = None;
                Ok::<_, Error>(())
            }
        })
    }
}
