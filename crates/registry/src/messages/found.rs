//! Finds new requests and lapsed ones, and writes the messages about them.
//!
//! A request is considered once for each channel. The rows of messages are the record of that: after a
//! restart, no message is written again.

use authority_api::identity::permitted_roles;
use authority_graph::{Graph, Person, TenantHandle};
use authority_ids::RecordId;
use authority_model::{proto::approval::Approval, schema::approvals, wire::Time};
use authority_presentation::Amount;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Bool, Text, Timestamptz};
use serde_json::Value;

use super::{
    channel::{COLUMNS, ChannelRow},
    recipients::{Candidate, recipients},
};
use crate::{
    approvals::{APPROVE, Eligibility, asked},
    flow::prelude::*,
};

/// How many requests one round considers.
const MOST: i64 = 100;

/// Pending requests that at least one channel was not considered for. A channel is for requests that
/// were opened after it was added.
const NEW: &str = "SELECT a.id FROM approvals a \
     WHERE a.created_at >= $1 AND a.state = 'pending' AND a.expires_at > clock_timestamp() \
       AND EXISTS (SELECT FROM message_channels c \
                   WHERE c.tenant_id = a.tenant_id AND c.created_at <= a.created_at \
                     AND NOT EXISTS (SELECT FROM messages m WHERE m.channel_id = c.id \
                                     AND m.approval_id = a.id AND m.kind = 'asked')) \
     ORDER BY a.created_at LIMIT $2";

/// The channels of a request's tenant that are older than the request. Channels of excluded people are
/// left out.
const CANDIDATES: &str = "FROM message_channels c JOIN tenants t ON t.id = c.tenant_id \
     WHERE c.tenant_id = $1 AND c.created_at <= $2 AND t.state = 'active' \
       AND (c.person IS NULL OR NOT person_excluded(c.tenant_id, c.subject, c.email)) \
     ORDER BY c.id";

/// Also records the channels without a message. Each request is then considered once.
const INSERT: &str = "INSERT INTO messages (id, tenant_id, channel_id, approval_id, kind, state, next_at) \
     SELECT n.id, c.tenant_id, c.id, n.approval_id, $4, \
            CASE WHEN n.told THEN 'open' ELSE 'skipped' END, clock_timestamp() \
     FROM unnest($1, $2, $3, $5) AS n (id, channel_id, approval_id, told) \
     JOIN message_channels c ON c.id = n.channel_id ON CONFLICT DO NOTHING";

/// Ends the messages about requests that no longer wait. `lapsed` is whether the request expired before
/// enough people had decided.
const ENDED: &str = "UPDATE messages m SET state = 'ended' FROM approvals a \
     WHERE m.state = 'sent' AND a.id = m.approval_id AND a.state <> 'pending' \
     RETURNING m.channel_id, m.approval_id, a.state = 'expired' AND a.given < a.needed AS lapsed";

/// All channels of a request's tenant that are older than the request.
const ALL: &str = "SELECT c.id FROM message_channels c \
     WHERE c.tenant_id = $1 AND c.created_at <= $2";

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Ended {
    #[diesel(sql_type = Text)]
    channel_id: String,
    #[diesel(sql_type = Text)]
    approval_id: String,
    #[diesel(sql_type = Bool)]
    lapsed: bool,
}

/// Messages to be written.
#[derive(Default)]
struct NewMessages {
    channels: Vec<String>,
    approvals: Vec<String>,
    told: Vec<bool>,
}

impl NewMessages {
    fn add(&mut self, channel_id: &str, approval_id: &str, told: bool) {
        self.channels.push(channel_id.to_owned());
        self.approvals.push(approval_id.to_owned());
        self.told.push(told);
    }

    async fn insert(self, db: &mut Db, kind: &str) -> QueryResult<()> {
        if self.channels.is_empty() {
            return Ok(());
        }
        let new = || String::from(RecordId::new("message", new_id()));
        let ids: Vec<String> = self.channels.iter().map(|_| new()).collect();
        diesel::sql_query(INSERT)
            .bind::<Array<Text>, _>(ids)
            .bind::<Array<Text>, _>(self.channels)
            .bind::<Array<Text>, _>(self.approvals)
            .bind::<Text, _>(kind)
            .bind::<Array<Bool>, _>(self.told)
            .execute(db)
            .await
            .map(drop)
    }
}

/// Returns the ids of requests that were opened since a time and were not considered yet.
pub(super) async fn new_requests(db: &mut Db, since: DateTime<Utc>) -> QueryResult<Vec<String>> {
    let query = diesel::sql_query(NEW).bind::<Timestamptz, _>(since);
    let found: Vec<Id> = query.bind::<BigInt, _>(MOST).load(db).await?;
    Ok(found.into_iter().map(|found| found.id).collect())
}

/// Ends the messages about requests that no longer wait, and writes the messages about requests that
/// lapsed.
pub(super) async fn end(db: &mut Db) -> QueryResult<()> {
    let ended: Vec<Ended> = diesel::sql_query(ENDED).load(db).await?;
    let mut messages = NewMessages::default();
    for Ended { channel_id, approval_id, .. } in ended.iter().filter(|ended| ended.lapsed) {
        messages.add(channel_id, approval_id, true);
    }
    messages.insert(db, "lapsed").await
}

/// Writes the messages about a new request: a row for each channel of the tenant. Any number of nodes
/// can do so concurrently.
pub(super) async fn consider(
    db: &mut Db,
    graph: &Graph,
    id: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let approval: Approval =
        approvals::table.find(id).select(Approval::as_select()).first(db).await?;
    let opened = approval.created_at.and_then(Time::moment).unwrap_or(now);
    let all: Vec<Id> = diesel::sql_query(ALL)
        .bind::<Text, _>(&approval.tenant_id)
        .bind::<Timestamptz, _>(opened)
        .load(db)
        .await?;
    let channels: Vec<ChannelRow> = diesel::sql_query(format!("SELECT {COLUMNS} {CANDIDATES}"))
        .bind::<Text, _>(&approval.tenant_id)
        .bind::<Timestamptz, _>(opened)
        .load(db)
        .await?;
    let eligibility = Eligibility::of(db, graph, &approval, now).await?;
    let handle = graph.tenant(&row_id(&approval.tenant_id)?)?;
    let roles = permitted_roles(APPROVE);
    let candidates: Vec<Candidate<'_>> = channels
        .iter()
        .map(|channel| Candidate {
            channel,
            settings: channel.settings(),
            may_decide: may_decide(&eligibility, handle.as_ref(), &approval, channel, &roles),
        })
        .collect();
    let request = asked(db, &approval).await?;
    let context = request.as_ref().and_then(|request| request.0.get("context"));
    let amount = context.and_then(Value::as_object).and_then(Amount::of);
    let told = recipients(&candidates, &approval.action, amount.as_ref(), now);
    let mut messages = NewMessages::default();
    for Id { id } in &all {
        messages.add(id, &approval.id, told.contains(id));
    }
    Ok(messages.insert(db, "asked").await?)
}

fn may_decide(
    eligibility: &Eligibility,
    handle: Option<&TenantHandle>,
    approval: &Approval,
    channel: &ChannelRow,
    roles: &[String],
) -> bool {
    let Some(identity) = &channel.person else { return true };
    let who = Person { identity, email: channel.email.as_deref() };
    roles.contains(&channel.role) && eligibility.permits(handle, who, &approval.acts).is_ok()
}
