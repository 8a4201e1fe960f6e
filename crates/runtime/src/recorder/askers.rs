//! The requesters of held requests. They are stored with the approval request in the hold's
//! transaction. A requester can therefore never approve.

use authority_model::proto::approval::Asker;
use diesel::{
    QueryResult, Queryable,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, Bool, Nullable, Text},
};

use super::{entry::Entry, sql::run_queries};
use authority_store::{Db, RunQueryDsl};

/// A pending approval request with its requesters.
#[derive(Queryable)]
pub(super) struct Open {
    pub(super) id: String,
    pub(super) requested_by: Vec<Asker>,
    pub(super) emails: Vec<String>,
}

/// Adds the requesters of held decisions to the approval requests that the decisions wait for.
///
/// # Errors
/// [`diesel::result::Error::NotFound`] if a request was decided after it was read.
pub(super) async fn add(db: &mut Db, held: &[(&Entry, &Open)]) -> QueryResult<()> {
    let mut new = AddAskers::default();
    for (entry, open) in held {
        let Some(hold) = &entry.hold else { continue };
        let email = hold.asker_email.as_ref();
        let is_known = open.requested_by.contains(&hold.asker)
            && email.is_none_or(|email| open.emails.contains(email));
        if !is_known {
            new.id.push(&open.id);
            new.kind.push(&hold.asker.kind);
            new.asker.push(&hold.asker.id);
            new.email.push(email.map(String::as_str));
            new.nobody_eligible.push(hold.nobody_eligible);
        }
    }
    if new.id.is_empty() {
        return Ok(());
    }
    let mut wanted = new.id.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let added: Vec<String> = new.load(db).await?;
    if added.len() < wanted.len() { Err(diesel::result::Error::NotFound) } else { Ok(()) }
}

/// Adds new requesters to pending requests, each only once. Returns the requests' IDs.
#[derive(Default)]
struct AddAskers<'a> {
    id: Vec<&'a str>,
    kind: Vec<&'a str>,
    asker: Vec<&'a str>,
    email: Vec<Option<&'a str>>,
    nobody_eligible: Vec<bool>,
}

impl Query for AddAskers<'_> {
    type SqlType = Text;
}

impl QueryFragment<Pg> for AddAskers<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // The locked row determines which requesters are new, because another node may have added
        // some.
        out.push_sql(
            "WITH asking (i, askers, emails, nobody) AS MATERIALIZED ( \
                SELECT i, array_agg(DISTINCT jsonb_build_object('kind', k, 'id', a)), \
                    array_agg(DISTINCT e) FILTER (WHERE e IS NOT NULL), bool_or(n) \
                FROM UNNEST(",
        );
        for column in [&self.id, &self.kind, &self.asker] {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.email)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.nobody_eligible)?;
        // Locks rows in the same order on all nodes, to prevent deadlocks.
        out.push_sql(
            ") AS each (i, k, a, e, n) GROUP BY i), \
             pending AS MATERIALIZED ( \
                SELECT id, requested_by AS known, asker_emails AS addresses FROM approvals \
                WHERE state = 'pending' AND id IN (SELECT i FROM asking) ORDER BY id FOR UPDATE) \
             UPDATE approvals SET \
                requested_by = requested_by || ARRAY( \
                    SELECT asker FROM unnest(askers) AS asker WHERE asker <> ALL (known)), \
                asker_emails = asker_emails || ARRAY( \
                    SELECT email FROM unnest(emails) AS email WHERE email <> ALL (addresses)), \
                eligible = CASE WHEN nobody THEN 'none' ELSE eligible END, \
                updated_at = clock_timestamp() \
             FROM pending JOIN asking ON i = pending.id WHERE approvals.id = pending.id \
             RETURNING approvals.id",
        );
        Ok(())
    }
}

run_queries!(AddAskers);
