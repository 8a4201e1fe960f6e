//! The record of an approval request: its list and its changes.

use authority_model::{proto::approval::*, schema::approvals, state::ApprovalState, wire::Time};
use chrono::{DateTime, Utc};
use diesel::dsl::sql;

use super::{list, show};
use crate::flow::{operations::changeable, prelude::*};

impl RecordRow for Approval {
    type List = ListApprovalsRequest;

    fn filtered(by: &ListApprovalsRequest) -> approvals::BoxedQuery<'_, Pg> {
        let mut query = approvals::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(approvals::state.eq(state));
        }
        if by.state.as_deref().is_some_and(list::is_open) {
            // This condition matches the partial index on requests that expire.
            query = query.filter(sql::<Bool>("state IN ('pending', 'approved')"));
        }
        if let Some(subject) = &by.subject {
            query = query.filter(approvals::subject.eq(subject));
        }
        if let Some(action) = &by.action {
            query = query.filter(approvals::action.eq(action));
        }
        if let Some(after) = by.expires_after {
            query = query.filter(approvals::expires_at.gt(after));
        }
        query
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        show::fill_computed(registry, caller, rows).await
    }
}

impl_queries!(Approval, approvals);

/// Refuses a request that is not pending any more.
pub(super) fn open(row: &Approval, now: DateTime<Utc>) -> Result<(), Error> {
    changeable(row)?;
    if row.known_state() != Some(ApprovalState::Pending) {
        return Err(Error::NotAllowed(format!("the request is {} already", row.state)));
    }
    if row.expires_at.is_none_or(|end| end <= now.into()) {
        return Err(Error::NotAllowed("the request has expired".to_owned()));
    }
    Ok(())
}

pub(super) async fn save(db: &mut Db, row: &Approval, now: DateTime<Utc>) -> QueryResult<Approval> {
    diesel::update(approvals::table.find(&row.id))
        .filter(approvals::tenant_id.eq(&row.tenant_id))
        .set((
            approvals::state.eq(&row.state),
            approvals::acts.eq(&row.acts),
            approvals::given.eq(row.given),
            approvals::needed.eq(row.needed),
            approvals::roles.eq(&row.roles),
            approvals::declined_at.eq(row.declined_at),
            approvals::declined_for_seconds.eq(row.declined_for_seconds),
            approvals::updated_at.eq(Time::from(now)),
        ))
        .returning(Approval::as_returning())
        .get_result(db)
        .await
}
