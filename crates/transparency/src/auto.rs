//! Seals every decision of tenants with `auto_seal`, soon after the decision.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_ids::{DecisionId, TenantId};
use authority_model::schema::tenants;
use chrono::TimeDelta;
use diesel::prelude::*;
use tokio::sync::Mutex;

use super::{Error, Transparency, sealer::Sealer};
use authority_process::worker::{self, Next, Worker};
use authority_store::{RunQueryDsl, Scope, row_id};

const EVERY: Duration = Duration::from_secs(1);
/// The number of decisions that are sealed together.
const PAGE: i64 = 2048;
/// The most pages of one tenant before the next tenant has its turn.
const PAGES: usize = 16;
/// The longest time from a decision's `evaluated_at` to its commit.
const LATEST: TimeDelta = TimeDelta::minutes(10);

/// The result of a run.
struct Run {
    /// Whether there may be more decisions to seal.
    has_more: bool,
    /// The number of tenants with decisions that could not be sealed.
    failed: usize,
}

/// Returns the worker. It runs again at once if there may be more decisions to seal.
///
/// A run fails if the decisions of a tenant could not be sealed. The decisions of other tenants are
/// still sealed.
pub(super) fn worker(transparency: Transparency) -> Worker {
    // The id after which the next run looks for unsealed decisions, by tenant.
    let seen = Arc::new(Mutex::new(HashMap::new()));
    Worker::periodic("auto_seal", EVERY, move || {
        let (transparency, seen) = (transparency.clone(), Arc::clone(&seen));
        async move {
            let run = transparency.seal_open(&mut *seen.lock().await).await?;
            if run.failed > 0 {
                return Err(worker::Error::from(format!(
                    "the decisions of {} tenants could not be sealed; see the lines above",
                    run.failed
                )));
            }
            Ok(if run.has_more { Next::After(Duration::ZERO) } else { Next::Usual })
        }
    })
}

impl Transparency {
    /// Seals some pages of each tenant's unsealed decisions.
    async fn seal_open(&self, seen: &mut HashMap<TenantId, String>) -> Result<Run, Error> {
        let scope = Scope::service();
        let tenants: Vec<String> = self
            .0
            .store
            .read_tx(&scope, async move |db| {
                let sealing = tenants::table
                    .filter(tenants::auto_seal.and(tenants::deleted_at.is_null()))
                    .select(tenants::id);
                Ok::<_, Error>(sealing.load(db).await?)
            })
            .await?;
        let before = (self.0.clock.now() - LATEST).timestamp_millis();
        let settled = DecisionId::first(u64::try_from(before).unwrap_or_default());
        let mut run = Run { has_more: false, failed: 0 };
        for tenant_id in tenants {
            let tenant_id = row_id(&tenant_id)?;
            let from = seen.get(&tenant_id).cloned().unwrap_or_default();
            match self.0.logs.seal_pages(&tenant_id, from).await {
                // The next run continues after the sealed decisions. After the last page, it starts
                // ten minutes back, because decisions of that time may still be committed.
                Ok(behind) => {
                    run.has_more |= behind.is_some();
                    seen.insert(tenant_id, behind.unwrap_or_else(|| settled.clone()));
                }
                // The failure concerns only this tenant.
                Err(error) => {
                    run.failed += 1;
                    tracing::warn!(
                        %error,
                        tenant.id = %tenant_id,
                        "failed to seal decisions automatically"
                    );
                }
            }
        }
        Ok(run)
    }
}

impl Sealer {
    /// Seals pages of the tenant's unsealed decisions after `after`.
    ///
    /// Reads the next page while a page is written. Returns the id of the last sealed decision if
    /// there may be unsealed decisions after it.
    async fn seal_pages(
        self: &Arc<Self>,
        tenant_id: &TenantId,
        after: String,
    ) -> Result<Option<String>, Error> {
        let mut page = self.open(tenant_id, after, PAGE).await?;
        let mut left = PAGES;
        loop {
            left -= 1;
            let is_full = i64::try_from(page.list.len()).is_ok_and(|found| found == PAGE);
            let last = page.list.last().filter(|_| is_full);
            let last = last.map(|leaf| String::from(leaf.decision_id.clone()));
            let Some(behind) = last.clone().filter(|_| left > 0) else {
                if !page.list.is_empty() {
                    self.seal_leaves(tenant_id, page).await?;
                }
                return Ok(last);
            };
            let next = self.open(tenant_id, behind, PAGE);
            let (sealed, next) = tokio::join!(self.seal_leaves(tenant_id, page), next);
            sealed?;
            page = next?;
        }
    }
}
