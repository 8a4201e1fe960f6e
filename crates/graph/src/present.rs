//! Reads the current authority from the database, for checks inside a transaction.

use authority_ids::TenantId;
use authority_model::schema::tenant_revisions;
use diesel::{prelude::*, sql_types::Bool};

use super::{
    graph::{Error, Graph, TenantHandle},
    persons::Persons,
};
use authority_decision::{Gathered, Request};
use authority_store::{self as store, Db, RunQueryDsl};

/// Returns the tenant's revision in the transaction's snapshot; 0 before its first record.
pub async fn revision(db: &mut Db, tenant_id: &TenantId) -> QueryResult<i64> {
    let row = tenant_revisions::table.find(tenant_id.as_str()).select(tenant_revisions::revision);
    Ok(row.first(db).await.optional()?.unwrap_or_default())
}

/// How a transaction keeps authority unchanged until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Shared with decisions and other transactions that do not change authority.
    Shared,
    /// For a transaction that changes authority. Two such transactions that share the fence would
    /// deadlock when they end.
    Alone,
}

/// Keeps the authority of all tenants unchanged until the transaction ends.
///
/// The next statement sees all changes that were committed before. Lock rows before calling this: a
/// transaction that waits for a row lock while it holds the fence delays all changes of authority.
pub async fn hold_fence(db: &mut Db, fence: Fence) -> QueryResult<()> {
    let held = diesel::sql_query("SELECT hold_fence($1)").bind::<Bool, _>(fence == Fence::Alone);
    held.execute(db).await.map(drop)
}

impl Graph {
    /// Returns the tenant's authority, which stays unchanged until the transaction ends.
    ///
    /// Lock rows before calling this: a transaction that waits for a row lock while it holds the
    /// fence delays all changes of authority.
    ///
    /// # Errors
    /// The graph cannot catch up, or is too old to decide on.
    pub async fn fenced(
        &self,
        db: &mut Db,
        tenant_id: &TenantId,
        fence: Fence,
    ) -> Result<Option<TenantHandle>, Error> {
        // Catches up before taking the fence, which shortens the wait while the fence is held.
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

    /// Returns the facts for a request, at least as recent as the transaction's snapshot.
    ///
    /// The facts do not depend on the caller that claims the approval.
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
