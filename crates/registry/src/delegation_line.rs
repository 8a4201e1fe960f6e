//! The line of a delegation: it and everything that renewed it, one after the other. Only the
//! newest is in force.

use authority_model::proto::delegation::Delegation;

use super::{flow::or_not_found, prelude::*};

/// Returns the id of a delegation's line.
pub(super) fn line(row: &Delegation) -> &str {
    row.line_id.as_deref().unwrap_or(&row.id)
}

/// Returns and locks the delegation with this id. If it was renewed, returns the newest of its
/// line: a stop that names an old one must reach the one in force.
pub(super) async fn newest(
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
