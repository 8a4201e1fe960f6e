//! Measures sealing: its rate, the bytes that it stores and writes to the write-ahead log, and the
//! time to read evidence.

use std::time::{Duration, Instant};

use authority_store::{
    Address,
    embedded::{Embedded, Options},
};
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
    stored::{WRITTEN, number, read, sample},
};

/// The number of batches to seal. Each has a hundred decisions.
const BATCHES: u64 = 200;
/// The number of packs to read. They are spread evenly over the log.
const READ: u64 = 500;
const LOOK: Duration = Duration::from_millis(10);
/// A time after which the background work for the decisions has ended.
const CALM: Duration = Duration::from_secs(3);

/// Bytes stored for packs only, with indexes and TOAST.
const STORED: &str = "SELECT sum(pg_total_relation_size(oid))::bigint AS n FROM pg_class \
     WHERE relkind = 'r' AND relname ~ '^(evidence_packs|log_checkpoints)'";
const LEAVES: &str = "SELECT coalesce(sum(size), 0)::bigint AS n FROM log_heads";

pub(crate) async fn rows(_: &Arguments, folder: &Folder, report: &mut Report) -> Result<(), Fault> {
    let Started { server: _server, address, key } =
        product::start("sealing", "strict", folder).await?;
    let batch = product::batch_evaluate(address, &key);
    for _ in 0..BATCHES {
        preflight(&batch).await?;
    }
    // Connects to the database that the server started.
    let data_dir = folder.path().join("sealing");
    let database = Embedded::start(Options { data_dir, ..Options::default() }).await?;
    let mut db = Address::parse(&database.owner_url())?.connect().await?;
    sleep(CALM).await;
    // After a checkpoint, the first change of each page writes the whole page to the write-ahead log.
    // With this checkpoint, every run measures these writes.
    db.batch_execute("CHECKPOINT").await?;
    let (before, stored, begun) =
        (number(&mut db, WRITTEN).await?, number(&mut db, STORED).await?, Instant::now());
    db.batch_execute("UPDATE tenants SET auto_seal = true").await?;
    let mut sealed = 0.0;
    while sealed < to_float(BATCHES * u64::from(product::BATCH)) {
        sleep(LOOK).await;
        sealed = number(&mut db, LEAVES).await?;
    }
    let took = begun.elapsed().as_secs_f64();
    let written = number(&mut db, WRITTEN).await? - before;
    let stored = number(&mut db, STORED).await? - stored;
    let owner = Owner::new(address, folder, "sealing")?;
    let each = BATCHES * u64::from(product::BATCH) / READ;
    let read = read(&sample(&mut db, each).await?, &owner).await?;
    let millis = |quantile| to_float(read.value_at_quantile(quantile)) / 1000.0;
    report.notes.push(format!(
        "sealing: {:.0} decisions a second; for each decision, {:.0} bytes stored (with indexes) and \
         {:.0} bytes of write-ahead log; evidence by id {:.2} ms (p50), {:.2} ms (p99)",
        sealed / took,
        stored / sealed,
        written / sealed,
        millis(0.5),
        millis(0.99),
    ));
    drop(db);
    database.stop().await?;
    Ok(())
}
