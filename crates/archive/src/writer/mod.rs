//! Archives months of decisions and removes their rows.
//!
//! The work proceeds in steps. Each step continues from the progress in the database: if a node
//! dies, another one continues.
//!
//! 1. `due.rs` selects the next month of a tenant.
//! 2. `run.rs` takes the lease of a month and writes its decisions part by part, with later
//!    additions (`addenda.rs`).
//! 3. `finish.rs` writes versions and changes (`history.rs`), reads all objects back
//!    (`../inspect.rs`), signs the manifest and commits the archive.
//! 4. `removal.rs` removes the rows of archived months, in whole partitions where possible.

mod addenda;
mod due;
mod finish;
mod history;
mod removal;
mod run;
pub(crate) mod worker;

use authority_ids::{TenantId, TenantRef};
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::Store;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    Bucket, Error, ReadEvidence,
    format::{month::Month, names},
    manifest::Archive,
};

/// The dependencies and settings of archiving.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    pub bucket: Bucket,
    pub evidence: ReadEvidence,
    /// The service's public URL.
    pub issuer: String,
    /// The most decisions in a part: `format::part::DECISIONS`.
    pub part: usize,
    /// Cancelled when the service stops. The current step then ends early.
    pub stopping: CancellationToken,
}

/// A month of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subject {
    tenant_id: TenantId,
    month: Month,
}

impl Subject {
    /// Returns the folder of the month's archive.
    fn folder(&self) -> String {
        names::folder(&self.tenant_id, &self.month)
    }

    /// Returns the path of an object of the month's archive, from the top of the bucket.
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder())
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// A part of a month was written.
    Written,
    /// A month was archived.
    Archived,
    /// Objects that are not part of an archive were deleted from its folder.
    Tidied,
    /// An archive was read back.
    Checked,
    /// This many partitions were dropped.
    Dropped(i32),
    /// This many decisions were removed; 0 if the month is finished.
    Removed(i32),
    /// A month cannot be archived now, or its rows cannot be removed now.
    Skipped,
    /// All phases are complete.
    Idle,
}

/// Archives and removes, one step at a time.
pub struct Archiver {
    parts: Parts,
    /// The name of this node in leases.
    name: String,
    run: Mutex<Run>,
}

/// The phases of the worker's run. All due months are archived before rows are removed, and whole
/// partitions are dropped before single rows are deleted.
const PHASES: [Phase; 5] =
    [Phase::Archive, Phase::Tidy, Phase::Check, Phase::DropPartitions, Phase::Remove];

#[derive(Clone, Copy)]
enum Phase {
    Archive,
    Tidy,
    Check,
    DropPartitions,
    Remove,
}

#[derive(Clone)]
enum Task {
    Archive(Subject),
    Tidy(Archive),
    Check(Archive),
    DropPartitions,
    Remove(Archive),
}

#[derive(Default)]
struct Run {
    /// The number of phases that have started.
    phases: usize,
    /// The remaining tasks of the current phase, in reverse order.
    tasks: Vec<Task>,
}

impl Archiver {
    pub fn new(parts: Parts) -> Self {
        let name = authority_store::new_id().to_string();
        Self { parts, name, run: Mutex::default() }
    }

    /// Does the next step.
    ///
    /// # Errors
    /// The bucket or the database is unavailable, the bucket does not have the newest archive, or
    /// the service is stopping. A fault of one month is logged and does not stop the other months.
    pub async fn step(&self) -> Result<StepResult, Error> {
        loop {
            let next = self.run.lock().tasks.last().cloned();
            if let Err(stopped) = self.unless_stopping() {
                self.let_go(next.as_ref()).await;
                return Err(stopped);
            }
            if let Some(task) = next {
                let done = self.perform(&task).await;
                if done.is_err() {
                    self.let_go(Some(&task)).await;
                }
                if !matches!(done, Ok(StepResult::Written | StepResult::Removed(1..))) {
                    self.run.lock().tasks.pop();
                }
                return task.unless_of_one(done);
            }
            let begun = self.run.lock().phases;
            let Some(phase) = PHASES.get(begun) else {
                *self.run.lock() = Run::default();
                return Ok(StepResult::Idle);
            };
            let mut tasks = self.plan(*phase).await?;
            tasks.reverse();
            *self.run.lock() = Run { phases: begun + 1, tasks };
        }
    }

    /// Ends the lease of a month early. Another node then need not wait until the lease expires.
    async fn let_go(&self, task: Option<&Task>) {
        let Some(Task::Archive(subject)) = task else { return };
        if let Err(error) = self.end_lease(subject).await {
            tracing::debug!(%error, "failed to end the lease of a month");
        }
    }

    async fn plan(&self, phase: Phase) -> Result<Vec<Task>, Error> {
        let archives =
            |list: Vec<Archive>, task: fn(Archive) -> Task| list.into_iter().map(task).collect();
        Ok(match phase {
            Phase::Archive => {
                self.newest_is_there().await?;
                self.due().await?.into_iter().map(Task::Archive).collect()
            }
            Phase::Tidy => archives(self.untidy().await?, Task::Tidy),
            Phase::Check | Phase::DropPartitions | Phase::Remove
                if !self.may_remove(matches!(phase, Phase::Check)).await? =>
            {
                Vec::new()
            }
            Phase::Check => archives(self.unchecked().await?, Task::Check),
            Phase::DropPartitions if !self.are_there().await? => Vec::new(),
            Phase::DropPartitions => vec![Task::DropPartitions],
            Phase::Remove => archives(self.removable().await?, Task::Remove),
        })
    }

    async fn perform(&self, task: &Task) -> Result<StepResult, Error> {
        match task {
            Task::Archive(subject) => self.archive(subject).await,
            Task::Tidy(archive) => self.tidy(archive).await,
            Task::Check(archive) => self.check(archive).await,
            Task::DropPartitions => self.drop_partitions().await,
            Task::Remove(archive) => self.remove(archive).await,
        }
    }

    fn unless_stopping(&self) -> Result<(), Error> {
        if self.parts.stopping.is_cancelled() { Err(Error::Stopped) } else { Ok(()) }
    }
}

impl Task {
    /// Logs a fault that concerns only one month, and returns [`StepResult::Skipped`] for it.
    fn unless_of_one(&self, done: Result<StepResult, Error>) -> Result<StepResult, Error> {
        let (tenant, month): (TenantRef, String) = match self {
            Self::Archive(subject) => ((&subject.tenant_id).into(), subject.month.to_string()),
            Self::Tidy(archive) | Self::Check(archive) | Self::Remove(archive) => {
                (archive.tenant_id.clone(), archive.month.clone())
            }
            Self::DropPartitions => return done,
        };
        match done {
            Err(Error::Lost) => {
                tracing::debug!(
                    tenant.id = tenant.as_str(),
                    archive.month = month,
                    "left a month to another node or to an erasure"
                );
                Ok(StepResult::Skipped)
            }
            Err(error) if error.is_of_one() => {
                tracing::error!(
                    %error,
                    tenant.id = tenant.as_str(),
                    archive.month = month,
                    "failed to archive a month; keeping its rows"
                );
                Ok(StepResult::Skipped)
            }
            done => done,
        }
    }
}
