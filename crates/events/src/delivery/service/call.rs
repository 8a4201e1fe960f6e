//! An admitted call, and the endpoint that it names.

use authority_api::{
    error::ApiError,
    idempotency::IdempotencyKey,
    identity::{Caller, admitted},
};
use authority_ids::TenantRef;
use authority_model::{record::RpcRequest, validate::Validate};
use authority_store::{self as store, Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, Text},
};
use tonic::Request;

/// An admitted call. The caller may see all events of the tenant.
pub(super) struct Call<T> {
    pub(super) caller: Caller,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) request: T,
}

impl<T: RpcRequest + Validate> Call<T> {
    pub(super) fn of(call: Request<T>) -> Result<Self, ApiError> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        caller.unbound("see deliveries, which cover all events of the tenant")?;
        Ok(Self { caller, key, request })
    }
}

/// An endpoint that is visible to the caller.
#[derive(QueryableByName)]
pub(super) struct Seen {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) tenant_id: TenantRef,
    #[diesel(sql_type = Text)]
    pub(super) tenant_state: String,
    #[diesel(sql_type = Array<Text>)]
    pub(super) event_types: Vec<String>,
}

impl Seen {
    pub(super) async fn find(db: &mut Db, id: &str) -> Result<Self, ApiError> {
        Self::read(db, id, "").await
    }

    /// Finds the endpoint and prevents its deletion until the transaction ends.
    pub(super) async fn lock(db: &mut Db, id: &str) -> Result<Self, ApiError> {
        Self::read(db, id, "FOR SHARE OF e").await
    }

    async fn read(db: &mut Db, id: &str, lock: &str) -> Result<Self, ApiError> {
        let query = [
            "SELECT e.tenant_id, t.state AS tenant_state, e.event_types FROM webhook_endpoints e \
             JOIN tenants t ON t.id = e.tenant_id WHERE e.id = $1 AND e.state <> 'deleted' ",
            lock,
        ];
        let query = diesel::sql_query(query.concat());
        let found = query.bind::<Text, _>(id).get_result(db).await.optional();
        let found: Option<Self> = found.map_err(store::Error::from)?;
        found.ok_or_else(|| ApiError::not_found("webhook_endpoint", id))
    }
}
