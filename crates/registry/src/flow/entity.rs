//! The traits of a record: its rules, and how its rows are listed, found and locked.

use authority_model::{
    record::{ByIdRequest, Listing, Record, RpcRequest},
    validate::{Validate, Violations},
};
use chrono::{DateTime, Utc};
use diesel::{QueryResult, result::Error::NotFound};
use futures_util::future::ready;

use super::{
    error::Error,
    page::Window,
    queries::{End, Queries, QueryFuture, Save},
    registry::{Destinations, Registry},
    tenant,
};
use authority_api::{error::ErrorCode, identity::Caller};
use authority_ids::{EntityId, InvalidId, TenantId};
use authority_store::{Db, RunQueryDsl, new_id};

/// A record or relationship, and its queries.
pub(crate) trait RecordRow: Record + Queries {
    type List: RpcRequest + Listing + Validate + Send + Sync + 'static;
    /// Whether decisions depend on the record. The response to a write is then sent after the graph
    /// has applied the write.
    const AUTHORITY: bool = false;
    /// Whether the record stops something. A call that is repeated after its record has ended stops
    /// again, even with the same idempotency key.
    const IS_STOP: bool = false;
    /// The fields that callers of a tenant may change by PATCH. Only the installation's owner may
    /// change the others. A field that decisions read belongs here only if a change of it can't
    /// permit more, or if `before_save` refuses such a change.
    const TENANT_CHANGES: &'static [&'static str] = &[];

    /// Returns the rows that match a list request's own filters. Filters are, for example, the
    /// state and whether deleted records are included.
    fn filtered(by: &Self::List) -> Self::BoxedQuery<'_>;

    fn is_deleted(&self) -> bool {
        false
    }

    /// Sets defaults for fields that the client may omit.
    fn defaults(&mut self) {}

    /// Whether a record may be created in a final state. The specification permits it for some
    /// records.
    fn may_begin_final() -> bool {
        false
    }

    /// Checks rules that span fields.
    fn validate_record(&self, found: &mut Violations) {
        let _ = found;
    }

    /// Checks rules that are slow or need the store, and rules that stored data may already
    /// violate.
    ///
    /// It runs before the transaction. For an update, `patched` is the id of the record, and only
    /// the fields of the patch are set. Violations use the record's own field names.
    fn validate_with_store(
        &self,
        registry: &Registry,
        caller: &Caller,
        patched: Option<&str>,
    ) -> impl Future<Output = Result<Violations, Error>> + Send {
        let _ = (registry, caller, patched);
        ready(Ok(Violations::default()))
    }

    /// Sets the tenant of a row if the request's body does not name it.
    fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (db, within);
        ready(Ok(()))
    }

    /// Returns the slug of the tenant, for IDs. An unknown or deleted tenant is an error.
    fn tenant_slug(
        &self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> impl Future<Output = Result<String, Error>> + Send {
        tenant::slug(db, within, self.tenant_id())
    }

    /// Returns the ID of a new record.
    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        EntityId::new(slug, Self::KIND, new_id()).map(String::from)
    }

    /// Converts a request's `id` to the record's ID.
    fn address(id: &str) -> String {
        id.to_owned()
    }

    /// Checks rules that need other rows, just before the write. `was` is the locked row of an
    /// update.
    fn before_save(
        &mut self,
        was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (was, tx);
        ready(Ok(()))
    }

    /// Writes related rows, just after a new record was written.
    fn after_insert(
        &self,
        made: &mut Self,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (made, tx);
        ready(Ok(()))
    }

    /// Runs before a delete, on the locked row. Refuses if other records refer to it, and ends
    /// records that depend on it.
    fn before_delete(
        &self,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = tx;
        ready(Ok(()))
    }

    /// Whether a list request searches texts without an index. Such a list may take a second.
    fn searches(by: &Self::List) -> bool {
        let _ = by;
        false
    }

    /// Restricts a query to the rows that the caller may see.
    fn visible<'a>(query: Self::BoxedQuery<'a>, caller: &Caller) -> Self::BoxedQuery<'a> {
        let _ = caller;
        query
    }

    /// Whether the caller may see this row.
    fn is_visible(&self, caller: &Caller) -> bool {
        let _ = caller;
        true
    }

    /// Sets the fields that are returned but not stored in the rows.
    fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (registry, caller, rows);
        ready(Ok(()))
    }

    /// Adds the warnings that follow from the record's own fields.
    fn warn(&mut self) {}

    /// Returns a page of a list and, if requested, the number of all matches.
    fn list(
        db: &mut Db,
        caller: &Caller,
        by: &Self::List,
        window: &Window,
    ) -> impl Future<Output = QueryResult<(Vec<Self>, Option<i64>)>> + Send {
        async move {
            if Self::searches(by) {
                diesel::sql_query("SET LOCAL statement_timeout = '1s'").execute(db).await?;
            }
            let page = by.page();
            let matching = || {
                let own = caller.tenant().map(TenantId::as_str);
                let tenants = [page.tenant_id, own].into_iter().flatten();
                tenants.fold(Self::visible(Self::filtered(by), caller), Self::in_tenant)
            };
            let total = if page.count { Some(Self::count(db, matching()).await?) } else { None };
            Ok((Self::load_page(db, matching(), window).await?, total))
        }
    }

    /// Returns the row with this ID. A soft-deleted row is returned only if `deleted` is set.
    fn find(
        db: &mut Db,
        within: Option<&TenantId>,
        id: &str,
        deleted: bool,
    ) -> impl Future<Output = QueryResult<Self>> + Send {
        async move { unless_deleted(Self::by_id(db, within, id).await?, deleted) }
    }

    /// Returns and locks the row until the transaction ends. A soft-deleted row is never returned.
    fn lock(
        db: &mut Db,
        within: Option<&TenantId>,
        id: &str,
    ) -> impl Future<Output = QueryResult<Self>> + Send {
        async move { unless_deleted(Self::by_id_for_update(db, within, id).await?, false) }
    }
}

fn unless_deleted<R: RecordRow>(row: R, deleted: bool) -> QueryResult<R> {
    if row.is_deleted() && !deleted { Err(NotFound) } else { Ok(row) }
}

/// A row that can change and be deleted, in the way its type defines.
pub(crate) trait Entity: RecordRow + Save + End {
    const ON_DELETE: OnDelete<Self::State>;
}

/// A record that can be deleted in any state. Its row stays and is returned on request.
pub(crate) trait SoftDelete: RecordRow {
    fn soft_delete<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self>;
}

/// A record that suspends authority until the record is lifted. A lifted record can't change.
pub(crate) trait Stops: RecordRow {
    fn lift<'c>(
        db: &'c mut Db,
        row: &Self,
        by: &str,
        reason: Option<&str>,
    ) -> QueryFuture<'c, Self>;
}

/// A request for a special operation on one record. Decisions do not depend on the record.
pub(crate) trait Verb: RpcRequest + ByIdRequest + Validate + Send + Sync + 'static {
    type Record: RecordRow;

    /// Checks rules of the request that its proto does not define.
    fn examine(&self, found: &mut Violations) {
        let _ = found;
    }

    /// Returns the locked record with the operation applied.
    fn apply(
        self,
        was: Self::Record,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<Self::Record, Error>> + Send;
}

/// The effect of deleting a record.
#[derive(Clone, Copy)]
pub(crate) enum OnDelete<S> {
    /// The row is removed; its history stays.
    Erase,
    /// The row stays in this final state. It is readable, or soft-deleted and only returned on
    /// request.
    End(S),
    /// The delete is refused with this code.
    Refuse(ErrorCode),
}

/// The context of a record's rules inside the transaction of a write.
pub(crate) struct WriteTx<'a> {
    pub db: &'a mut Db,
    pub caller: &'a Caller,
    pub now: DateTime<Utc>,
    /// The permitted destinations of audit streams and webhooks.
    pub destinations: &'a Destinations,
}

#[cfg(test)]
mod tests {
    use authority_model::proto::{approval::*, delegation::*, events::*, registry::*};
    use diesel::{debug_query, pg::Pg, query_builder::QueryFragment};

    use super::*;

    fn check<R: RecordRow>(by: &R::List)
    where
        for<'a> R::BoxedQuery<'a>: QueryFragment<Pg>,
    {
        let sql = debug_query::<Pg, _>(&R::filtered(by)).to_string();
        assert!(sql.contains(r#""state" = $1"#) && sql.contains("some state"), "{sql}");
    }

    #[test]
    fn a_list_is_filtered_by_the_state_that_its_request_names() {
        let state = || Some("some state".to_owned());
        check::<Approval>(&ListApprovalsRequest { state: state(), ..<_>::default() });
        check::<AuditStream>(&ListAuditStreamsRequest { state: state(), ..<_>::default() });
        check::<BillingAccount>(&ListBillingAccountsRequest { state: state(), ..<_>::default() });
        check::<Delegation>(&ListDelegationsRequest { state: state(), ..<_>::default() });
        check::<Domain>(&ListDomainsRequest { state: state(), ..<_>::default() });
        check::<ExternalApp>(&ListExternalAppsRequest { state: state(), ..<_>::default() });
        check::<LegalEntity>(&ListLegalEntitiesRequest { state: state(), ..<_>::default() });
        check::<Model>(&ListModelsRequest { state: state(), ..<_>::default() });
        check::<Policy>(&ListPoliciesRequest { state: state(), ..<_>::default() });
        check::<Principal>(&ListPrincipalsRequest { state: state(), ..<_>::default() });
        check::<Project>(&ListProjectsRequest { state: state(), ..<_>::default() });
        check::<Purpose>(&ListPurposesRequest { state: state(), ..<_>::default() });
        check::<Quarantine>(&ListQuarantinesRequest { state: state(), ..<_>::default() });
        check::<Resource>(&ListResourcesRequest { state: state(), ..<_>::default() });
        check::<StopSignal>(&ListStopSignalsRequest { state: state(), ..<_>::default() });
        check::<Team>(&ListTeamsRequest { state: state(), ..<_>::default() });
        check::<Tenant>(&ListTenantsRequest { state: state(), ..<_>::default() });
        check::<Tool>(&ListToolsRequest { state: state(), ..<_>::default() });
        check::<WebhookEndpoint>(&ListWebhookEndpointsRequest { state: state(), ..<_>::default() });
        check::<Workspace>(&ListWorkspacesRequest { state: state(), ..<_>::default() });
    }
}
