//! The messages that are due, and the results of attempts.

use std::time::Duration;

use authority_presentation::{MessageKind, MessageText};
use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Binary, Bool, Double, Integer, Nullable, Text, Timestamptz};

use super::{
    channel::{COLUMNS, ChannelRow},
    compose::compose,
    refusal::Refusal,
    transport::Receiver,
};
use crate::flow::prelude::*;

/// The wait after each failed attempt. With the last one, the message has failed.
const BACK_OFF: [Duration; 7] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(2 * 3600),
];
/// The longest wait that a receiver can request.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Claims due messages for a minute, which is longer than an attempt takes. If the node stops before it
/// records the result, the message is sent again.
const CLAIM: &str = "WITH due AS ( \
         SELECT id FROM messages WHERE state = 'open' AND next_at <= clock_timestamp() \
         ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED) \
     UPDATE messages m SET attempts = m.attempts + 1, next_at = clock_timestamp() + interval '60 s' \
     FROM due WHERE m.id = due.id \
     RETURNING m.id, m.channel_id, m.approval_id, m.kind, m.attempts";

/// Whether a message may be sent now: the tenant and the person are active, and a request that waits
/// still does. `has_facts` is whether the tenant permits facts. A channel of a person who did not save
/// it for 90 days gets none: the person may have lost the role.
const PRESENT: &str = "t.state = 'active' \
         AND (c.person IS NULL OR NOT person_excluded(c.tenant_id, c.subject, c.email)) \
         AND ($3 = 'lapsed' OR (a.state = 'pending' AND a.expires_at > clock_timestamp())) \
             AS may_send, \
     t.message_facts AND (c.person IS NULL OR c.updated_at > now() - interval '90 days') AS has_facts \
     FROM message_channels c JOIN tenants t ON t.id = c.tenant_id \
     JOIN approvals a ON a.tenant_id = c.tenant_id AND a.id = $2 WHERE c.id = $1";

const ACCEPTED: &str = "UPDATE messages SET state = CASE kind WHEN 'asked' THEN 'sent' ELSE 'ended' END \
     WHERE id = $1 AND state = 'open'";
const SKIPPED: &str = "UPDATE messages SET state = 'skipped' WHERE id = $1 AND state = 'open'";
const FAILED: &str = "UPDATE messages SET state = 'failed' WHERE id = $1 AND state = 'open'";
/// A message that waits for the end of quiet hours was not attempted.
const POSTPONED: &str = "UPDATE messages SET next_at = $2, attempts = attempts - 1 \
     WHERE id = $1 AND state = 'open'";
const LATER: &str = "UPDATE messages SET next_at = clock_timestamp() + make_interval(secs => $2) \
     WHERE id = $1 AND state = 'open'";
const HEALTHY: &str = "UPDATE message_channels SET failing_since = NULL, last_error = NULL \
     WHERE id = $1 AND failing_since IS NOT NULL";
const FAILING: &str = "UPDATE message_channels \
     SET failing_since = coalesce(failing_since, clock_timestamp()), last_error = $2 WHERE id = $1";

/// A claimed message.
#[derive(Clone, Debug, QueryableByName)]
pub(super) struct Due {
    #[diesel(sql_type = Text)]
    pub(super) id: String,
    #[diesel(sql_type = Text)]
    pub(super) channel_id: String,
    #[diesel(sql_type = Text)]
    approval_id: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Integer)]
    attempts: i32,
}

/// What to do with a claimed message.
pub(super) enum Step {
    Send(Receiver, MessageText),
    /// The quiet hours end at this time.
    Wait(DateTime<Utc>),
    Skip,
}

#[derive(QueryableByName)]
struct Present {
    #[diesel(embed)]
    channel: ChannelRow,
    #[diesel(sql_type = Nullable<Binary>)]
    sealed_url: Option<Vec<u8>>,
    #[diesel(sql_type = Bool)]
    may_send: bool,
    #[diesel(sql_type = Bool)]
    has_facts: bool,
}

pub(super) async fn claim(db: &mut Db, most: usize) -> QueryResult<Vec<Due>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    diesel::sql_query(CLAIM).bind::<BigInt, _>(most).load(db).await
}

impl Due {
    /// Reads the channel and the request right before the message is sent.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn step(
        &self,
        db: &mut Db,
        public_url: &str,
        now: DateTime<Utc>,
    ) -> QueryResult<Step> {
        let query = format!("SELECT {COLUMNS}, c.sealed_url, {PRESENT}");
        let found: Option<Present> = diesel::sql_query(query)
            .bind::<Text, _>(&self.channel_id)
            .bind::<Text, _>(&self.approval_id)
            .bind::<Text, _>(&self.kind)
            .get_result(db)
            .await
            .optional()?;
        let Some(present) = found.filter(|present| present.may_send) else {
            return Ok(Step::Skip);
        };
        if let Some(until) = present.channel.settings().quiet_until(now) {
            return Ok(Step::Wait(until));
        }
        let kind = if self.kind == "asked" { MessageKind::Asked } else { MessageKind::Lapsed };
        let text = compose(db, &self.approval_id, kind, present.has_facts, public_url).await?;
        Ok(Step::Send(present.channel.receiver(present.sealed_url), text))
    }

    pub(super) async fn skip(&self, db: &mut Db) -> QueryResult<()> {
        diesel::sql_query(SKIPPED).bind::<Text, _>(&self.id).execute(db).await.map(drop)
    }

    pub(super) async fn postpone(&self, db: &mut Db, until: DateTime<Utc>) -> QueryResult<()> {
        let query = diesel::sql_query(POSTPONED).bind::<Text, _>(&self.id);
        query.bind::<Timestamptz, _>(until).execute(db).await.map(drop)
    }

    /// Records the result of an attempt, for the message and for the channel.
    pub(super) async fn record(
        &self,
        db: &mut Db,
        result: &Result<(), Refusal>,
    ) -> QueryResult<()> {
        match result {
            Ok(()) => {
                diesel::sql_query(ACCEPTED).bind::<Text, _>(&self.id).execute(db).await?;
            }
            Err(refusal) => match self.wait(refusal) {
                Some(wait) => {
                    let query = diesel::sql_query(LATER).bind::<Text, _>(&self.id);
                    query.bind::<Double, _>(wait.as_secs_f64()).execute(db).await?;
                }
                None => {
                    diesel::sql_query(FAILED).bind::<Text, _>(&self.id).execute(db).await?;
                }
            },
        }
        note(db, &self.channel_id, result).await
    }

    /// The wait before the next attempt; `None` if there is none.
    fn wait(&self, refusal: &Refusal) -> Option<Duration> {
        let attempts = usize::try_from(self.attempts).ok()?;
        let wait = BACK_OFF.get(attempts.saturating_sub(1)).filter(|_| refusal.is_temporary)?;
        Some((*wait).max(refusal.after.unwrap_or_default().min(LONGEST_WAIT)))
    }
}

/// Records the result of an attempt for the channel.
pub(super) async fn note(
    db: &mut Db,
    channel_id: &str,
    result: &Result<(), Refusal>,
) -> QueryResult<()> {
    let changed = match result {
        Ok(()) => diesel::sql_query(HEALTHY).bind::<Text, _>(channel_id).execute(db).await,
        Err(refusal) => {
            let query = diesel::sql_query(FAILING).bind::<Text, _>(channel_id);
            query.bind::<Text, _>(&refusal.class).execute(db).await
        }
    };
    changed.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_tried_again_until_its_last_attempt() {
        let due = |attempts| Due {
            id: String::new(),
            channel_id: String::new(),
            approval_id: String::new(),
            kind: "asked".to_owned(),
            attempts,
        };
        let refusal = |is_temporary, after: Option<u64>| Refusal {
            class: "status_503".to_owned(),
            is_temporary,
            after: after.map(Duration::from_secs),
        };
        let seconds =
            |attempts, refusal: &Refusal| due(attempts).wait(refusal).map(|wait| wait.as_secs());
        assert_eq!(seconds(1, &refusal(true, None)), Some(10));
        assert_eq!(seconds(7, &refusal(true, None)), Some(7200));
        assert_eq!(seconds(8, &refusal(true, None)), None);
        assert_eq!(seconds(1, &refusal(true, Some(60))), Some(60));
        assert_eq!(seconds(1, &refusal(true, Some(86_400))), Some(3600));
        assert_eq!(seconds(1, &refusal(false, Some(60))), None);
    }
}
