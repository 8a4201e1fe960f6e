//! Archives months of decisions, and removes their rows.
//!
//! The work goes step by step, each from what the database says was done: a node that dies is followed by another.
//!
//! 1. `due.rs`: which month of which tenant is next.
//! 2. `run.rs`: the lease of a month, and part after part of its decisions with what was added later (`addenda.rs`).
//! 3. `finish.rs`: versions and changes (`history.rs`); everything is read back (`../inspect.rs`); the manifest is signed,
//!    and the archive committed.
//! 4. `removal.rs`: rows of archived months go, in whole partitions where it can be.

mod addenda;
mod due;
mod finish;
mod history;
mod removal;
mod run;
mod worker;

use authority_core::{clock::Clock, keys::Keys, store::Store};
use authority_ids::TenantId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use worker::{worker, worker_without_archive};

use crate::{
    Bucket, Error, ReadEvidence,
    format::{month::Month, names},
    manifest::Archive,
};

/// What archiving needs.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    pub bucket: Bucket,
    pub evidence: ReadEvidence,
    /// The service's public URL.
    pub issuer: String,
    /// How many decisions a part has at most: `format::part::DECISIONS`.
    pub part: usize,
    /// A step ends early when the service stops.
    pub stopping: CancellationToken,
}

/// A month of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subject {
    tenant_id: TenantId,
    month: Month,
}

impl Subject {
    /// The folder of its archive.
    fn folder(&self) -> String {
        names::folder(&self.tenant_id, &self.month)
    }

    /// The name of an object of its archive, from the top of the bucket.
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder())
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A part of a month is written.
    Written,
    /// A month is archived.
    Archived,
    /// Objects that no archive names are deleted.
    Tidied,
    /// An archive is read back.
    Checked,
    /// So many partitions are dropped.
    Dropped(i32),
    /// So many decisions are removed; 0 at the end of a month.
    Removed(i32),
    /// A month cannot be archived, or its rows not be removed, now.
    Skipped,
    /// The run is over: nothing is left to do.
    Idle,
}

/// Archives and removes, one step after the other.
pub struct Archiver {
    parts: Parts,
    /// Of this node, for leases.
    name: String,
    run: Mutex<Run>,
}

/// What a run has to do in each phase. All that is due is archived before anything is removed, and whole partitions go
/// before single rows.
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
    /// How many phases have begun.
    phases: usize,
    /// What is left of the last one; the first is at the end.
    tasks: Vec<Task>,
}

impl Archiver {
    pub fn new(parts: Parts) -> Self {
        let name = authority_core::store::new_id().to_string();
        Self { parts, name, run: Mutex::default() }
    }

    /// Does what is next.
    ///
    /// # Errors
    /// The bucket or the database is away, the bucket is not the one that has the archives, or the service stops. What
    /// is wrong with one month is logged, and does not stop the others. Nothing is removed that is not archived.
    pub async fn step(&self) -> Result<Step, Error> {
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
                if !matches!(done, Ok(Step::Written | Step::Removed(1..))) {
                    self.run.lock().tasks.pop();
                }
                return task.unless_of_one(done);
            }
            let begun = self.run.lock().phases;
            let Some(phase) = PHASES.get(begun) else {
                *self.run.lock() = Run::default();
                return Ok(Step::Idle);
            };
            let mut tasks = self.plan(*phase).await?;
            tasks.reverse();
            *self.run.lock() = Run { phases: begun + 1, tasks };
        }
    }

    /// So that another run, or another node, need not wait until the lease ends.
    async fn let_go(&self, task: Option<&Task>) {
        let Some(Task::Archive(subject)) = task else { return };
        if let Err(error) = self.end_lease(subject).await {
            tracing::debug!(%error, "the lease of a month ends by itself");
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

    async fn perform(&self, task: &Task) -> Result<Step, Error> {
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
    /// What is wrong with one month is for the log alone.
    fn unless_of_one(&self, done: Result<Step, Error>) -> Result<Step, Error> {
        let (tenant, month) = match self {
            Self::Archive(subject) => (subject.tenant_id.to_string(), subject.month.to_string()),
            Self::Tidy(archive) | Self::Check(archive) | Self::Remove(archive) => {
                (archive.tenant_id.clone(), archive.month.clone())
            }
            Self::DropPartitions => return done,
        };
        match done {
            Err(Error::Lost) => {
                tracing::info!(
                    tenant,
                    month,
                    "another node archives this month, or an erasure begins it anew"
                );
                Ok(Step::Skipped)
            }
            Err(error) if error.is_of_one() => {
                tracing::error!(%error, tenant, month, "a month is not archived: none of its rows is removed");
                Ok(Step::Skipped)
            }
            done => done,
        }
    }
}
