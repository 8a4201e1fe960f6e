//! Warnings about other requests of the tenant.
//!
//! Requests are compared by codes of the values of declared roles, which the recorder stores when a
//! request is opened.

use std::collections::{HashMap, HashSet};

use authority_model::{
    proto::approval::{Approval, SimilarApproval, SimilarApprovals},
    record::Record,
    state::ApprovalState,
    wire::Time,
};
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};

use crate::flow::prelude::*;

/// Compares a request with the requests of the 90 days before it, and with later requests.
///
/// A request for the same question that had no effect is not a warning: `earlier` lists it. A request
/// with several values of a role is compared by each of them. `same` counts the values that two
/// requests share: the time is linear in the number of stored values.
const SIMILAR: &str = "
    SELECT shown.id AS later, found.reason, found.total, found.id, found.state, found.asked_at
    FROM (
        SELECT * FROM approvals a WHERE id = ANY ($1)
            AND (SELECT count(*) FROM approval_facts f WHERE f.decision_id = a.decision_id) <= $2
    ) AS shown CROSS JOIN LATERAL (
        WITH compared (role, second, reason) AS (
            VALUES ('document', 'payee', 'document_again'),
                   ('payee', 'account', 'new_account'),
                   ('account', 'payee', 'shared_account')
        ), own AS MATERIALIZED (
            SELECT role, value FROM approval_facts WHERE decision_id = shown.decision_id
        ), same AS (
            SELECT own.role, known.approval_id, count(*) AS number
            FROM own JOIN approval_facts known
                ON known.tenant_id = shown.tenant_id AND known.role = own.role
                AND known.value = own.value AND known.approval_id <> shown.id
                AND known.created_at > shown.created_at - interval '90 days'
            WHERE own.role IN ('document', 'payee', 'account') GROUP BY own.role, known.approval_id
        )
        SELECT reason, other.id, other.state, other.created_at AS asked_at,
               count(*) OVER (PARTITION BY reason) AS total,
               row_number() OVER (
                   PARTITION BY reason ORDER BY other.created_at DESC, other.id DESC) AS place
        FROM compared
        CROSS JOIN LATERAL (SELECT count(*) AS number FROM own WHERE role = second) AS mine
        JOIN same ON same.role = compared.role
        LEFT JOIN same AS both_same
            ON both_same.role = second AND both_same.approval_id = same.approval_id
        JOIN approvals other ON other.id = same.approval_id
        WHERE CASE
            WHEN reason = 'document_again' AND (both_same.number > 0 OR mine.number = 0) THEN true
            WHEN coalesce(both_same.number, 0) = mine.number
                AND NOT (reason = 'shared_account' AND mine.number = 0) THEN false
            ELSE (reason <> 'document_again') = EXISTS (
                SELECT FROM approval_facts
                WHERE decision_id = other.decision_id AND role = compared.second)
            END
            AND (other.request_digest <> shown.request_digest
                OR other.state IN ('pending', 'approved', 'used'))
    ) AS found
    WHERE found.place <= 20
    ORDER BY shown.id, array_position(
        ARRAY['document_again', 'new_account', 'shared_account'], found.reason), found.place";

/// Finds the roles of which a request has a value that no other approved request had. An agent cannot
/// make a value known by asking.
const FIRST: &str = "
    SELECT DISTINCT shown.id AS later, own.role
    FROM approvals shown JOIN approval_facts own ON own.decision_id = shown.decision_id
    WHERE shown.id = ANY ($1) AND own.role IN ('payee', 'account') AND NOT EXISTS (
        SELECT FROM approval_facts known JOIN approvals other ON other.id = known.approval_id
        WHERE known.tenant_id = own.tenant_id AND known.role = own.role AND known.value = own.value
          AND known.created_at > own.created_at - interval '90 days'
          AND known.approval_id <> own.approval_id AND other.state IN ('approved', 'used'))
    ORDER BY shown.id, own.role DESC";

/// Finds requests with more values of a role than are compared.
const PARTLY: &str = "
    SELECT a.id FROM approvals a JOIN approval_facts f ON f.decision_id = a.decision_id
    WHERE a.id = ANY ($1) GROUP BY a.id, f.role HAVING count(*) > 32";

/// The maximum number of values of a request that is compared in a list. The time of a page is
/// otherwise quadratic in the number of requests with many values.
const IN_LIST: i64 = 12;

#[derive(QueryableByName)]
struct Similar {
    #[diesel(sql_type = Text)]
    later: String,
    #[diesel(sql_type = Text)]
    reason: String,
    #[diesel(sql_type = BigInt)]
    total: i64,
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Timestamptz)]
    asked_at: Time,
}

#[derive(QueryableByName)]
struct First {
    #[diesel(sql_type = Text)]
    later: String,
    #[diesel(sql_type = Text)]
    role: String,
}

#[derive(QueryableByName)]
struct Partly {
    #[diesel(sql_type = Text)]
    id: String,
}

/// The warnings and first uses, by request.
#[derive(Default)]
pub(super) struct Comparisons {
    similar: HashMap<String, Vec<SimilarApprovals>>,
    first: HashMap<String, Vec<String>>,
    partly: HashSet<String>,
}

impl Comparisons {
    /// Compares requests.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn of(db: &mut Db, ids: &[String]) -> QueryResult<Self> {
        let mut found = Self::default();
        if ids.is_empty() {
            return Ok(found);
        }
        let most = if ids.len() == 1 { i64::MAX } else { IN_LIST };
        let similar: Vec<Similar> = diesel::sql_query(SIMILAR)
            .bind::<Array<Text>, _>(ids)
            .bind::<BigInt, _>(most)
            .load(db)
            .await?;
        for row in similar {
            let groups = found.similar.entry(row.later).or_default();
            if groups.last().is_none_or(|group| group.reason != row.reason) {
                let total = i32::try_from(row.total).unwrap_or(i32::MAX);
                groups.push(SimilarApprovals { reason: row.reason, total, requests: Vec::new() });
            }
            if let Some(group) = groups.last_mut() {
                let asked_at = Some(row.asked_at);
                group.requests.push(SimilarApproval { id: row.id, state: row.state, asked_at });
            }
        }
        let first: Vec<First> =
            diesel::sql_query(FIRST).bind::<Array<Text>, _>(ids).load(db).await?;
        for row in first {
            found.first.entry(row.later).or_default().push(row.role);
        }
        let partly: Vec<Partly> =
            diesel::sql_query(PARTLY).bind::<Array<Text>, _>(ids).load(db).await?;
        found.partly = partly.into_iter().map(|row| row.id).collect();
        Ok(found)
    }

    pub(super) fn put(&mut self, row: &mut Approval) {
        row.similar = self.similar.remove(&row.id).unwrap_or_default();
        row.first_to = self.first.remove(&row.id).unwrap_or_default();
        row.partly_compared = self.partly.contains(&row.id);
    }
}

/// The requests of a list that are compared: the pending ones, which people still decide. A single
/// request is compared in any state.
pub(super) fn compared(rows: &[Approval]) -> Vec<String> {
    let pending = |row: &&Approval| row.known_state() == Some(ApprovalState::Pending);
    let all = rows.iter().filter(|row| rows.len() == 1 || pending(row));
    all.map(|row| row.id.clone()).collect()
}
