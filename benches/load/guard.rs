//! `script/bench --guard COMMIT`: compares the cost of a decision in this build and in the build of
//! another commit, in turn.

use std::{path::Path, sync::Arc};

use authority_store::{
    Address, Db,
    embedded::{Embedded, Options},
};
use tokio::time::{Duration, sleep};

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Shape},
    drive::{Load, drive},
    meter::{Meter, to_float},
    preflight::preflight,
    product::{self, PROGRAM, Started},
    server::Folder,
    stored::{WRITTEN, number},
};

const ROUNDS: usize = 5;
const SHAPE: Shape = Shape::new(16, 16);
const WARM: Duration = Duration::from_secs(1);
/// The number of batches of a hundred decisions for which the write-ahead log is measured.
const BATCHES: u64 = 50;
const CALM: Duration = Duration::from_secs(3);

/// The minimum rate and the maximum bytes of write-ahead log, as shares of the other build's
/// values. On a busy machine, the rate of one build can vary by more than this between rounds: the
/// reported line shows the spread.
const LEAST_RATE: f64 = 0.97;
const MOST_LOG: f64 = 1.01;

/// A running build.
struct Build {
    name: &'static str,
    started: Started,
    db: Db,
    /// The server's database, joined to read the size of its write-ahead log. It stops with the
    /// server.
    _database: Embedded,
    rounds: Vec<Round>,
}

struct Round {
    per_second: f64,
    /// Microseconds of CPU for each decision.
    service: f64,
    postgres: f64,
}

impl Build {
    async fn start(name: &'static str, program: &Path, folder: &Folder) -> Result<Self, Fault> {
        let started = product::start_program(program, name, "strict", folder).await?;
        let data_dir = folder.path().join(name);
        let database = Embedded::start(Options { data_dir, ..Options::default() }).await?;
        let db = Address::parse(&database.owner_url())?.connect().await?;
        Ok(Self { name, started, db, _database: database, rounds: Vec::new() })
    }

    /// Returns the bytes of write-ahead log for a decision. They include the writes of other calls
    /// at the same time.
    async fn log(&mut self) -> Result<f64, Fault> {
        let batch = product::batch_evaluate(self.started.address, &self.started.key);
        // The first decisions write whole pages to the log, and are not measured.
        preflight(&batch).await?;
        sleep(CALM).await;
        let before = number(&mut self.db, WRITTEN).await?;
        for _ in 0..BATCHES {
            preflight(&batch).await?;
        }
        let written = number(&mut self.db, WRITTEN).await? - before;
        Ok(written / to_float(BATCHES * u64::from(product::BATCH)))
    }

    async fn round(&mut self, seconds: Duration) -> Result<(), Fault> {
        let call: Arc<Call> =
            product::evaluate(self.started.address, Some(&self.started.key)).into();
        let meter: Meter = self.started.server.meter();
        let done = drive(&[call], SHAPE, Load::Full, (WARM, seconds), &meter).await?;
        if done.tally.failed > 0 {
            return Err(format!("{}: {} calls failed", self.name, done.tally.failed).into());
        }
        let decisions = to_float(done.tally.answered);
        let round = Round {
            per_second: decisions / done.spent.elapsed,
            service: done.spent.service * 1e6 / decisions,
            postgres: done.spent.postgres * 1e6 / decisions,
        };
        let Round { per_second, service, postgres } = &round;
        eprintln!(
            "  {}: {per_second:.0} decisions a second; a decision takes {service:.0} µs of the service and \
             {postgres:.0} µs of Postgres",
            self.name
        );
        self.rounds.push(round);
        Ok(())
    }

    fn median(&self, of: fn(&Round) -> f64) -> f64 {
        let mut all: Vec<f64> = self.rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }
}

/// Returns the line for a commit's body, and the reasons against the change.
pub(crate) async fn compare(
    arguments: &Arguments,
    other: &Path,
    folder: &Folder,
) -> Result<(String, Vec<String>), Fault> {
    let mut before = Build::start("before", other, folder).await?;
    let mut now = Build::start("now", PROGRAM.as_ref(), folder).await?;
    let logs = (before.log().await?, now.log().await?);
    for round in 0..ROUNDS {
        // The two builds take turns in being measured first.
        let pair = if round % 2 == 0 { [&mut before, &mut now] } else { [&mut now, &mut before] };
        for build in pair {
            build.round(arguments.measured()).await?;
        }
    }
    let rates =
        before.rounds.iter().zip(&now.rounds).map(|(then, now)| now.per_second / then.per_second);
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    let rate = rates[rates.len() / 2];
    let line = format!(
        "gRPC before and now: {:.0} and {:.0} decisions a second ({rate:.2}, {:.2} to {:.2}), {:.0} and {:.0} µs of \
         the service, {:.0} and {:.0} of PostgreSQL, {:.0} and {:.0} bytes of write-ahead log",
        before.median(|round| round.per_second),
        now.median(|round| round.per_second),
        rates[0],
        rates[rates.len() - 1],
        before.median(|round| round.service),
        now.median(|round| round.service),
        before.median(|round| round.postgres),
        now.median(|round| round.postgres),
        logs.0,
        logs.1,
    );
    let mut against = Vec::new();
    if rate < LEAST_RATE {
        against.push(format!("the rate is {rate:.2} of the other build's"));
    }
    if logs.1 > logs.0 * MOST_LOG {
        against.push("a decision writes more write-ahead log".to_owned());
    }
    Ok((line, against))
}
