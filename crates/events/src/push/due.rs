//! Finds the subscriptions to notify, and records the results.
//!
//! The cursor is the database snapshot in which notifications were last taken up. A notification is
//! new if its transaction is not visible in that snapshot. Each notification is therefore taken up
//! once, in whatever order transactions commit.

use authority_store::{Db, RunQueryDsl, locks};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{BigInt, Binary, Bool, Text},
};

const ACCEPTED: &str = "UPDATE push_subscriptions SET failures = 0 WHERE id = $1 AND failures > 0";
const GONE: &str = "DELETE FROM push_subscriptions WHERE id = $1";
const FAILED: &str = "UPDATE push_subscriptions SET failures = failures + 1 WHERE id = $1";
/// Deletes a subscription after 20 consecutive failures.
const FAILED_FOR_LONG: &str = "DELETE FROM push_subscriptions WHERE id = $1 AND failures >= 20";

/// Whether the subscription `s` may be notified now. While a person is suspended, no pushes are
/// sent to them. Notifications of that time are not pushed later.
const OPEN: &str = "(s.expires_at IS NULL OR s.expires_at > clock_timestamp()) \
     AND EXISTS (SELECT FROM tenants t WHERE t.id = s.tenant_id AND t.state = 'active') \
     AND NOT person_excluded(s.tenant_id, s.subject, s.email)";

/// The cursor, and the least id of a notification that may be new. Notifications of a transaction
/// that lasts longer than a minute are missed. Notifications older than 4 hours, which is how long
/// a push service keeps a push, are not pushed. `is_foreign` detects a restored database, in which
/// transactions have other numbers.
const CURSOR: &str = "SELECT snapshot, at < now() - interval '30 seconds' AS is_old, \
         pg_snapshot_xmax(snapshot::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) \
             AS is_foreign, \
         time_bound('svc:notification:', \
                    greatest(at - interval '1 minute', now() - interval '4 hours')) AS floor \
     FROM push_cursor";

/// Sets the cursor to the current snapshot, which skips all existing notifications.
const BEGIN: &str = "INSERT INTO push_cursor (snapshot, at) VALUES (pg_current_snapshot()::text, now()) \
     ON CONFLICT (id) DO UPDATE SET snapshot = EXCLUDED.snapshot, at = EXCLUDED.at";

/// Takes up new notifications, moves the cursor and returns the pushes, at most one for each kind
/// and subscription. It is a single statement because it must see exactly the rows of the snapshot
/// that it stores.
const TAKE_UP: &str = "WITH new AS ( \
         SELECT n.tenant_id, n.kind, n.roles FROM notifications n \
         WHERE n.id >= $1 AND NOT pg_visible_in_snapshot(n.xact::text::xid8, $2::pg_snapshot)), \
     moved AS ( \
         UPDATE push_cursor SET snapshot = pg_current_snapshot()::text, at = now() \
         WHERE $3 OR EXISTS (SELECT FROM new)) \
     SELECT DISTINCT s.tenant_id, s.id AS subscription_id, s.role, new.kind \
     FROM new JOIN push_subscriptions s ON s.tenant_id = new.tenant_id AND s.role = ANY (new.roles) \
     WHERE ";

/// A push to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, QueryableByName)]
pub(super) struct Due {
    #[diesel(sql_type = Text)]
    pub(super) tenant_id: String,
    #[diesel(sql_type = Text)]
    pub(super) subscription_id: String,
    #[diesel(sql_type = Text)]
    role: String,
    /// The kind of the notification.
    #[diesel(sql_type = Text)]
    pub(super) kind: String,
}

#[cfg(test)]
impl Due {
    pub(super) fn new(tenant_id: &str, subscription_id: &str) -> Self {
        let text = str::to_owned;
        let (tenant_id, subscription_id) = (text(tenant_id), text(subscription_id));
        Self { tenant_id, subscription_id, role: text("admin"), kind: text("approval.opened") }
    }
}

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

#[derive(QueryableByName)]
struct Cursor {
    #[diesel(sql_type = Text)]
    snapshot: String,
    #[diesel(sql_type = Bool)]
    is_old: bool,
    #[diesel(sql_type = Bool)]
    is_foreign: bool,
    #[diesel(sql_type = Text)]
    floor: String,
}

#[derive(QueryableByName)]
struct Sealed {
    #[diesel(sql_type = Binary)]
    sealed_endpoint: Vec<u8>,
}

/// The outcome of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Accepted,
    /// The push service no longer knows the subscription.
    Gone,
    Failed,
    /// The push may no longer be sent.
    Unsent,
}

/// Takes up new notifications, unless another node is doing so. Returns the pushes to send.
pub(super) async fn take_up(db: &mut Db) -> QueryResult<Vec<Due>> {
    let lock = diesel::sql_query("SELECT pg_try_advisory_xact_lock($1) AS locked");
    let Locked { locked } = lock.bind::<BigInt, _>(locks::PUSH).get_result(db).await?;
    if !locked {
        return Ok(Vec::new());
    }
    let cursor: Option<Cursor> = diesel::sql_query(CURSOR).get_result(db).await.optional()?;
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_foreign) else {
        diesel::sql_query(BEGIN).execute(db).await?;
        return Ok(Vec::new());
    };
    diesel::sql_query([TAKE_UP, OPEN].concat())
        .bind::<Text, _>(cursor.floor)
        .bind::<Text, _>(cursor.snapshot)
        .bind::<Bool, _>(cursor.is_old)
        .load(db)
        .await
}

/// Returns the sealed URL, if the push may be sent.
pub(super) async fn sealed_endpoint(db: &mut Db, due: &Due) -> QueryResult<Option<Vec<u8>>> {
    let query = "SELECT s.sealed_endpoint FROM push_subscriptions s \
                 WHERE s.id = $1 AND s.role = $2 AND ";
    let query = diesel::sql_query([query, OPEN].concat());
    let query = query.bind::<Text, _>(&due.subscription_id).bind::<Text, _>(&due.role);
    let found: Option<Sealed> = query.get_result(db).await.optional()?;
    Ok(found.map(|row| row.sealed_endpoint))
}

/// Records how a push to the subscription ended.
pub(super) async fn record(db: &mut Db, id: &str, ending: Ending) -> QueryResult<()> {
    let changes: &[&str] = match ending {
        Ending::Accepted => &[ACCEPTED],
        Ending::Gone => &[GONE],
        Ending::Failed => &[FAILED, FAILED_FOR_LONG],
        Ending::Unsent => &[],
    };
    for change in changes {
        diesel::sql_query(*change).bind::<Text, _>(id).execute(db).await?;
    }
    Ok(())
}
