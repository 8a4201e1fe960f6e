//! Legal holds of tenants and of the installation. Data under a legal hold is not erased.

use diesel::sql_types::{Bool, Nullable, Text};

use super::{
    export::{ExportPosition, KINDS, page},
    handlers::PersonalData,
    person::Person,
};
use crate::flow::prelude::*;
use authority_api::error::ApiError;
use authority_crypto::ErasedNames;
use authority_store as store;

/// Locks the tenants. A transaction that sets a legal hold waits until this transaction ends. The
/// hold then applies to later erasures.
const LOCK: &str = "SELECT id, legal_hold IS NOT NULL AS is_held FROM tenants \
     WHERE ($1 IS NULL OR id = $1) ORDER BY id FOR SHARE";

#[derive(QueryableByName)]
struct Tenant {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Bool)]
    is_held: bool,
}

/// Returns the affected tenants that are under legal hold. No hold can be set before the
/// transaction ends.
pub(super) async fn held(db: &mut Db, within: Option<&str>) -> QueryResult<Vec<String>> {
    let tenants: Vec<Tenant> =
        diesel::sql_query(LOCK).bind::<Nullable<Text>, _>(within).load(db).await?;
    Ok(tenants.into_iter().filter(|tenant| tenant.is_held).map(|tenant| tenant.id).collect())
}

/// Checks that no further tenant has come under legal hold since `before`.
pub(super) async fn still_held(
    db: &mut Db,
    within: Option<&str>,
    before: &[String],
) -> Result<(), Error> {
    let now = held(db, within).await?;
    match now.iter().find(|tenant| !before.contains(tenant)) {
        None => Ok(()),
        Some(tenant) => Err(refused(tenant)),
    }
}

/// Returns the tenants under legal hold, which the erasure skips.
///
/// # Errors
/// The installation is under legal hold, or a tenant that has data of the person.
pub(super) async fn unless_held(
    service: &PersonalData,
    caller: &Caller,
    person: &Person,
) -> Result<Vec<String>, Error> {
    if service.legal_hold.is_some() {
        return Err(Error::Refused(ErrorCode::LegalHold));
    }
    let (store, within) = (&service.registry.store, person.within.clone());
    let names = service.registry.keys.erased_names();
    let found = store.write_tx(&caller.scope(), async move |db| {
        Ok::<_, store::Error>(held(db, within.as_deref()).await?)
    });
    let held = found.await?;
    for tenant in &held {
        let theirs = Person { within: Some(tenant.clone()), ..person.clone() };
        let parameter = theirs.parameter(&names, &[]);
        let archived = service.archives.has_any(&caller.scope(), &parameter).await;
        if archived.map_err(ApiError::from)? || has_any(service, caller, theirs, &names).await? {
            return Err(refused(tenant));
        }
    }
    Ok(held)
}

/// Whether the export would contain any item.
async fn has_any(
    service: &PersonalData,
    caller: &Caller,
    person: Person,
    names: &ErasedNames,
) -> Result<bool, Error> {
    let parameter = person.parameter(names, &[]);
    for kind in KINDS {
        let mut place = Some(ExportPosition::default());
        while let Some(from) = place {
            let (person, within) = (parameter.clone(), person.within.clone());
            let read = service.registry.store.read_tx(&caller.scope(), async move |db| {
                Ok::<_, store::Error>(page(db, kind, &person, within.as_deref(), from).await?)
            });
            let (found, next) = read.await?;
            if !found.is_empty() {
                return Ok(true);
            }
            place = next;
        }
    }
    Ok(false)
}

fn refused(tenant: &str) -> Error {
    let text = format!(
        "the tenant `{tenant}` is under legal hold and has data of this person; erase when its \
         `legal_hold` is lifted, or name another `tenant_id`"
    );
    ApiError::new(ErrorCode::LegalHold, text).into()
}
