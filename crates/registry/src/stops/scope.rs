//! The delegations and principals that a stop concerns, and the requests for approval that it
//! covers, counted by the database.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz};

use crate::flow::prelude::*;

/// The stopped authority: all authority that matches every part.
pub(super) struct Scope {
    pub(super) tenant_id: String,
    pub(super) subject: Option<String>,
    /// The newest delegation of its line.
    pub(super) delegation: Option<String>,
    /// Patterns of actions. Empty: all actions.
    pub(super) actions: Vec<String>,
}

/// The delegations and principals that a stop concerns. The three lists about principals have the
/// same order.
#[derive(QueryableByName)]
pub(super) struct Concerned {
    #[diesel(sql_type = BigInt)]
    pub(super) delegation_total: i64,
    /// The first delegations.
    #[diesel(sql_type = Array<Text>)]
    pub(super) delegation_ids: Vec<String>,
    /// The lines of all delegations, whatever their actions.
    #[diesel(sql_type = Array<Text>)]
    pub(super) lines: Vec<String>,
    #[diesel(sql_type = Array<Text>)]
    pub(super) agents: Vec<String>,
    #[diesel(sql_type = Array<Integer>)]
    pub(super) pending: Vec<i32>,
    #[diesel(sql_type = Array<Integer>)]
    pub(super) approved: Vec<i32>,
}

impl Scope {
    /// Whether the stop covers all of a principal's authority for the stopped actions.
    pub(super) fn has_whole(&self, principal: &str) -> bool {
        self.delegation.is_none()
            && self.subject.as_deref().is_none_or(|subject| subject == principal)
    }

    /// Reads the delegations and principals. `limit` applies only to the ids of delegations.
    pub(super) async fn concerned(
        &self,
        db: &mut Db,
        now: DateTime<Utc>,
        limit: i64,
    ) -> QueryResult<Concerned> {
        diesel::sql_query(self.query())
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Nullable<Text>, _>(&self.subject)
            .bind::<Nullable<Text>, _>(&self.delegation)
            .bind::<Timestamptz, _>(now)
            .bind::<Array<Text>, _>(&self.actions)
            .bind::<BigInt, _>(limit)
            .get_result(db)
            .await
    }

    /// Returns the query. `$1` is the tenant, `$2` the principal, `$3` the delegation, `$4` the
    /// current time, `$5` the patterns and `$6` the limit.
    ///
    /// A delegation is live if neither it nor a delegation above it was revoked or has expired.
    /// Suspended delegations are live, because they may be reinstated. `named` means that the
    /// principal is in the delegation's chain.
    fn query(&self) -> String {
        let (seed, named) = match (&self.subject, &self.delegation) {
            (Some(_), Some(_)) => ("id = $3", "(live.delegate_id = $2 OR live.delegator_id = $2)"),
            (None, Some(_)) => ("id = $3", "true"),
            (Some(_), None) => ("delegate_id = $2 OR delegator_id = $2", "true"),
            (None, None) => ("parent_id IS NULL", "true"),
        };
        let covered = match (&self.subject, &self.delegation) {
            (_, Some(_)) => USES_REACHED.to_owned(),
            (Some(_), None) => format!("(a.subject = $2 OR {USES_REACHED})"),
            (None, None) => "true".to_owned(),
        };
        let (is_stopped, permits_stopped) = (covers("a.action", "$5"), overlap("actions", "$5"));
        format!(
            "WITH RECURSIVE live AS NOT MATERIALIZED ( \
                SELECT id, parent_id, delegate_id, delegator_id, depth, actions, \
                    coalesce(line_id, id) AS line FROM delegations \
                WHERE tenant_id = $1 AND state <> 'revoked' AND coalesce(expires_at, 'infinity') > $4 \
            ), above (seed, parent_id, named) AS ( \
                SELECT id, parent_id, {named} FROM live WHERE {seed} \
                UNION ALL \
                SELECT above.seed, live.parent_id, {named} \
                FROM above JOIN live ON live.id = above.parent_id \
            ), whole AS ( \
                SELECT seed, bool_or(named) AS named FROM above \
                GROUP BY seed HAVING bool_or(parent_id IS NULL) \
            ), reached (id, delegate_id, depth, actions, line, named) AS ( \
                SELECT live.id, delegate_id, depth, actions, line, whole.named \
                FROM live JOIN whole ON whole.seed = live.id \
                UNION \
                SELECT live.id, live.delegate_id, live.depth, live.actions, live.line, \
                    reached.named OR {named} \
                FROM reached JOIN live ON live.parent_id = reached.id \
            ), concerned AS ( \
                SELECT id, delegate_id, depth FROM reached WHERE named AND {permits_stopped} \
            ), agents AS ( \
                SELECT id, sum(pending)::integer AS pending, sum(approved)::integer AS approved FROM ( \
                    SELECT delegate_id AS id, 0 AS pending, 0 AS approved FROM concerned \
                    UNION ALL SELECT $2, 0, 0 WHERE $2 IS NOT NULL \
                    UNION ALL SELECT a.subject, (a.state = 'pending')::integer, \
                        (a.state = 'approved')::integer FROM approvals a \
                    WHERE a.tenant_id = $1 AND a.state IN ('pending', 'approved') \
                        AND a.expires_at > $4 AND {is_stopped} AND {covered} \
                ) AS found GROUP BY id \
            ) \
            SELECT (SELECT count(*) FROM concerned) AS delegation_total, \
                ARRAY(SELECT id FROM concerned ORDER BY depth, id LIMIT $6) AS delegation_ids, \
                ARRAY(SELECT DISTINCT line FROM reached WHERE named) AS lines, \
                ARRAY(SELECT id FROM agents ORDER BY id) AS agents, \
                ARRAY(SELECT pending FROM agents ORDER BY id) AS pending, \
                ARRAY(SELECT approved FROM agents ORDER BY id) AS approved"
        )
    }
}

/// Whether a request for approval was held under a reached delegation, or under an earlier delegation
/// in its line.
const USES_REACHED: &str = "EXISTS ( \
    SELECT FROM jsonb_array_elements_text(a.authority -> 'chain') AS used (id) \
    JOIN delegations d ON d.tenant_id = $1 AND d.id = used.id \
    WHERE coalesce(d.line_id, d.id) IN (SELECT line FROM reached WHERE named))";

/// Returns an SQL condition: a pattern covers the action or pattern `action`, or `patterns` is empty.
pub(super) fn covers(action: &str, patterns: &str) -> String {
    let one = covers_one(action, "stopped.p");
    format!(
        "(cardinality({patterns}) = 0 OR EXISTS (SELECT FROM unnest({patterns}) AS stopped (p) WHERE {one}))"
    )
}

/// Returns an SQL condition: `own` and `patterns` have an action in common, or `patterns` is empty.
fn overlap(own: &str, patterns: &str) -> String {
    let (down, up) = (covers_one("own.p", "stopped.p"), covers_one("stopped.p", "own.p"));
    format!(
        "(cardinality({patterns}) = 0 OR EXISTS (SELECT FROM unnest({own}) AS own (p), \
         unnest({patterns}) AS stopped (p) WHERE {down} OR {up}))"
    )
}

/// The rule of `authority_decision::Pattern` in SQL.
fn covers_one(action: &str, pattern: &str) -> String {
    format!(
        "({pattern} = '*' OR {pattern} = {action} \
         OR ({pattern} LIKE '%.*' AND starts_with({action}, left({pattern}, -1))))"
    )
}
