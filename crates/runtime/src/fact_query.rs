//! Finds the decisions on requests with a value of a declared fact.
//!
//! `decision_facts` has 32-bit codes of values. Each found decision's context is therefore compared
//! with the value itself.

use authority_ids::DecisionId;
use authority_keys::Keys;
use authority_model::proto::runtime::ListDecisionsRequest;
use authority_presentation::{AMOUNT, ROLES, SearchedFact};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Integer, Nullable, Text},
};
use serde_json::{Map, Value};

use super::{
    compared::value_code,
    decision_cursor::time_of,
    decision_filter::{DecisionFilter, first_id, found_by, limit},
    decision_summary::DecisionSummaryRow,
};
use authority_decision::Decision;

/// The columns of the codes, in the order of the parameters.
pub(super) const COLUMNS: [&str; 6] = [ROLES[0], ROLES[1], ROLES[2], ROLES[3], ROLES[4], AMOUNT];

/// How far back decisions are searched at first, in days. If these are enough for a page, older
/// partitions are not read.
const DAYS: [i64; 2] = [35, 400];

/// The planner expects that Bloom filters skip no pages. It would scan whole tables instead.
const BY_INDEX: &str = "SELECT set_config('enable_seqscan', 'off', true)";

/// Finds the newest decisions with any of the codes. The fixed prefix of IDs and the key together are
/// the beginning of an ID. An amount can have two codes.
const FIND: &str = "
    SELECT d.id, d.tenant_id, d.subject, d.action, d.decision, d.reason_code, d.evaluated_at,
           d.approval_id, d.context, d.record, f.roles
    FROM (
        SELECT key, (max(CASE WHEN payee = $2 THEN 1 ELSE 0 END)
                   + max(CASE WHEN account = $3 THEN 2 ELSE 0 END)
                   + max(CASE WHEN document = $4 THEN 4 ELSE 0 END)
                   + max(CASE WHEN recipient = $5 THEN 8 ELSE 0 END)
                   + max(CASE WHEN target = $6 THEN 16 ELSE 0 END)
                   + max(CASE WHEN amount = $7 OR amount = $8 THEN 32 ELSE 0 END)) AS roles
        FROM decision_facts
        WHERE tenant_id = $1 AND key >= $9 AND key <= $10
          AND (payee = $2 OR account = $3 OR document = $4 OR recipient = $5 OR target = $6
               OR amount = $7 OR amount = $8)
        GROUP BY key ORDER BY key DESC
    ) AS f CROSS JOIN LATERAL (
        SELECT * FROM decisions
        WHERE id >= 'svc:decision:' || f.key AND id < 'svc:decision:' || f.key || 'g'
          AND tenant_id = $1 AND id >= $11 AND id < $12
          AND ($13 IS NULL OR subject = $13) AND ($14 IS NULL OR action = $14)
          AND ($15 IS NULL OR decision = ANY ($15)) AND ($16 IS NULL OR reason_code = $16)
        OFFSET 0
    ) AS d
    ORDER BY f.key DESC LIMIT $17";

#[derive(QueryableByName)]
struct CandidateRow {
    #[diesel(embed)]
    found: DecisionSummaryRow,
    #[diesel(sql_type = Integer)]
    roles: i32,
}

/// A decision on a request that has the value.
pub(super) struct FoundByFact {
    pub(super) row: DecisionSummaryRow,
    /// The roles that have the value.
    pub(super) roles: Vec<String>,
}

/// A search for the value of a fact.
pub(super) struct FactQuery {
    tenant_id: String,
    /// The value in the form of each role, at most one for each but the amount.
    facts: Vec<SearchedFact>,
    keys: Keys,
    by: ListDecisionsRequest,
    now: DateTime<Utc>,
}

impl FactQuery {
    /// Creates a search for a text. A role and `:` before the value limit it to this role.
    pub(super) fn new(keys: &Keys, tenant_id: &str, text: &str, now: DateTime<Utc>) -> Self {
        Self {
            tenant_id: tenant_id.to_owned(),
            facts: facts(text),
            keys: keys.clone(),
            by: ListDecisionsRequest::default(),
            now,
        }
    }

    /// Adds the other conditions of a list's filter.
    pub(super) fn filtered(self, filter: &DecisionFilter) -> Self {
        Self { by: filter.conditions().clone(), ..self }
    }

    /// Returns the newest `most` decisions, newest first. With `before`, these are older than the
    /// decision with this ID.
    pub(super) async fn newest(
        &self,
        db: &mut Db,
        mut before: Option<String>,
        most: i64,
    ) -> QueryResult<Vec<FoundByFact>> {
        let size = usize::try_from(most).unwrap_or_default();
        let mut found: Vec<FoundByFact> = Vec::new();
        if self.facts.is_empty() {
            return Ok(found);
        }
        limit(db).await?;
        diesel::sql_query(BY_INDEX).execute(db).await?;
        // Usually one round: only a candidate without the value makes a page too short.
        loop {
            let page = self.candidates(db, before.as_deref(), most).await?;
            let is_last = page.len() < size;
            before = page.last().map(|candidate| candidate.found.id.clone());
            found.extend(page.into_iter().filter_map(|candidate| self.confirmed(candidate)));
            if is_last || found.len() >= size {
                found.truncate(size);
                return Ok(found);
            }
        }
    }

    /// Returns the newest decisions with any of the codes.
    async fn candidates(
        &self,
        db: &mut Db,
        before: Option<&str>,
        most: i64,
    ) -> QueryResult<Vec<CandidateRow>> {
        let since = self.by.since.map(first_id).unwrap_or_default();
        let newest = before.and_then(time_of).unwrap_or(self.now);
        for days in DAYS {
            let from = first_id((newest - TimeDelta::days(days)).into());
            if from <= since {
                break;
            }
            let page = self.page(db, &from, before, most).await?;
            if i64::try_from(page.len()).unwrap_or(i64::MAX) >= most {
                return Ok(page);
            }
        }
        self.page(db, &since, before, most).await
    }

    async fn page(
        &self,
        db: &mut Db,
        from: &str,
        before: Option<&str>,
        most: i64,
    ) -> QueryResult<Vec<CandidateRow>> {
        // Later than every ID.
        let end = self.by.until.map_or_else(|| "svc:decision:g".to_owned(), first_id);
        let end = before.map_or(end.clone(), |before| before.to_owned().min(end));
        let words = self.by.decision.as_deref().and_then(Decision::from_word).map(found_by);
        let [payee, account, document, recipient, target, amount] =
            COLUMNS.map(|role| self.codes(role));
        diesel::sql_query(FIND)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Nullable<Integer>, _>(payee[0])
            .bind::<Nullable<Integer>, _>(account[0])
            .bind::<Nullable<Integer>, _>(document[0])
            .bind::<Nullable<Integer>, _>(recipient[0])
            .bind::<Nullable<Integer>, _>(target[0])
            .bind::<Nullable<Integer>, _>(amount[0])
            .bind::<Nullable<Integer>, _>(amount[1])
            .bind::<Text, _>(key(from))
            .bind::<Text, _>(key(&end))
            .bind::<Text, _>(from)
            .bind::<Text, _>(&end)
            .bind::<Nullable<Text>, _>(self.by.subject.as_deref())
            .bind::<Nullable<Text>, _>(self.by.action.as_deref())
            .bind::<Nullable<Array<Text>>, _>(words)
            .bind::<Nullable<Text>, _>(self.by.reason_code.as_deref())
            .bind::<BigInt, _>(most)
            .load(db)
            .await
    }

    /// The codes of a role's values. Only an amount can be read in two ways.
    fn codes(&self, role: &str) -> [Option<i32>; 2] {
        let facts = self.facts.iter().filter(|fact| fact.role == role);
        let mut codes = facts.map(|fact| code(&self.keys, &self.tenant_id, fact));
        [codes.next(), codes.next()]
    }

    /// Compares the values themselves. `None` if the request does not have the value, or if its
    /// context was erased.
    fn confirmed(&self, candidate: CandidateRow) -> Option<FoundByFact> {
        let context = context(&candidate.found.context)?;
        let columns = COLUMNS.iter().enumerate();
        let coded = columns.filter(|(place, _)| candidate.roles & 1 << place != 0);
        let has_value = |role: &str| {
            let mut facts = self.facts.iter().filter(|fact| fact.role == role);
            facts.any(|fact| fact.is_in(&context))
        };
        let roles = coded.filter(|(_, role)| has_value(role)).map(|(_, role)| (*role).to_owned());
        let roles: Vec<String> = roles.collect();
        (!roles.is_empty()).then_some(FoundByFact { row: candidate.found, roles })
    }
}

/// The facts that a text means.
pub(super) fn facts(text: &str) -> Vec<SearchedFact> {
    let prefixed = text.split_once(':').filter(|(role, _)| COLUMNS.contains(&role.trim()));
    match prefixed {
        Some((role, value)) => SearchedFact::of_text(value, Some(role.trim())),
        None => SearchedFact::of_text(text, None),
    }
}

/// The code of a value in `decision_facts`.
pub(super) fn code(keys: &Keys, tenant_id: &str, fact: &SearchedFact) -> i32 {
    let [a, b, c, d, ..] = value_code(keys, tenant_id, &fact.role, &fact.value);
    i32::from_be_bytes([a, b, c, d])
}

/// The key of a decision in `decision_facts`, as `fact_key` in the migrations.
pub(super) fn key(id: &str) -> &str {
    let digits = id.strip_prefix(DecisionId::PREFIX).unwrap_or_default();
    digits.get(..24).unwrap_or(digits)
}

/// Reads a stored context. `None` if it was erased.
pub(super) fn context(text: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(text).ok()
}
