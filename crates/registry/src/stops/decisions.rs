//! The decisions on stopped actions, counted by agent: recent ones, refusals by the stop, and
//! permissions that were valid when the stop began.

use std::{collections::HashSet, time::Duration};

use authority_evidence::sealed;
use authority_ids::DecisionId;
use authority_model::{stored_record::StoredRecord, wire::Time};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz};

use super::scope::{Scope, covers};
use crate::flow::prelude::*;
use authority_decision::{Decision, Reason};

/// The time limit of each query.
const LIMIT: Duration = Duration::from_secs(3);
/// The maximum number of permissions that are read. Their end is only in their records, which the
/// database stores compressed.
const MOST_PERMISSIONS: usize = 10_000;
/// The maximum duration of a permission.
const LONGEST: TimeDelta = TimeDelta::hours(1);
/// The time before the stop in which decisions are recent.
const RECENT: TimeDelta = TimeDelta::hours(24);

/// The agents with the decisions to count.
pub(super) enum Whose<'a> {
    /// Only these.
    Agents(&'a [String]),
    /// All agents of the tenant.
    All,
}

/// The time of a stop.
#[derive(Clone, Copy)]
pub(super) struct Period {
    pub(super) at: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

/// The decisions of one agent.
#[derive(QueryableByName)]
pub(super) struct Counted {
    #[diesel(sql_type = Text)]
    pub(super) subject: String,
    #[diesel(sql_type = Integer)]
    pub(super) recent: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) last: Option<Time>,
    #[diesel(sql_type = Integer)]
    pub(super) refusals: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) last_refused: Option<Time>,
}

/// A permission that was valid when the stop began.
pub(super) struct ValidPermission {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) action: String,
    pub(super) valid_until: DateTime<Utc>,
    pub(super) outcome: Option<String>,
}

#[derive(QueryableByName)]
struct Allowed {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = StoredRecord)]
    record: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    outcome: Option<String>,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    id: String,
}

/// Applies the time limit to the transaction. A generic plan can't use the values' statistics.
pub(super) async fn limit(db: &mut Db) -> QueryResult<()> {
    let settings = "SELECT set_config('statement_timeout', $1, true), \
        set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)";
    let limit = LIMIT.as_millis().to_string();
    diesel::sql_query(settings).bind::<Text, _>(limit).execute(db).await.map(drop)
}

/// Counts the decisions on the stopped actions, from 24 hours before the stop until its release.
pub(super) async fn count(
    db: &mut Db,
    scope: &Scope,
    whose: &Whose<'_>,
    period: Period,
) -> QueryResult<Vec<Counted>> {
    let (from, covered) = (whose.from(), covers("d.action", "$2"));
    let query = format!(
        "{from} AND {covered}) \
         SELECT subject, count(*) FILTER (WHERE evaluated_at < $7)::integer AS recent, \
            max(evaluated_at) FILTER (WHERE evaluated_at < $7) AS last, \
            count(*) FILTER (WHERE evaluated_at >= $7 AND reason_code = ANY ($8))::integer AS refusals, \
            max(evaluated_at) FILTER (WHERE evaluated_at >= $7 AND reason_code = ANY ($8)) AS last_refused \
         FROM made GROUP BY subject"
    );
    let query = query.replacen("{columns}", "d.subject, d.evaluated_at, d.reason_code", 1);
    let refused = [Reason::ActorStopped, Reason::CapabilityQuarantined];
    let refused: Vec<String> = refused.map(|reason| reason.word().to_owned()).into();
    let (first, last) = (first_id(period.at - RECENT), first_id(period.until));
    diesel::sql_query(query)
        .bind::<Text, _>(&scope.tenant_id)
        .bind::<Array<Text>, _>(&scope.actions)
        .bind::<Text, _>(&first)
        .bind::<Text, _>(&last)
        .bind::<BigInt, _>(sort_key(period.at - RECENT))
        .bind::<BigInt, _>(sort_key(period.until))
        .bind::<Timestamptz, _>(period.at)
        .bind::<Array<Text>, _>(refused)
        .bind::<Array<Text>, _>(whose.agents())
        .load(db)
        .await
}

/// Reads the permissions that were valid when the stop began, newest first. `None` if there are too
/// many to read. `lines` are the lines of the stopped delegations.
pub(super) async fn permissions(
    db: &mut Db,
    scope: &Scope,
    whose: &Whose<'_>,
    lines: &[String],
    at: DateTime<Utc>,
) -> Result<Option<Vec<ValidPermission>>, Error> {
    let (from, covered) = (whose.from(), covers("d.action", "$2"));
    let query = format!(
        "{from} AND {covered} AND d.decision = ANY ($8) AND d.evaluated_at < $7) \
         SELECT made.id, made.subject, made.action, made.record, r.outcome \
         FROM made LEFT JOIN decision_reports r ON r.decision_id = made.id AND r.tenant_id = $1 \
         ORDER BY made.id DESC LIMIT $10"
    );
    let query = query.replacen("{columns}", "d.id, d.subject, d.action, d.record", 1);
    let words = Decision::ALL.iter().filter(|word| word.folded() == Decision::Allow);
    let words: Vec<String> = words.map(|word| word.word().to_owned()).collect();
    // A decision of the same millisecond may precede the stop.
    let end = at + TimeDelta::milliseconds(1);
    let allowed: Vec<Allowed> = diesel::sql_query(query)
        .bind::<Text, _>(&scope.tenant_id)
        .bind::<Array<Text>, _>(&scope.actions)
        .bind::<Text, _>(first_id(at - LONGEST))
        .bind::<Text, _>(first_id(end))
        .bind::<BigInt, _>(sort_key(at - LONGEST))
        .bind::<BigInt, _>(sort_key(end))
        .bind::<Timestamptz, _>(at)
        .bind::<Array<Text>, _>(words)
        .bind::<Array<Text>, _>(whose.agents())
        .bind::<BigInt, _>(i64::try_from(MOST_PERMISSIONS + 1).unwrap_or(i64::MAX))
        .load(db)
        .await?;
    if allowed.len() > MOST_PERMISSIONS {
        return Ok(None);
    }
    let mut valid = Vec::new();
    for one in allowed {
        let valid_until = sealed::permission(&one.record)?.valid_until;
        if valid_until > at {
            valid.push((sealed::authority(&one.record)?.chain, valid_until, one));
        }
    }
    let used = valid.iter().flat_map(|(chain, ..)| chain).map(|id| id.as_str().to_owned());
    let stopped = stopped(db, scope, lines, used.collect()).await?;
    valid.retain(|(chain, _, one)| {
        scope.has_whole(&one.subject) || chain.iter().any(|id| stopped.contains(id.as_str()))
    });
    Ok(Some(valid.into_iter().map(|(_, valid_until, one)| one.valid(valid_until)).collect()))
}

/// Returns the delegations in `used` that belong to the lines.
async fn stopped(
    db: &mut Db,
    scope: &Scope,
    lines: &[String],
    used: HashSet<String>,
) -> QueryResult<HashSet<String>> {
    let used = Vec::from_iter(used);
    let query = "SELECT id FROM delegations \
        WHERE tenant_id = $1 AND id = ANY ($2) AND coalesce(line_id, id) = ANY ($3)";
    let found: Vec<Line> = diesel::sql_query(query)
        .bind::<Text, _>(&scope.tenant_id)
        .bind::<Array<Text>, _>(used)
        .bind::<Array<Text>, _>(lines)
        .load(db)
        .await?;
    Ok(found.into_iter().map(|line| line.id).collect())
}

impl Allowed {
    fn valid(self, valid_until: DateTime<Utc>) -> ValidPermission {
        let Self { id, subject, action, outcome, .. } = self;
        ValidPermission { id, subject, action, valid_until, outcome }
    }
}

impl Whose<'_> {
    /// Returns the beginning of a query: the decisions between two ids (`$3` and `$4`, with the sort
    /// keys `$5` and `$6`), up to an open WHERE clause. `$9` are the agents.
    fn from(&self) -> String {
        // Row-level security permits only leakproof functions in index conditions. The keys of the
        // agents are therefore computed before.
        match self {
            Self::Agents(_) => "WITH agents AS MATERIALIZED (SELECT id, hashtext(id) AS key FROM unnest($9) AS id), \
                made AS (SELECT {columns} FROM agents JOIN decisions d \
                ON d.tenant_id = $1 AND d.subject_key = agents.key AND d.sort_key BETWEEN $5 AND $6 \
                WHERE d.subject = agents.id AND d.id >= $3 AND d.id < $4"
                .to_owned(),
            Self::All => "WITH made AS (SELECT {columns} FROM decisions d \
                WHERE d.tenant_id = $1 AND d.id >= $3 AND d.id < $4"
                .to_owned(),
        }
    }

    fn agents(&self) -> &[String] {
        match self {
            Self::Agents(agents) => agents,
            Self::All => &[],
        }
    }
}

fn millis(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_millis()).unwrap_or_default()
}

/// Returns the smallest id of a decision at a time.
fn first_id(at: DateTime<Utc>) -> String {
    DecisionId::first(millis(at))
}

/// Returns the smallest value of `decisions.sort_key` at a time.
fn sort_key(at: DateTime<Utc>) -> i64 {
    i64::try_from(millis(at) << 16).unwrap_or(i64::MAX)
}
