//! Approval requests that a search finds.

use authority_api::{error::ApiError, identity::may_call};
use authority_ids::IdParts;
use authority_model::{proto::runtime::FoundApproval, wire::Time};
use authority_presentation::SearchedFact;
use authority_store::{self as store, RunQueryDsl};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Nullable, Text, Timestamptz},
};

use super::{LIMIT, LIST_APPROVALS, Search, SearchHandlers};
use crate::{
    compared::value_code,
    fact_query::{FoundByFact, context, facts},
};

/// Finds requests by id, and requests with the codes of values, which the recorder stores when a
/// request is opened.
const FIND: &str = "
    SELECT a.id, a.tenant_id, a.subject, a.action, a.state, a.created_at, a.decision_id,
           coalesce(d.context, '') AS context, a.id = ANY ($2) AS is_known
    FROM approvals a LEFT JOIN decisions d ON d.id = a.decision_id
    WHERE ($1 IS NULL OR a.tenant_id = $1) AND a.id IN (
        SELECT unnest($2) UNION (
            SELECT f.approval_id
            FROM unnest($3, $4) AS sought (role, value) JOIN approval_facts f
              ON f.tenant_id = $1 AND f.role = sought.role AND f.value = sought.value
            ORDER BY f.created_at DESC LIMIT $5))
    ORDER BY a.created_at DESC, a.id DESC";

/// The maximum number of requests to compare with the values.
const COMPARED: i64 = 200;

#[derive(QueryableByName)]
struct ApprovalRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: Time,
    #[diesel(sql_type = Text)]
    decision_id: String,
    #[diesel(sql_type = Bytea)]
    context: Vec<u8>,
    #[diesel(sql_type = Bool)]
    is_known: bool,
}

impl SearchHandlers {
    /// Finds requests by id, by the decisions that have the value, and by the values of requests,
    /// newest first.
    pub(super) async fn approvals(
        &self,
        search: &Search,
        by_fact: &[FoundByFact],
    ) -> Result<Vec<FoundApproval>, ApiError> {
        if !may_call(LIST_APPROVALS, &search.caller) {
            return Ok(Vec::new());
        }
        let by_id = Some(search.text.clone()).filter(|id| IdParts::is(id, "approval"));
        let of_decisions = by_fact.iter().filter_map(|found| found.row.approval_id.clone());
        let known: Vec<String> = by_id.into_iter().chain(of_decisions).collect();
        // Requests have no codes of amounts.
        let sought = if search.tenant_id.is_some() { facts(&search.text) } else { Vec::new() };
        let (roles, codes) = self.codes(search, &sought);
        let tenant_id = search.tenant_id.clone();
        let found = self.queries.store.read_tx(&search.caller.scope(), async move |db| {
            let rows: Vec<ApprovalRow> = diesel::sql_query(FIND)
                .bind::<Nullable<Text>, _>(tenant_id)
                .bind::<Array<Text>, _>(known)
                .bind::<Array<Text>, _>(roles)
                .bind::<Array<Bytea>, _>(codes)
                .bind::<BigInt, _>(COMPARED)
                .load(db)
                .await?;
            Ok::<_, store::Error>(rows)
        });
        let has_value = |row: &ApprovalRow| {
            let context = context(&row.context);
            context.is_some_and(|context| sought.iter().any(|fact| fact.is_in(&context)))
        };
        let rows = found.await?.into_iter().filter(|row| row.is_known || has_value(row));
        Ok(rows.take(usize::try_from(LIMIT).unwrap_or_default()).map(shown).collect())
    }

    fn codes(&self, search: &Search, sought: &[SearchedFact]) -> (Vec<String>, Vec<Vec<u8>>) {
        let tenant_id = search.tenant_id.as_deref().unwrap_or_default();
        let code = |fact: &SearchedFact| {
            value_code(&self.queries.keys, tenant_id, &fact.role, &fact.value).to_vec()
        };
        sought.iter().map(|fact| (fact.role.clone(), code(fact))).unzip()
    }
}

fn shown(row: ApprovalRow) -> FoundApproval {
    FoundApproval {
        approval_id: row.id,
        tenant_id: row.tenant_id,
        subject: row.subject,
        action: row.action,
        state: row.state,
        asked_at: Some(row.created_at),
        decision_id: row.decision_id,
    }
}
