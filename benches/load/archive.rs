//! Measures archiving: the time to write, read back and remove a month, the month's size, the time
//! to read, replay and verify an archived decision, and the effect on the latency of decisions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_archive::offline;
use authority_evidence::verify::Trust;
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::{
    Fault,
    archive_world::{BATCHES, BOTH, DECISIONS, HISTORY, World, all},
    arguments::Arguments,
    call::{Call, Shape},
    drive::{Load, Tally, drive},
    history,
    meter::{Meter, to_float},
    product,
    row::Report,
    server::Folder,
    stored::{number, read, sample},
};

/// The number of archived decisions to read. They are spread evenly over the log.
const READ: u64 = 500;
/// The number of archived decisions to replay.
const REPLAYED: usize = 50;
/// The load, in decisions a second, before and while a month is archived.
const BESIDE: f64 = 500.0;
const WARM: Duration = Duration::from_secs(1);

pub(crate) async fn rows(_: &Arguments, folder: &Folder, report: &mut Report) -> Result<(), Fault> {
    let mut world = World::start(folder).await?;
    let ids = sample(&mut world.db, BATCHES * u64::from(product::BATCH) / READ).await?;
    let ids: Vec<String> = ids.into_iter().take(usize::try_from(READ)?).collect();
    let of_decisions = world.decisions(&ids, report).await?;
    let of_history = world.history(report).await?;
    let quiet = of_decisions + of_history;
    world.beside(Duration::from_secs_f64((quiet * 0.8).max(2.0)), report).await?;
    let World { db, database, .. } = world;
    drop(db);
    database.stop().await?;
    Ok(())
}

impl World {
    /// Measures a month of decisions only: rates, sizes, and the time for an archived decision.
    /// Returns the seconds that archiving took.
    async fn decisions(&mut self, ids: &[String], report: &mut Report) -> Result<f64, Fault> {
        let all = all();
        let stored = self.stored / all;
        let took = self.archive(DECISIONS).await?;
        if f64::from(took.decisions) < all {
            return Err(format!("only {} decisions were removed", took.decisions).into());
        }
        let bytes = "SELECT sum(bytes)::bigint AS n FROM archives";
        report.notes.push(format!(
            "archive: {all:.0} decisions written to a folder and read back in {:.1} s, {:.0} a second, {:.0} bytes of \
             write-ahead log for each; removed from the tables in {:.1} s, {:.0} a second, {:.0} bytes for each; \
             {:.0} bytes a decision in the archive, {stored:.0} in the tables with indexes",
            took.archived,
            all / took.archived,
            took.archived_wal / all,
            took.removed,
            all / took.removed,
            took.removed_wal / all,
            number(&mut self.db, bytes).await? / all,
        ));
        let read = read(ids, &self.owner).await?;
        let replayed = self.replay(ids).await?;
        let begun = Instant::now();
        self.verify().await?;
        let verified = begun.elapsed().as_secs_f64();
        report.notes.push(format!(
            "archive: an archived decision by id {}; replayed {}; all of them verified offline, each decided again, in \
             {verified:.1} s, {:.0} a second",
            quantiles(&read),
            quantiles(&replayed),
            all / verified,
        ));
        Ok(took.archived + took.removed)
    }

    /// Returns how long `POST /v1/replay/proof` takes, in microseconds.
    async fn replay(&self, ids: &[String]) -> Result<Histogram<u64>, Fault> {
        let mut took = Histogram::new(3)?;
        for decision_id in ids.iter().take(REPLAYED) {
            let begun = Instant::now();
            self.owner.post("/v1/replay/proof", &json!({"decision_id": decision_id})).await?;
            took.record(u64::try_from(begun.elapsed().as_micros())?)?;
        }
        Ok(took)
    }

    /// Verifies the archive as `agent-authority archive verify` does without the issuer's keys.
    async fn verify(&self) -> Result<(), Fault> {
        let trust = Trust::default();
        for found in offline::list(&self.bucket, &trust).await? {
            let (manifest, _) = found.manifest.as_ref().map_err(ToString::to_string)?;
            let wrong = offline::inspect(&self.bucket, &found, manifest, &trust).await?;
            if let Some(wrong) = wrong.first() {
                return Err(format!("{}: {}", wrong.object, wrong.what).into());
            }
        }
        Ok(())
    }

    /// Measures a month of versions and changes only. Returns the seconds that archiving took.
    async fn history(&mut self, report: &mut Report) -> Result<f64, Fault> {
        let before = history::Tables::look(&mut self.db).await?;
        let took = self.archive(HISTORY).await?;
        let after = history::Tables::look(&mut self.db).await?;
        let rows = history::archived(HISTORY, &mut self.db).await?;
        report.notes.push(format!(
            "archive: {rows:.0} versions and changes written and read back in {:.1} s, {:.0} a second; removed in one \
             transaction in {:.1} s, {:.0} a second, {:.0} bytes of write-ahead log for each; their tables had {:.1} MB \
             before, and {:.1} MB after, of which {:.1} MB are free for new rows once vacuum has been there",
            took.archived,
            rows / took.archived,
            took.removed,
            rows / took.removed,
            took.removed_wal / rows,
            before.bytes / 1e6,
            after.bytes / 1e6,
            after.free(&mut self.db).await? / 1e6,
        ));
        Ok(took.archived + took.removed)
    }

    /// Measures the latency of decisions before and while a month of another tenant is archived and
    /// removed.
    async fn beside(&mut self, lasting: Duration, report: &mut Report) -> Result<(), Fault> {
        let call = Arc::new(product::evaluate(self.started.address, Some(&self.started.key)));
        let meter = self.started.server.meter();
        let alone = load(&call, &meter, lasting).await?;
        let (meanwhile, took) = tokio::join!(load(&call, &meter, lasting), self.archive(BOTH));
        let (meanwhile, took) = (meanwhile?, took?);
        if took.archived + took.removed < lasting.as_secs_f64() {
            report.notes.push("archive: archiving ended before the load did".to_owned());
        }
        report.notes.push(format!(
            "archive: decisions at {BESIDE:.0} a second: {}, {} failed calls; while a month of {} decisions and as \
             many versions and changes as above was archived in {:.1} s and removed in {:.1} s: {}, {} failed calls",
            quantiles(&alone.latency),
            alone.failed,
            took.decisions,
            took.archived,
            took.removed,
            quantiles(&meanwhile.latency),
            meanwhile.failed,
        ));
        Ok(())
    }
}

/// Runs the load and returns its results. The load runs on a separate thread: it does not wait for
/// the archiver.
async fn load(call: &Arc<Call>, meter: &Meter, lasting: Duration) -> Result<Tally, Fault> {
    let (calls, meter) = ([Arc::clone(call)], meter.clone());
    let driven = spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shape = Shape::new(2, 100);
        let driven = drive(&calls, shape, Load::Rate(BESIDE), (WARM, lasting), &meter);
        Ok::<_, Fault>(runtime.block_on(driven)?.tally)
    });
    driven.await?
}

fn quantiles(took: &Histogram<u64>) -> String {
    let millis = |quantile| to_float(took.value_at_quantile(quantile)) / 1000.0;
    format!("{:.2} ms (p50), {:.2} ms (p99)", millis(0.5), millis(0.99))
}
