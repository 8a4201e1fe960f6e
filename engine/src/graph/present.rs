//! Authority as the database has it now, for whoever judges inside a transaction.

use authority_model::schema::tenant_revisions;
use diesel::prelude::*;

use super::{Error, Graph};
use crate::{
    decision::{Gathered, Request},
    store::{self, Db, RunQueryDsl},
};

/// The tenant's revision as the transaction sees it; 0 before its first record.
pub async fn revision(db: &mut Db, tenant_id: &str) -> QueryResult<i64> {
    let row = tenant_revisions::table.find(tenant_id).select(tenant_revisions::revision);
    Ok(row.first(db).await.optional()?.unwrap_or_default())
}

impl Graph {
    /// What a request is decided on, no older than what the transaction sees.
    ///
    /// # Errors
    /// The graph cannot catch up, or is too old to decide on.
    pub async fn present(&self, db: &mut Db, request: &Request) -> Result<Gathered, Error> {
        let revision = revision(db, &request.tenant_id).await.map_err(store::Error::from)?;
        let cell = self.tenant_at(&request.tenant_id, revision).await?;
        Ok(cell.map(|cell| cell.read().gather(request)).unwrap_or_default())
    }
}
