//! Warnings about other requests of the tenant.
//!
//! Requests are compared by codes of the values of declared roles, which the recorder stores when a
//! request is opened.

use std::collections::HashMap;

use authority_model::{
    proto::approval::{Approval, SimilarApproval, SimilarApprovals},
    record::Record,
    state::ApprovalState,
    wire::Time,
};
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};

use crate::flow::prelude::*;

/// Compares requests with those of the 90 days before, and with later ones.
///
/// A request for the same question that had no effect is not a warning: `earlier` lists it. A request
/// with several values of a role is compared by each of them.
const SIMILAR: &str = "
    SELECT shown.id AS later, found.reason, found.total, found.id, found.state, found.asked_at
    FROM approvals shown CROSS JOIN LATERAL (
        SELECT reason, other.id, other.state, other.created_at AS asked_at,
               count(*) OVER (PARTITION BY reason) AS total,
               row_number() OVER (
                   PARTITION BY reason ORDER BY other.created_at DESC, other.id DESC) AS place
        FROM (
            SELECT DISTINCT known.approval_id, compared.reason
            FROM approval_facts own
            JOIN (VALUES ('document', 'payee', 'document_again'),
                         ('payee', 'account', 'new_account'),
                         ('account', 'payee', 'shared_account')
            ) AS compared (role, second, reason) ON compared.role = own.role
            JOIN approval_facts known
                ON known.tenant_id = own.tenant_id AND known.role = own.role
                AND known.value = own.value AND known.approval_id <> own.approval_id
                AND known.created_at > shown.created_at - interval '90 days'
            CROSS JOIN LATERAL (
                SELECT array_agg(value) AS own FROM approval_facts
                WHERE decision_id = own.decision_id AND role = compared.second) AS mine
            CROSS JOIN LATERAL (
                SELECT array_agg(value) AS known FROM approval_facts
                WHERE decision_id = known.decision_id AND role = compared.second) AS theirs
            WHERE own.decision_id = shown.decision_id AND CASE compared.reason
                WHEN 'document_again' THEN coalesce(mine.own && theirs.known, true)
                ELSE NOT mine.own <@ theirs.known END
        ) AS alike JOIN approvals other ON other.id = alike.approval_id
        WHERE other.request_digest <> shown.request_digest
           OR other.state IN ('pending', 'approved', 'used')
    ) AS found
    WHERE shown.id = ANY ($1) AND found.place <= 20
    ORDER BY shown.id, array_position(
        ARRAY['document_again', 'new_account', 'shared_account'], found.reason), found.place";

/// Finds the roles of which a request has a value that no earlier request had.
const FIRST: &str = "
    SELECT DISTINCT shown.id AS later, own.role
    FROM approvals shown JOIN approval_facts own ON own.decision_id = shown.decision_id
    WHERE shown.id = ANY ($1) AND own.role IN ('payee', 'account') AND NOT EXISTS (
        SELECT FROM approval_facts known
        WHERE known.tenant_id = own.tenant_id AND known.role = own.role AND known.value = own.value
          AND known.created_at > own.created_at - interval '90 days'
          AND (known.created_at, known.approval_id) < (own.created_at, own.approval_id))
    ORDER BY shown.id, own.role DESC";

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

/// What is known of requests beside them, by request.
#[derive(Default)]
pub(super) struct Comparisons {
    similar: HashMap<String, Vec<SimilarApprovals>>,
    first: HashMap<String, Vec<String>>,
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
        let similar: Vec<Similar> =
            diesel::sql_query(SIMILAR).bind::<Array<Text>, _>(ids).load(db).await?;
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
        Ok(found)
    }

    pub(super) fn put(&mut self, row: &mut Approval) {
        row.similar = self.similar.remove(&row.id).unwrap_or_default();
        row.first_to = self.first.remove(&row.id).unwrap_or_default();
    }
}

/// The requests of a list that are compared: the pending ones, which people still decide. A single
/// request is compared in any state.
pub(super) fn compared(rows: &[Approval]) -> Vec<String> {
    let pending = |row: &&Approval| row.known_state() == Some(ApprovalState::Pending);
    let all = rows.iter().filter(|row| rows.len() == 1 || pending(row));
    all.map(|row| row.id.clone()).collect()
}
