//! Selects the months to archive.

use authority_ids::{DecisionId, TenantId};
use authority_store::{Db, RunQueryDsl, Scope, row_id};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Integer, Nullable, Text, Timestamptz},
};

use super::{Archiver, Subject};
use crate::{Error, format::month::Month};

/// Selects the tenants with a retention of decisions and without a legal hold. Each row has the
/// tenant's oldest rows, archived months, and months that another node is archiving.
const TENANTS: &str = "
    SELECT t.id, (t.retention ->> 'decisions_days')::integer AS days,
           (SELECT min(d.id) FROM decisions d WHERE d.tenant_id = t.id) AS decision,
           least((SELECT min(v.valid_to) FROM record_versions v WHERE v.tenant_id = t.id AND v.body IS NOT NULL),
                 (SELECT c.at FROM authority_changes c WHERE c.tenant_id = t.id
                  ORDER BY c.tenant_revision LIMIT 1)) AS history,
           ARRAY(SELECT a.month FROM archives a WHERE a.tenant_id = t.id) AS archived,
           ARRAY(SELECT r.month FROM archive_runs r
                 WHERE r.tenant_id = t.id AND r.lease <> $1 AND r.leased_until > clock_timestamp()) AS others
    FROM tenants t
    WHERE t.legal_hold IS NULL AND t.retention ->> 'decisions_days' IS NOT NULL
    ORDER BY t.id";

/// Whether a month has any rows, and whether it can be archived. No approval of the month may be
/// open. If the tenant erases contexts by age, the month's contexts must be erased.
const MONTH: &str = "
    SELECT last.id IS NOT NULL
           OR EXISTS (SELECT FROM archived_versions(t.id, $2))
           OR EXISTS (SELECT FROM archived_changes(t.id, $2)) AS has_any,
           NOT EXISTS (SELECT FROM approvals a
                       WHERE a.tenant_id = t.id AND a.state IN ('pending', 'approved')
                         AND a.decision_id >= $3 AND a.decision_id < $4)
           AND (last.id IS NULL OR t.retention ->> 'contexts_days' IS NULL
                OR last.id <= (SELECT e.erased_until FROM context_retention e WHERE e.tenant_id = t.id))
               IS TRUE AS is_settled
    FROM tenants t
    CROSS JOIN LATERAL (SELECT max(d.id) AS id FROM decisions d
                        WHERE d.tenant_id = t.id AND d.id >= $3 AND d.id < $4) AS last
    WHERE t.id = $1";

#[derive(QueryableByName)]
struct Tenant {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Integer)]
    days: i32,
    #[diesel(sql_type = Nullable<Text>)]
    decision: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    history: Option<DateTime<Utc>>,
    #[diesel(sql_type = Array<Text>)]
    archived: Vec<String>,
    /// Months that another node is archiving.
    #[diesel(sql_type = Array<Text>)]
    others: Vec<String>,
}

#[derive(QueryableByName)]
struct State {
    #[diesel(sql_type = Bool)]
    has_any: bool,
    #[diesel(sql_type = Bool)]
    is_settled: bool,
}

impl Tenant {
    /// Returns the month of the tenant's oldest row.
    fn first(&self) -> Option<Month> {
        let decision = self.decision.as_ref().and_then(|id| DecisionId::parse(id).ok());
        let decision = decision.and_then(|id| Month::of_decision(&id));
        let history = self.history.map(Month::of);
        decision.into_iter().chain(history).min()
    }

    /// Returns the months that are old enough and not archived, oldest first.
    ///
    /// The list ends before a month that another node is archiving: a tenant's months are archived
    /// in order. Otherwise the history in the tables would have gaps.
    fn old(&self, now: DateTime<Utc>) -> Vec<Month> {
        let days = u32::try_from(self.days).unwrap_or_default();
        let months = std::iter::successors(self.first(), |month| Some(month.next()));
        months
            .take_while(|month| month.is_older(days, now))
            .take_while(|month| !self.others.contains(&month.to_string()))
            .filter(|month| !self.archived.contains(&month.to_string()))
            .collect()
    }
}

impl Archiver {
    /// Returns all months that are due now.
    pub(super) async fn due(&self) -> Result<Vec<Subject>, Error> {
        let (now, name) = (self.parts.clock.now(), self.name.clone());
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let tenants: Vec<Tenant> =
                diesel::sql_query(TENANTS).bind::<Text, _>(name).load(db).await?;
            let mut due = Vec::new();
            for tenant in tenants {
                let tenant_id = row_id(&tenant.id)?;
                for month in tenant.old(now) {
                    let state = state(db, &tenant_id, month).await?;
                    if state.has_any && !state.is_settled {
                        break;
                    }
                    if state.has_any {
                        due.push(Subject { tenant_id: tenant_id.clone(), month });
                    }
                }
            }
            Ok::<_, Error>(due)
        });
        read.await
    }
}

async fn state(db: &mut Db, tenant_id: &TenantId, month: Month) -> Result<State, Error> {
    let ids = month.ids();
    let state = diesel::sql_query(MONTH)
        .bind::<Text, _>(tenant_id.as_str())
        .bind::<Text, _>(month.to_string())
        .bind::<Text, _>(ids.start)
        .bind::<Text, _>(ids.end)
        .get_result(db)
        .await?;
    Ok(state)
}
