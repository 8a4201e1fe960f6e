//! Present authority from the database, for checks inside a transaction.

use authority_ids::TenantId;
use authority_model::schema::tenant_revisions;
use diesel::{prelude::*, sql_types::Bool};

use super::{Error, Graph, TenantHandle, persons::Persons};
use crate::store::{self, Db, RunQueryDsl};
use authority_decision::{Gathered, Request};

/// The tenant's revision as the transaction sees it; 0 before its first record.
pub async fn revision(db: &mut Db, tenant_id: &TenantId) -> QueryResult<i64> {
    let row = tenant_revisions::table.find(tenant_id.as_str()).select(tenant_revisions::revision);
    Ok(row.first(db).await.optional()?.unwrap_or_default())
}

/// How a transaction keeps authority unchanged until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Shared with decisions, and others that change no authority.
    Shared,
    /// The transaction changes authority itself: two of these with a shared fence would deadlock at their end.
    Alone,
}

/// Keeps every tenant's authority unchanged until the transaction has ended; the next statement sees all that
/// was committed before. Lock rows before: waiting behind the fence delays everyone's changes.
pub async fn hold_fence(db: &mut Db, fence: Fence) -> QueryResult<()> {
    let held = diesel::sql_query("SELECT hold_fence($1)").bind::<Bool, _>(fence == Fence::Alone);
    held.execute(db).await.map(drop)
}

impl Graph {
    /// The tenant's authority, unchanged until the transaction has ended. Lock rows before: waiting behind
    /// the fence delays everyone's changes.
    ///
    /// # Errors
    /// The graph cannot catch up, or is too old to decide on.
    pub async fn fenced(
        &self,
        db: &mut Db,
        tenant_id: &TenantId,
        fence: Fence,
    ) -> Result<Option<TenantHandle>, Error> {
        // Caught up before, so that there is almost nothing left to wait for.
        self.at_present(db, tenant_id).await?;
        hold_fence(db, fence).await.map_err(store::Error::from)?;
        self.at_present(db, tenant_id).await
    }

    async fn at_present(
        &self,
        db: &mut Db,
        tenant_id: &TenantId,
    ) -> Result<Option<TenantHandle>, Error> {
        let revision = revision(db, tenant_id).await.map_err(store::Error::from)?;
        self.tenant_at(tenant_id, revision).await
    }

    /// The facts for a request, no older than what the transaction sees, whoever claims the
    /// approval.
    ///
    /// # Errors
    /// The graph cannot catch up, or is too old to decide on.
    pub async fn present(&self, db: &mut Db, request: &Request) -> Result<Gathered, Error> {
        let handle = self.at_present(db, request.tenant()).await?;
        let Some(handle) = handle else { return Ok(Gathered::default()) };
        let tenant = handle.read();
        let (mut gathered, nobody) = (tenant.gather(request), Persons::default());
        let chains = &gathered.delegations;
        if let Some(less) = tenant.standing_that_counts(&request.subject, &nobody, chains) {
            gathered.delegations = less;
        }
        Ok(gathered)
    }
}
