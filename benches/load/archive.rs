//! What archiving costs: how fast a month is written, read back and removed, how large it is, and how long an
//! archived decision takes to read.

use std::time::{Duration, Instant};

use agent_authority::app::{App, Parts};
use authority_archive::{Archiver, Step};
use authority_core::{
    clock::Clock,
    config::Config,
    store::{
        Address, Limits, Store,
        embedded::{Embedded, Options},
    },
};
use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;
use tokio::time::sleep;

use crate::{
    Fault,
    arguments::Arguments,
    meter::to_float,
    owner::Owner,
    preflight::preflight,
    product::{self, Started},
    row::Report,
    server::Folder,
    stored::{number, read, sample},
};

/// Batches of a hundred decisions, sealed before.
const BATCHES: u64 = 400;
/// Decisions that are read, spread over all.
const READ: u64 = 500;
const LOOK: Duration = Duration::from_millis(100);
/// For the archiver it is so much later: this month is long over.
const LATER: TimeDelta = TimeDelta::days(70);

const SEALED: &str = "SELECT coalesce(sum(size), 0)::bigint AS n FROM log_heads";
/// Of decisions and packs, with indexes and TOAST.
const STORED: &str = "SELECT sum(pg_total_relation_size(oid))::bigint AS n FROM pg_class \
     WHERE relkind = 'r' AND relname ~ '^(decisions|evidence_packs)_'";
const BYTES: &str = "SELECT sum(bytes)::bigint AS n FROM archives";
const DUE: &str = "UPDATE tenants SET retention = '{\"decisions_days\": 30}'";
/// The database asks its own clock whether rows may go: only its owner makes it do without.
const MAY_GO: &str = "CREATE OR REPLACE FUNCTION may_go(archive archives, tenant tenants) RETURNS boolean \
     LANGUAGE sql STABLE AS 'SELECT archive.removed_at IS NULL'; \
     UPDATE usage_cursor SET counted_until = time_bound('svc:decision:', now() + interval '70 days')";

pub(crate) async fn rows(_: &Arguments, folder: &Folder, report: &mut Report) -> Result<(), Fault> {
    let Started { server: _server, address, key } =
        product::start("archive", "strict", folder).await?;
    let batch = product::batch_evaluate(address, &key);
    for _ in 0..BATCHES {
        preflight(&batch).await?;
    }
    // Joins the server's own database.
    let data_dir = folder.path().join("archive");
    let database =
        Embedded::start(Options { data_dir: data_dir.clone(), ..Options::default() }).await?;
    let mut db = Address::parse(&database.owner_url())?.connect().await?;
    db.batch_execute("UPDATE tenants SET auto_seal = true").await?;
    let all = to_float(BATCHES * u64::from(product::BATCH));
    while number(&mut db, SEALED).await? < all {
        sleep(LOOK).await;
    }
    let ids = sample(&mut db, BATCHES * u64::from(product::BATCH) / READ).await?;
    let stored = number(&mut db, STORED).await?;

    let store = Store::open(&Address::parse(&database.url())?, &Limits::default())?;
    let config = Config { data_dir, ..Config::default() };
    let clock = Clock::fixed(Clock::default().now() + LATER);
    let (app, _) = App::build(Parts { clock, ..Parts::new(config, store)? }).await?;
    let archiver = Archiver::new(app.archiving.ok_or("there is no archive")?);
    db.batch_execute(DUE).await?;
    let begun = Instant::now();
    while archiver.step().await? != Step::Archived {}
    let archived = begun.elapsed().as_secs_f64();
    db.batch_execute(MAY_GO).await?;
    let begun = Instant::now();
    let mut removed = 0;
    loop {
        match archiver.step().await? {
            Step::Idle => break,
            Step::Removed(count) => removed += count,
            _ => {}
        }
    }
    let removing = begun.elapsed().as_secs_f64();
    if f64::from(removed) < all {
        return Err(format!("only {removed} decisions were removed").into());
    }
    let owner = Owner::new(address, folder, "archive")?;
    let read = read(&ids, &owner).await?;
    let millis = |quantile| to_float(read.value_at_quantile(quantile)) / 1000.0;
    report.notes.push(format!(
        "archive: {:.0} decisions a second written to a folder and read back, {:.0} a second removed; {:.0} bytes for \
         each, {:.0} in the tables with indexes; an archived one by id {:.2} ms (p50), {:.2} ms (p99)",
        all / archived,
        all / removing,
        number(&mut db, BYTES).await? / all,
        stored / all,
        millis(0.5),
        millis(0.99),
    ));
    drop(db);
    database.stop().await?;
    Ok(())
}
