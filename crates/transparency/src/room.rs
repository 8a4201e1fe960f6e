//! Whether the folder of checkpoints can be written: if not, nothing is sealed, and this node is not ready.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::Error;
use authority_core::worker::Worker;

const EVERY: Duration = Duration::from_secs(5);

/// What the last attempt to write came to. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<Mutex<Option<String>>>);

impl Room {
    /// Notes that nothing can be written.
    pub(super) fn lacks(&self, error: &io::Error) -> Error {
        let why = error.to_string();
        *self.0.lock() = Some(why.clone());
        Error::NoRoom(why)
    }

    /// `Err` has the reason and the remedy, for operators.
    pub(super) fn get(&self) -> Result<(), String> {
        match &*self.0.lock() {
            None => Ok(()),
            Some(why) => Err(format!(
                "`logs` in the data folder cannot be written ({why}): make room on its disk, or let the \
                 service's user write there; until then nothing is sealed"
            )),
        }
    }

    /// The worker that tries whether there is room.
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
