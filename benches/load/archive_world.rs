//! A running installation with decisions and history of three tenants, and the archiver.

use std::time::{Duration, Instant};

use agent_authority::app::{App, Parts};
use authority_archive::{Archiver, Bucket, StepResult};
use authority_config::Config;
use authority_process::clock::Clock;
use authority_store::{
    Address, Db, Limits, Store,
    embedded::{Embedded, Options},
};
use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    Fault,
    call::Call,
    history,
    meter::to_float,
    owner::Owner,
    preflight::preflight,
    product::{self, Started},
    server::Folder,
    stored::{WRITTEN, number},
};

/// The number of batches of a hundred decisions that are sealed before the measurement.
pub(crate) const BATCHES: u64 = 400;
const LOOK: Duration = Duration::from_millis(100);
/// A time after which the background work for the decisions has ended.
const CALM: Duration = Duration::from_secs(3);
/// The archiver's clock is this far ahead: the current month is then old enough to archive.
const LATER: TimeDelta = TimeDelta::days(70);

/// The tenants with a month to archive: decisions only, history only, and both during a load of
/// decisions.
pub(crate) const DECISIONS: &str = "acme";
pub(crate) const HISTORY: &str = "history";
pub(crate) const BOTH: &str = "both";

const SEALED: &str = "SELECT coalesce(sum(size), 0)::bigint AS n FROM log_heads";
/// Bytes of decisions and packs, with indexes and TOAST.
const STORED: &str = "SELECT sum(pg_total_relation_size(oid))::bigint AS n FROM pg_class \
     WHERE relkind = 'r' AND relname ~ '^(decisions|evidence_packs)_'";
/// Replaces the check of the database's own clock before rows are removed. Only the database owner
/// can do this. The trigger keeps the worker that counts decisions from setting its cursor back.
const MAY_GO: &str = "CREATE OR REPLACE FUNCTION may_go(archive archives, tenant tenants) RETURNS boolean \
     LANGUAGE sql STABLE AS 'SELECT archive.removed_at IS NULL'; \
     CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS \
     'BEGIN NEW.counted_until := greatest(OLD.counted_until, NEW.counted_until); RETURN NEW; END'; \
     CREATE TRIGGER stay BEFORE UPDATE ON usage_cursor FOR EACH ROW EXECUTE FUNCTION stay(); \
     UPDATE usage_cursor SET counted_until = time_bound('svc:decision:', now() + interval '70 days')";

/// A running installation with decisions and history, and the archiver.
pub(crate) struct World {
    pub(crate) started: Started,
    pub(crate) owner: Owner,
    pub(crate) database: Embedded,
    pub(crate) db: Db,
    pub(crate) archiver: Archiver,
    pub(crate) bucket: Bucket,
    /// Bytes of the first tenant's decisions in the tables.
    pub(crate) stored: f64,
}

/// Returns the number of a tenant's decisions.
pub(crate) fn all() -> f64 {
    to_float(BATCHES * u64::from(product::BATCH))
}

/// The cost of archiving a month.
pub(crate) struct Took {
    /// Seconds until the month was written, read back and committed.
    pub(crate) archived: f64,
    /// Bytes of write-ahead log written in this time.
    pub(crate) archived_wal: f64,
    /// Seconds until its rows were removed.
    pub(crate) removed: f64,
    /// Bytes of write-ahead log written during the removal.
    pub(crate) removed_wal: f64,
    /// The number of decisions that were removed.
    pub(crate) decisions: i32,
}

impl World {
    pub(crate) async fn start(folder: &Folder) -> Result<Self, Fault> {
        let started = product::start("archive", "strict", folder).await?;
        let owner = Owner::new(started.address, folder, "archive")?;
        let batch = product::batch_evaluate(started.address, &started.key);
        for _ in 0..BATCHES {
            preflight(&batch).await?;
        }
        // Connects to the database that the server started.
        let data_dir = folder.path().join("archive");
        let options = Options { data_dir: data_dir.clone(), ..Options::default() };
        let database = Embedded::start(options).await?;
        let mut db = Address::parse(&database.owner_url())?.connect().await?;
        sealed(&mut db, all()).await?;
        let stored = number(&mut db, STORED).await?;
        for slug in [HISTORY, BOTH] {
            owner.post("/api/v1/tenants", &json!({"name": slug, "slug": slug})).await?;
            history::make(slug, &owner, &mut db).await?;
        }
        let key = history::key(BOTH, &owner).await?;
        // The decisions are denials, which are decided, signed and recorded like any other
        // decision.
        let batch = Call { allowed: |_| true, ..product::batch_evaluate(started.address, &key) };
        for _ in 0..BATCHES {
            preflight(&batch).await?;
        }
        sealed(&mut db, 2.0 * all()).await?;
        sleep(CALM).await;
        db.batch_execute(MAY_GO).await?;
        let store = Store::open(&Address::parse(&database.url())?, &Limits::default())?;
        let config = Config { data_dir, ..Config::default() };
        let clock = Clock::fixed(Clock::default().now() + LATER);
        let (app, _) = App::build(Parts { clock, ..Parts::new(config, store)? }).await?;
        let parts = app.archiving.ok_or("there is no archive")?;
        let bucket = parts.bucket.clone();
        let archiver = Archiver::new(parts);
        Ok(Self { started, owner, database, db, archiver, bucket, stored })
    }

    /// Archives the month of a tenant, and removes its rows.
    pub(crate) async fn archive(&mut self, slug: &str) -> Result<Took, Fault> {
        let due = format!(
            "UPDATE tenants SET retention = '{{\"decisions_days\": 30}}' WHERE slug = '{slug}'"
        );
        // Every run measures the whole pages that are written to the log after a checkpoint.
        self.db.batch_execute(&format!("{due}; CHECKPOINT")).await?;
        let (wal, begun) = (number(&mut self.db, WRITTEN).await?, Instant::now());
        loop {
            match self.archiver.step().await? {
                StepResult::Archived => break,
                StepResult::Idle | StepResult::Skipped => {
                    return Err(format!("{slug}: not archived").into());
                }
                _ => {}
            }
        }
        let archived = begun.elapsed().as_secs_f64();
        let then = number(&mut self.db, WRITTEN).await?;
        let (begun, mut decisions) = (Instant::now(), 0);
        loop {
            match self.archiver.step().await? {
                StepResult::Idle => break,
                StepResult::Skipped => return Err(format!("{slug}: nothing is removed").into()),
                StepResult::Removed(count) => decisions += count,
                _ => {}
            }
        }
        let removed = begun.elapsed().as_secs_f64();
        let removed_wal = number(&mut self.db, WRITTEN).await? - then;
        Ok(Took { archived, archived_wal: then - wal, removed, removed_wal, decisions })
    }
}

/// Turns on sealing for all tenants, and waits until `count` decisions are sealed.
async fn sealed(db: &mut Db, count: f64) -> Result<(), Fault> {
    db.batch_execute("UPDATE tenants SET auto_seal = true").await?;
    while number(db, SEALED).await? < count {
        sleep(LOOK).await;
    }
    Ok(())
}
