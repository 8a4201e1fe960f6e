//! The job queue: the jobs of a tenant run in order, and tenants take turns.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{cancellation::Cancellation, error::Error, limits::Limits};

pub(super) struct Job {
    pub(super) cancellation: Cancellation,
    pub(super) work: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Tenant {
    jobs: VecDeque<Job>,
    running: usize,
}

pub(super) struct Queue {
    limits: Limits,
    /// The tenants with waiting jobs, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    tenants: HashMap<Arc<str>, Tenant>,
    waiting: usize,
    closed: bool,
}

/// The result of looking for a job.
pub(super) enum Next {
    Job(Arc<str>, Job),
    Nothing,
    Closed,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        let (turns, tenants) = (VecDeque::new(), HashMap::new());
        Self { limits, turns, tenants, waiting: 0, closed: false }
    }

    /// Adds a job.
    ///
    /// # Errors
    /// The queue is full, for this tenant or in total.
    pub(super) fn add(&mut self, tenant_id: &str, job: Job) -> Result<(), Error> {
        if self.room(tenant_id).is_err() {
            self.drop_cancelled();
        }
        self.room(tenant_id)?;
        let id = self.tenants.get_key_value(tenant_id).map(|(id, _)| Arc::clone(id));
        let id = id.unwrap_or_else(|| tenant_id.into());
        let own = self.tenants.entry(Arc::clone(&id)).or_default();
        if own.jobs.is_empty() {
            self.turns.push_back(id);
        }
        own.jobs.push_back(job);
        self.waiting += 1;
        Ok(())
    }

    /// Checks that another job of the tenant may wait.
    fn room(&self, tenant_id: &str) -> Result<(), Error> {
        let own = self.tenants.get(tenant_id).map_or(0, |own| own.jobs.len());
        if own >= self.limits.waiting {
            return Err(Error::TenantFull(self.limits.waiting));
        }
        if self.closed || self.waiting >= self.limits.waiting_in_all {
            return Err(Error::Full);
        }
        Ok(())
    }

    /// Returns the next job, by the tenants' turns. Skips tenants at their limit of running jobs.
    pub(super) fn next(&mut self) -> Next {
        if self.closed {
            return Next::Closed;
        }
        let most = self.limits.running;
        let free = |id: &Arc<str>| self.tenants.get(id).is_some_and(|own| own.running < most);
        let Some(id) = self.turns.iter().position(free).and_then(|at| self.turns.remove(at)) else {
            return Next::Nothing;
        };
        let Some(own) = self.tenants.get_mut(&id) else { return Next::Nothing };
        let Some(job) = own.jobs.pop_front() else { return Next::Nothing };
        own.running += 1;
        self.waiting -= 1;
        if !own.jobs.is_empty() {
            self.turns.push_back(Arc::clone(&id));
        }
        Next::Job(id, job)
    }

    pub(super) fn done(&mut self, tenant_id: &Arc<str>) {
        if let Some(own) = self.tenants.get_mut(tenant_id) {
            own.running -= 1;
            if own.running == 0 && own.jobs.is_empty() {
                self.tenants.remove(tenant_id);
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.turns.clear();
        self.tenants.values_mut().for_each(|own| own.jobs.clear());
    }

    /// Drops cancelled jobs, which must not count towards the limits of waiting jobs.
    fn drop_cancelled(&mut self) {
        self.tenants
            .values_mut()
            .for_each(|own| own.jobs.retain(|job| !job.cancellation.is_cancelled()));
        let tenants = &self.tenants;
        self.turns.retain(|id| tenants.get(id).is_some_and(|own| !own.jobs.is_empty()));
        self.tenants.retain(|_, own| own.running > 0 || !own.jobs.is_empty());
        self.waiting = self.tenants.values().map(|own| own.jobs.len()).sum();
    }
}
