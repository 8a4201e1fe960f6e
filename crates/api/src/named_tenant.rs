//! The tenant that a request names, for example in the filter of a list.

use authority_ids::TenantId;
use authority_model::{schema::tenants, validate::shortened};
use authority_store::{self as store, Db, RunQueryDsl, Store};
use diesel::{dsl::exists, prelude::*, select};

use crate::{error::ApiError, identity::Caller};

/// The maximum number of characters of an unknown `tenant_id` in an error.
const SHOWN: usize = 100;

/// Checks that the tenant exists. A deleted tenant is accepted.
///
/// A tenant's own callers may name only their own tenant. For any other tenant, they get the same
/// error, whether that tenant exists or not.
///
/// # Errors
/// 400 about `tenant_id`, or the store cannot be read.
pub async fn known(
    store: &Store,
    caller: &Caller,
    tenant_id: Option<&str>,
) -> Result<(), ApiError> {
    let Some(named) = tenant_id else { return Ok(()) };
    let is_known = match caller.tenant() {
        Some(own) => own.as_str() == named,
        None => exists_in(store, caller, named.to_owned()).await?,
    };
    if is_known {
        return Ok(());
    }
    Err(unknown(named))
}

/// Checks that the text has the form of a tenant's id.
///
/// # Errors
/// 400 about `tenant_id`.
pub fn readable(tenant_id: Option<&str>) -> Result<(), ApiError> {
    match tenant_id {
        Some(named) if TenantId::parse(named).is_err() => Err(unknown(named)),
        _ => Ok(()),
    }
}

fn unknown(named: &str) -> ApiError {
    let shown = shortened(named, SHOWN);
    ApiError::field("tenant_id", format!("`{shown}` is unknown; give the tenant's id or slug"))
}

async fn exists_in(store: &Store, caller: &Caller, id: String) -> Result<bool, store::Error> {
    let find = async move |db: &mut Db| {
        let found = select(exists(tenants::table.find(id))).get_result(db).await;
        Ok::<bool, store::Error>(found?)
    };
    store.read_tx(&caller.scope(), find).await
}
