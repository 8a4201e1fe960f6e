//! Checks the consultant that another record refers to.

use authority_model::{proto::programme::Consultant, schema::consultants, state::ConsultantStatus};

use crate::flow::prelude::*;

/// Refuses a suspended or retired consultant.
pub(super) fn in_good_standing(consultant: &Consultant) -> Result<(), Error> {
    let good =
        [ConsultantStatus::Applied, ConsultantStatus::Onboarding, ConsultantStatus::Certified];
    if consultant.known_state().is_some_and(|state| good.contains(&state)) {
        return Ok(());
    }
    let status = consultant.status.as_deref().unwrap_or_default();
    Err(Error::NotAllowed(format!("the consultant `{}` is {status}", consultant.id)))
}

/// Returns the consultant that a field refers to, unless they are deleted. Their status can't
/// change before the transaction ends.
pub(super) async fn referred(db: &mut Db, field: &str, id: &str) -> Result<Consultant, Error> {
    let found = consultants::table
        .filter(consultants::id.eq(id))
        .filter(consultants::deleted_at.is_null())
        .for_share()
        .select(Consultant::as_select())
        .first(db)
        .await
        .optional()?;
    found.ok_or_else(|| Error::unknown(field, id))
}
