//! `script/bench --table`: measures the rows with a target. Each round measures both sides of every
//! row in turn, because the speed of a machine changes over time.

use std::{sync::Arc, time::Duration};

use authority_store::Address;
use tokio::time::sleep;

use crate::{
    Fault,
    arguments::Arguments,
    axes,
    call::{Call, Shape},
    cerbos::{self, Cerbos},
    drive::{Load, drive},
    events::{NOWHERE, endpoint},
    history,
    meter::{Meter, to_float},
    outside,
    owner::Owner,
    preflight::preflight,
    product::{self, Started},
    row::{OPEN_STREAMS, Report, rate},
    server::Folder,
    stored::number,
    table::{grid, measured, milliseconds, thousands},
};

const ROUNDS: usize = 3;
const WARM: Duration = Duration::from_secs(1);
/// The time after each round in which a server can finish its background work.
const CALM: Duration = Duration::from_secs(3);

const GRPC: Shape = Shape::new(16, 16);
/// The calls a second at which latencies are compared.
const PACE: f64 = 4000.0;
const BATCH: u32 = 50;
const BATCHES: Shape = Shape::new(4, 4);
const TENANTS: u32 = 40;
/// The agents of each tenant.
const AGENTS: u32 = 50;
/// One connection for each tenant.
const OF_AGENTS: Shape = Shape::new(TENANTS as usize, 6);

/// Bytes of a decision with its indexes.
const BYTES: &str =
    "SELECT (sum(pg_total_relation_size(relid)) / (SELECT count(*) FROM decisions))::bigint AS n
     FROM pg_partition_tree('decisions')";

const HEADINGS: [&str; 10] = [
    "",
    "target",
    "ratio",
    "per second",
    "compared",
    "p99",
    "compared",
    "CPU µs: service",
    "Postgres",
    "compared",
];

/// The program that makes the calls.
#[derive(Clone, Copy)]
enum Generator {
    Own(Load),
    Outside,
}

struct Row {
    name: &'static str,
    target: &'static str,
    shape: Shape,
    generator: Generator,
    /// The value that the ratio compares.
    compared: fn(&Sample) -> f64,
    ours: Side,
    beside: Option<Side>,
}

/// The calls of a row to one server.
struct Side {
    calls: Vec<Arc<Call>>,
    meter: Meter,
    samples: Vec<Sample>,
}

/// The measurements of one round.
struct Sample {
    /// Decisions a second.
    per_second: f64,
    /// Microseconds; zero if it was not measured.
    p99: u64,
    /// Microseconds of CPU for each decision.
    service: f64,
    postgres: f64,
    failed: u64,
}

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let demo = product::start("table", "strict", folder).await?;
    let cerbos = cerbos::start(arguments, folder).await;
    let cerbos = cerbos.inspect_err(|fault| report.left_out("Cerbos", fault)).ok();
    let made = format!("CALL pg_temp.agents({AGENTS}); CALL pg_temp.tenants('tenant-', {TENANTS})");
    let many = axes::filled("table-agents", &made, folder).await?;
    let events = product::start("table-events", "strict", folder).await?;
    let owner = Owner::new(events.address, folder, "table-events")?;
    endpoint(&owner, NOWHERE).await?;
    // Each server has stored the same number of decisions.
    let plain = product::start("table-plain", "strict", folder).await?;
    let mut all = with_cerbos(&demo, cerbos.as_ref());
    all.push(Row::new(
        "BatchEvaluate of 50",
        "25,000 a second",
        BATCHES,
        vec![product::batch_of::<BATCH>(demo.address, &demo.key)],
        &demo,
    ));
    all.push(agents(&many, folder).await?);
    all.push(
        Row::new("each decision an event", "0.9 of none", GRPC, vec![over_grpc(&events)], &events)
            .beside(vec![over_grpc(&plain)], plain.server.meter()),
    );
    let mut rows = Vec::new();
    for row in all {
        match row.check().await {
            Ok(()) => rows.push(row),
            Err(fault) => report.left_out(row.name, &fault),
        }
    }
    for _ in 0..ROUNDS {
        for row in &mut rows {
            row.round(arguments.measured(), folder).await?;
        }
        sleep(CALM).await;
    }
    report.notes.extend(rows.iter().filter_map(Row::failed));
    let table = grid(HEADINGS, rows.iter().map(Row::cells));
    report.tables.push(format!("## Targets\n\nMedians of {ROUNDS} rounds.\n\n{table}"));
    report.notes.push(held(&demo, folder).await?);
    Ok(())
}

/// Returns the rows that compare the service with Cerbos.
fn with_cerbos(demo: &Started, cerbos: Option<&Cerbos>) -> Vec<Row> {
    let own = Generator::Own(Load::Full);
    let rates = [
        ("gRPC, 16 x 16", "1.5", own, GRPC),
        ("gRPC, 16 x 16, h2load", "1.5", Generator::Outside, GRPC),
        ("REST, 32 connections", "1.8", own, Shape::new(32, 1)),
        ("REST, 32 connections, wrk", "1.8", Generator::Outside, Shape::new(32, 1)),
        ("REST, 64 connections", "2.2", own, Shape::new(64, 1)),
        ("REST, 64 connections, wrk", "2.2", Generator::Outside, Shape::new(64, 1)),
    ];
    let mut rows = Vec::new();
    for (name, target, generator, shape) in rates {
        let (ours, theirs): (Call, fn(&Cerbos) -> Call) = if shape.streams > 1 {
            (over_grpc(demo), |cerbos| cerbos::check(cerbos.grpc))
        } else {
            let ours = product::evaluate_rest(demo.address, &demo.key);
            (ours, |cerbos| cerbos::check_rest(cerbos.rest))
        };
        let mut row = Row::new(name, target, shape, vec![ours], demo);
        row.generator = generator;
        if let Some(cerbos) = cerbos {
            row = row.beside(vec![theirs(cerbos)], cerbos.server.meter());
        }
        rows.push(row);
    }
    let mut tail = Row::new("gRPC, 4,000 a second: p99", "0.5", GRPC, vec![over_grpc(demo)], demo);
    tail.generator = Generator::Own(Load::Rate(PACE));
    tail.compared = |sample| to_float(sample.p99);
    if let Some(cerbos) = cerbos {
        tail = tail.beside(vec![cerbos::check(cerbos.grpc)], cerbos.server.meter());
    }
    rows.push(tail);
    rows
}

/// Returns the row that compares many agents of many tenants with one agent.
async fn agents(many: &Started, folder: &Folder) -> Result<Row, Fault> {
    let owner = Owner::new(many.address, folder, "table-agents")?;
    let mut keys = Vec::new();
    for tenant in 1..=TENANTS {
        keys.push(history::key(&format!("tenant-{tenant}"), &owner).await?);
    }
    let call = |agent: u32, tenant: u32, key: &String| {
        let subject = format!("svc:agent:tenant-{tenant}:bot-{agent}");
        product::evaluate_for(many.address, Some(key), &subject, &product::context())
    };
    // In this order, each connection makes the calls of one tenant.
    let calls = (1..=AGENTS)
        .flat_map(|agent| (1..).zip(&keys).map(move |(tenant, key)| call(agent, tenant, key)));
    let row = Row::new(
        "2,000 agents of 40 tenants",
        "0.95 of one agent",
        OF_AGENTS,
        calls.collect(),
        many,
    );
    Ok(row.beside(vec![call(1, 1, &keys[0])], many.server.meter()))
}

fn over_grpc(started: &Started) -> Call {
    product::evaluate(started.address, Some(&started.key))
}

/// Returns a note with the memory of the service and the stored bytes of a decision.
async fn held(demo: &Started, folder: &Folder) -> Result<String, Fault> {
    let now = demo.server.meter().read().await?;
    let resident = now.since(&now).resident >> 20;
    let database = axes::database("table", folder).await?;
    let mut db = Address::parse(&database.owner_url())?.connect().await?;
    let bytes = number(&mut db, BYTES).await?;
    drop(db);
    database.stop().await?;
    Ok(format!(
        "targets: with the demonstration, the service has {resident} MiB (the target is 100), and a decision takes \
         {bytes:.0} bytes with its indexes (the target is 2,000)"
    ))
}

impl Row {
    fn new(
        name: &'static str,
        target: &'static str,
        shape: Shape,
        calls: Vec<Call>,
        started: &Started,
    ) -> Self {
        Self {
            name,
            target,
            shape,
            generator: Generator::Own(Load::Full),
            compared: |sample| sample.per_second,
            ours: Side::new(calls, started.server.meter()),
            beside: None,
        }
    }

    fn beside(self, calls: Vec<Call>, meter: Meter) -> Self {
        Self { beside: Some(Side::new(calls, meter)), ..self }
    }

    /// Makes the first and the last call of each side.
    async fn check(&self) -> Result<(), Fault> {
        for Side { calls, .. } in self.beside.iter().chain([&self.ours]) {
            for call in calls.first().into_iter().chain(calls.last()) {
                preflight(call).await?;
                if matches!(self.generator, Generator::Outside) {
                    outside::check(call.protocol)?;
                }
            }
        }
        Ok(())
    }

    async fn round(&mut self, seconds: Duration, folder: &Folder) -> Result<(), Fault> {
        for side in self.beside.iter_mut().chain([&mut self.ours]) {
            let sample = match self.generator {
                Generator::Own(load) => side.own(self.shape, load, seconds).await?,
                Generator::Outside => side.outside(self.shape, seconds, folder).await?,
            };
            eprintln!("  {}: {:.0} a second", self.name, sample.per_second);
            side.samples.push(sample);
        }
        Ok(())
    }

    /// Returns the median of the rounds' ratios.
    fn ratio(&self) -> Option<f64> {
        let beside = self.beside.as_ref()?;
        let rounds = self.ours.samples.iter().zip(&beside.samples);
        let ratios = rounds.map(|(ours, beside)| (self.compared)(ours) / (self.compared)(beside));
        Some(median(ratios.collect()))
    }

    fn failed(&self) -> Option<String> {
        let sides = self.beside.iter().chain([&self.ours]);
        let failed: u64 = sides.flat_map(|side| &side.samples).map(|sample| sample.failed).sum();
        (failed > 0).then(|| format!("{}: {failed} calls failed, not counted", self.name))
    }

    fn cells(&self) -> [String; 10] {
        let beside = self.beside.as_ref();
        let of =
            |side: Option<&Side>, value: fn(&Sample) -> f64| side.map(|side| side.median(value));
        let rate = |side| of(side, |sample| sample.per_second).map(thousands).unwrap_or_default();
        let p99 = |side: Option<&Side>| {
            let mut all: Vec<u64> = side?.samples.iter().map(|sample| sample.p99).collect();
            all.sort_unstable();
            Some(all[all.len() / 2]).filter(|&p99| p99 > 0).map(milliseconds)
        };
        let service = |side| of(side, |sample| sample.service).map(measured).unwrap_or_default();
        let ours = Some(&self.ours);
        [
            self.name.to_owned(),
            self.target.to_owned(),
            self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            rate(ours),
            rate(beside),
            p99(ours).unwrap_or_default(),
            p99(beside).unwrap_or_default(),
            service(ours),
            measured(self.ours.median(|sample| sample.postgres)),
            service(beside),
        ]
    }
}

impl Side {
    fn new(calls: Vec<Call>, meter: Meter) -> Self {
        Self { calls: calls.into_iter().map(Arc::new).collect(), meter, samples: Vec::new() }
    }

    async fn own(&self, shape: Shape, load: Load, seconds: Duration) -> Result<Sample, Fault> {
        let shape = match load {
            Load::Full => shape,
            Load::Rate(_) => Shape::new(shape.connections, OPEN_STREAMS),
        };
        let done = drive(&self.calls, shape, load, (WARM, seconds), &self.meter).await?;
        let each = f64::from(self.calls[0].decisions);
        let micros = |seconds: f64| seconds * 1e6 / (to_float(done.tally.answered) * each);
        Ok(Sample {
            per_second: rate(&done) * each,
            p99: done.tally.latency.value_at_quantile(0.99),
            service: micros(done.spent.service),
            postgres: micros(done.spent.postgres),
            failed: done.tally.failed,
        })
    }

    async fn outside(
        &self,
        shape: Shape,
        seconds: Duration,
        folder: &Folder,
    ) -> Result<Sample, Fault> {
        let before = self.meter.read().await?;
        let per_second = outside::rate(&self.calls[0], shape, seconds, folder).await?;
        let spent = self.meter.read().await?.since(&before);
        let micros = |spent: f64| spent * 1e6 / (per_second * seconds.as_secs_f64());
        Ok(Sample {
            per_second,
            p99: 0,
            service: micros(spent.service),
            postgres: micros(spent.postgres),
            failed: 0,
        })
    }

    fn median(&self, of: fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
