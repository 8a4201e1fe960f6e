//! Erases data by age. Each tenant's settings apply to contexts of decisions and observations of
//! snapshots. Leads that did not become tenants are also erased. Data under legal hold is kept.

use std::time::{Duration, Instant};

use diesel::sql_types::{BigInt, Text, Timestamptz};

use super::{erase::forget, tables::LEAD};
use crate::flow::prelude::*;
use authority_process::{
    clock::Clock,
    worker::{Next, Worker},
};
use authority_store::{self as store, Scope, Store, locks};
use chrono::{DateTime, TimeDelta, Utc};

/// The interval of runs. Retention periods are set in days.
const EVERY: Duration = Duration::from_secs(3600);
/// The number of rows that one transaction erases.
const MOST: i64 = 2_000;
/// The longest time for a run, because a service that shuts down waits for it.
const LONGEST: Duration = Duration::from_secs(3);
/// The delay until the next run if more is left to do.
const SOON: Duration = Duration::from_secs(1);

/// The tenants that have retention settings and are not under legal hold.
const TENANTS: &str = "SELECT id FROM tenants
    WHERE legal_hold IS NULL AND jsonb_strip_nulls(retention) <> '{}' ORDER BY id";

/// Erases data of one tenant in one transaction. `$1` is the tenant, `$2` the current time and `$3`
/// the maximum number of rows. Returns how many rows were scanned. A transaction that sets a legal
/// hold or changes the retention waits until this transaction ends.
const STATEMENTS: [&str; 2] = [
    // The order of IDs is the order of the decisions' times. Decisions up to `erased_until` need
    // not be scanned again.
    "WITH kept AS MATERIALIZED (
        SELECT id, (retention ->> 'contexts_days')::integer AS days FROM tenants
        WHERE id = $1 AND retention ->> 'contexts_days' IS NOT NULL AND legal_hold IS NULL FOR SHARE
    ), old AS MATERIALIZED (
        SELECT d.id FROM kept CROSS JOIN LATERAL (
            SELECT id FROM decisions
            WHERE tenant_id = $1
              AND id > coalesce((SELECT erased_until FROM context_retention WHERE tenant_id = $1), '')
              AND id < time_bound('svc:decision:', $2 - make_interval(days => kept.days))
            ORDER BY id LIMIT $3) AS d
    ), erased AS (
        UPDATE decisions d SET context = '', context_salt = '' FROM old
        WHERE d.id = old.id AND d.tenant_id = $1
    ), moved AS (
        INSERT INTO context_retention (tenant_id, erased_until)
        SELECT $1, max(id) FROM old HAVING count(*) > 0
        ON CONFLICT (tenant_id) DO UPDATE SET erased_until = EXCLUDED.erased_until
    ), ended AS (
        -- A month that is being archived still contains the contexts in its parts: it is archived
        -- anew.
        UPDATE archive_runs r SET lease = '', leased_until = '-infinity'
        WHERE r.tenant_id = $1 AND EXISTS (
            SELECT FROM old WHERE old.id >= time_bound('svc:decision:', month_start(r.month))
                              AND old.id < time_bound('svc:decision:', month_end(r.month)))
        RETURNING r.month
    ), parts AS (
        DELETE FROM archive_parts p USING ended WHERE p.tenant_id = $1 AND p.month = ended.month)
    SELECT count(*) AS looked_at FROM old",
    "WITH kept AS MATERIALIZED (
        SELECT id, (retention ->> 'snapshots_days')::integer AS days FROM tenants
        WHERE id = $1 AND retention ->> 'snapshots_days' IS NOT NULL AND legal_hold IS NULL FOR SHARE
    ), old AS MATERIALIZED (
        SELECT s.id FROM kept CROSS JOIN LATERAL (
            SELECT id FROM reality_snapshots
            WHERE tenant_id = $1 AND sampled_at < $2 - make_interval(days => kept.days)
              AND (observations <> '{}' OR content_summary IS NOT NULL OR content_ref IS NOT NULL)
            ORDER BY sampled_at LIMIT $3) AS s
    ), erased AS (
        UPDATE reality_snapshots s
        SET observations = '{}', content_summary = NULL, content_ref = NULL,
            updated_at = clock_timestamp()
        FROM old WHERE s.id = old.id AND s.tenant_id = $1)
    SELECT count(*) AS looked_at FROM old",
];

/// Leads belong to the installation. A tenant's legal hold does not apply to them.
const LEADS: &str = "
    UPDATE leads SET submitter_email = 'erased@erased.invalid', submitter_name = NULL, organisation = NULL,
        country = NULL, message = NULL, source = NULL, utm = '{}', consent_marketing = false,
        updated_at = clock_timestamp()
    WHERE id IN (
        SELECT id FROM leads
        WHERE created_at < $1 AND status <> 'converted' AND submitter_email <> 'erased@erased.invalid'
        ORDER BY created_at LIMIT $2)
    RETURNING id";

/// Returns the worker. It is idle under the installation's legal hold. `lead_days` is how long
/// leads are kept.
pub fn worker(store: Store, clock: Clock, lead_days: u32, is_held: bool) -> Worker {
    Worker::periodic("personal_data_retention", EVERY, move || {
        let (store, now) = (store.clone(), clock.now());
        async move {
            if is_held {
                return Ok(Next::Usual);
            }
            let done = run(&store, now, TimeDelta::days(lead_days.into())).await?;
            Ok::<_, store::Error>(if done { Next::Usual } else { Next::After(SOON) })
        }
    })
}

/// Returns whether all due data has been erased.
async fn run(store: &Store, now: DateTime<Utc>, leads: TimeDelta) -> Result<bool, store::Error> {
    let until = Instant::now() + LONGEST;
    let read = store.read_tx(&Scope::service(), async |db| {
        let tenants: Vec<Id> = diesel::sql_query(TENANTS).load(db).await?;
        Ok::<_, store::Error>(tenants)
    });
    for tenant in read.await? {
        for statement in STATEMENTS {
            while erase_page(store, statement, tenant.id.clone(), now).await? {
                if Instant::now() > until {
                    return Ok(false);
                }
            }
        }
    }
    erase_leads(store, now - leads).await
}

/// Erases a page of one tenant's data. Returns whether there may be more.
async fn erase_page(
    store: &Store,
    statement: &'static str,
    tenant_id: String,
    now: DateTime<Utc>,
) -> Result<bool, store::Error> {
    let page = store.write_tx(&Scope::service(), async move |db| {
        lock(db).await?;
        let page: Page = diesel::sql_query(statement)
            .bind::<Text, _>(tenant_id)
            .bind::<Timestamptz, _>(now)
            .bind::<BigInt, _>(MOST)
            .get_result(db)
            .await?;
        Ok::<_, store::Error>(page.looked_at >= MOST)
    });
    page.await
}

/// Erases a page of older leads. Returns whether it was the last page.
async fn erase_leads(store: &Store, before: DateTime<Utc>) -> Result<bool, store::Error> {
    let erased = store.write_tx(&Scope::service(), async move |db| {
        lock(db).await?;
        let erased: Vec<Id> = diesel::sql_query(LEADS)
            .bind::<Timestamptz, _>(before)
            .bind::<BigInt, _>(MOST)
            .load(db)
            .await?;
        let is_last = i64::try_from(erased.len()).unwrap_or(i64::MAX) < MOST;
        forget(db, erased.into_iter().map(|lead| lead.id).collect(), LEAD).await?;
        Ok::<_, store::Error>(is_last)
    });
    erased.await
}

/// Ensures that only one node erases at a time.
async fn lock(db: &mut Db) -> QueryResult<()> {
    let lock = diesel::sql_query("SELECT pg_advisory_xact_lock($1)");
    lock.bind::<BigInt, _>(locks::RETENTION).execute(db).await.map(drop)
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Page {
    #[diesel(sql_type = BigInt)]
    looked_at: i64,
}
