//! Measures the service with more calls than it can answer, from a client that never waits. At the
//! same time, another tenant makes few calls: the polite tenant.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol, Shape},
    drive::{Load, Outcome, drive},
    goal::{impolite, shortfall},
    meter::{Meter, to_float},
    owner::Owner,
    preflight::preflight,
    product::{self, Started},
    row::{Report, rate},
    server::Folder,
};

/// The numbers of calls in flight: as many as reach the service's capacity, then 3, 10 and 40 times
/// as many, then the first number again. It is repeated because the rate of decisions falls as more
/// decisions are stored.
const FLOODS: [Shape; 5] = [
    Shape::new(16, 16),
    Shape::new(16, 48),
    Shape::new(16, 160),
    Shape::new(64, 160),
    Shape::new(16, 16),
];
/// The connections of the open loop, which makes several times as many calls as the service can
/// answer. New calls can start while others wait for their refusal, which takes up to 1.9 s.
const OPEN: Shape = Shape::new(256, 160);
const OPEN_TIMES: f64 = 3.0;
/// The calls that are refused because of their key's limit.
const LIMITED: Shape = Shape::new(64, 160);
/// The number of calls a second that the polite tenant makes over gRPC, and as many over REST.
const POLITE: f64 = 50.0;
const WARM: Duration = Duration::from_secs(3);

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let Started { server, address, key } = product::start("overload", "strict", folder).await?;
    let meter = server.meter();
    let owner = Owner::new(address, folder, "overload")?;
    let polite = polite(&owner).await?;
    let flood = [Arc::new(product::evaluate(address, Some(&key)))];
    let timing = (WARM, arguments.measured());
    report.notes.push(refusals(&owner, timing, &meter).await?);
    let alone = Polite::start(&polite, timing, &meter).ended().await?;
    report.notes.push(format!("overload: the polite tenant alone: {alone}"));
    let mut floods = Vec::new();
    for shape in FLOODS {
        let name = format!("{} in flight", shape.connections * shape.streams);
        floods.push(Flooded::by(name, &flood, shape, Load::Full, &polite, timing, &meter).await?);
    }
    let [first, .., last] = floods.as_slice() else { return Ok(()) };
    let capacity = f64::midpoint(first.goodput(), last.goodput());
    let name = format!("{OPEN_TIMES} times as many calls a second");
    let load = Load::Rate(capacity * OPEN_TIMES);
    floods.push(Flooded::by(name, &flood, OPEN, load, &polite, timing, &meter).await?);
    for flood in &floods {
        let (Flooded { load, flooded, beside }, goodput) = (flood, flood.goodput());
        report.short.extend(shortfall(load, capacity, goodput));
        report.short.extend(impolite(load, beside.refused));
        report.notes.push(format!(
            "overload: {load}: {goodput:.0} decisions a second, {:.0} % of those at capacity; \
             {:.0} refused a second; p99 {}; {} MB; {beside}, {}",
            goodput / capacity * 100.0,
            to_float(flooded.tally.refused) / flooded.spent.elapsed,
            millis(flooded, 0.99),
            flooded.spent.resident / 1_000_000,
            beside.slower_than(&alone),
        ));
    }
    Ok(())
}

/// The results under a load, for the service and for the polite tenant.
struct Flooded {
    load: String,
    flooded: Outcome,
    beside: Seen,
}

impl Flooded {
    async fn by(
        name: String,
        flood: &[Arc<Call>],
        shape: Shape,
        load: Load,
        polite: &[Arc<Call>; 2],
        timing: (Duration, Duration),
        meter: &Meter,
    ) -> Result<Self, Fault> {
        eprintln!("overload: {name}");
        let beside = Polite::start(polite, timing, meter);
        let flooded = drive(flood, shape, load, timing, meter).await?;
        Ok(Self { load: name, flooded, beside: beside.ended().await? })
    }

    /// Decisions a second.
    fn goodput(&self) -> f64 {
        rate(&self.flooded)
    }
}

/// Returns a note with the CPU time of a refusal. The calls have a key with a limit of one decision
/// a second: almost all of them are refused. The CPU time of an idle service is subtracted.
async fn refusals(
    owner: &Owner,
    timing: (Duration, Duration),
    meter: &Meter,
) -> Result<String, Fault> {
    let key = json!({"tenant_id": "svc:tenant:acme", "label": "limited", "scopes": ["runtime:write"],
                     "decisions_per_second": 1});
    let key = owner.post("/api/v1/api-keys", &key).await?;
    let key = format!("Bearer {}", key["secret"].as_str().unwrap_or_default());
    let call = Arc::new(product::evaluate(owner.address, Some(&key)));
    let before = meter.read().await?;
    sleep(timing.0).await;
    let idle = meter.read().await?.since(&before);
    eprintln!("overload: refusals");
    let Outcome { tally, spent } = drive(&[call], LIMITED, Load::Full, timing, meter).await?;
    let used = spent.service - idle.service / idle.elapsed * spent.elapsed;
    let refused = to_float(tally.refused);
    Ok(format!(
        "overload: a refusal takes {:.1} µs of the service's CPU time, with reading the call and checking its key \
         ({:.0} refused a second, {} decided)",
        used * 1e6 / refused,
        refused / spent.elapsed,
        tally.answered,
    ))
}

/// Returns the calls of a separate tenant, over both protocols. They are denials, which are
/// decided, signed and recorded like any other decision.
async fn polite(owner: &Owner) -> Result<[Arc<Call>; 2], Fault> {
    owner.post("/api/v1/tenants", &json!({"name": "Polite", "slug": "polite"})).await?;
    let key =
        json!({"tenant_id": "svc:tenant:polite", "label": "bench", "scopes": ["runtime:write"]});
    let key = owner.post("/api/v1/api-keys", &key).await?;
    let key = format!("Bearer {}", key["secret"].as_str().unwrap_or_default());
    let grpc = Call {
        allowed: |answer| answer.first() == Some(&0x08),
        ..product::evaluate(owner.address, Some(&key))
    };
    let rest = Call {
        allowed: |answer| answer.starts_with(br#"{"decision":""#),
        ..product::evaluate_rest(owner.address, &key)
    };
    preflight(&grpc).await?;
    preflight(&rest).await?;
    Ok([Arc::new(grpc), Arc::new(rest)])
}

/// The polite tenant's calls, on separate threads: they do not wait for the flood's generator.
struct Polite([JoinHandle<Result<Outcome, Fault>>; 2]);

impl Polite {
    fn start(calls: &[Arc<Call>; 2], timing: (Duration, Duration), meter: &Meter) -> Self {
        Self(calls.each_ref().map(|call| {
            let (call, meter) = (Arc::clone(call), meter.clone());
            let shape = match call.protocol {
                Protocol::Grpc => Shape::new(1, 100),
                Protocol::Rest => Shape::new(16, 1),
            };
            spawn_blocking(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(drive(&[call], shape, Load::Rate(POLITE), timing, &meter))
            })
        }))
    }

    async fn ended(self) -> Result<Seen, Fault> {
        let [grpc, rest] = self.0;
        let (grpc, rest) = (grpc.await??, rest.await??);
        let seen = |name: &str, outcome: &Outcome| {
            let (p50, p99) = (millis(outcome, 0.5), millis(outcome, 0.99));
            format!("{name} p50 {p50}, p99 {p99}, {} refused", outcome.tally.failed)
        };
        let words = format!("a polite tenant: {}; {}", seen("gRPC", &grpc), seen("REST", &rest));
        let p99 =
            [&grpc, &rest].map(|outcome| to_float(outcome.tally.latency.value_at_quantile(0.99)));
        Ok(Seen { words, p99, refused: grpc.tally.failed + rest.tally.failed })
    }
}

/// The results of the polite tenant.
struct Seen {
    words: String,
    /// The 99th percentiles over gRPC and REST, in microseconds.
    p99: [f64; 2],
    /// Calls without a decision.
    refused: u64,
}

impl Seen {
    /// Compares the 99th percentiles with the values of an idle service.
    fn slower_than(&self, alone: &Self) -> String {
        let [grpc, rest] = [0, 1].map(|way| self.p99[way] / alone.p99[way]);
        format!("{grpc:.1} and {rest:.1} times the p99 of an idle service (the goal is 2)")
    }
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn millis(outcome: &Outcome, quantile: f64) -> String {
    format!("{:.1} ms", to_float(outcome.tally.latency.value_at_quantile(quantile)) / 1000.0)
}
