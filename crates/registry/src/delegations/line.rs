//! Lines of delegations. A line is a delegation followed by its renewals. Only the newest
//! delegation of a line is in force.

use authority_model::{proto::delegation::Delegation, schema::delegations};

use crate::flow::{operations::or_not_found, prelude::*, version::IfMatch};
use authority_ids::DelegationId;

/// Returns the id of a delegation's line.
pub(crate) fn line(row: &Delegation) -> &str {
    row.line_id.as_deref().unwrap_or(&row.id)
}

/// Returns and locks the newest delegation of a line, by the id of any delegation of the line. A
/// stop that names a renewed delegation must reach the delegation in force.
pub(crate) async fn newest(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &str,
) -> Result<Delegation, Error> {
    let mut row = or_not_found(Delegation::lock(db, within, id).await, id)?;
    while let Some(next) = row.renewed_by.take() {
        row = or_not_found(Delegation::lock(db, within, &next).await, &next)?;
    }
    Ok(row)
}

/// Checks the condition of `If-Match` for a change of `newest` that names the delegation `id` of its
/// line. The client may have read either of them: the version of one must match.
pub(crate) async fn check_version(
    db: &mut Db,
    if_match: &IfMatch,
    newest: &Delegation,
    id: &str,
) -> Result<(), Error> {
    let checked = if_match.check(newest);
    if checked.is_ok() || newest.id == id {
        return checked;
    }
    let named = Delegation::lock(db, Some(&row_id(newest.tenant_id())?), id).await;
    if_match.check(&or_not_found(named, id)?)
}

/// Returns the id of the newest delegation of the line that contains `id`. `None` if `id` is
/// unknown in the tenant.
pub(crate) async fn newest_id(
    db: &mut Db,
    tenant_id: &str,
    mut id: DelegationId,
) -> QueryResult<Option<DelegationId>> {
    loop {
        let found: Option<Option<String>> = delegations::table
            .filter(delegations::tenant_id.eq(tenant_id).and(delegations::id.eq(id.as_str())))
            .select(delegations::renewed_by)
            .first(db)
            .await
            .optional()?;
        match found {
            None => return Ok(None),
            Some(None) => return Ok(Some(id)),
            Some(Some(next)) => id = row_id(&next)?,
        }
    }
}
