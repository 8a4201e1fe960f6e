//! Measures the service with more calls than it can answer, from a client that never waits. At the
//! same time, another tenant makes few calls: the polite tenant.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::task::{JoinHandle, spawn_blocking};

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
    row::Report,
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
/// The number of calls a second that the polite tenant makes over gRPC, and as many over REST.
const POLITE: f64 = 10.0;
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
    let flood = Arc::new(product::evaluate(address, Some(&key)));
    let timing = (WARM, arguments.measured());
    let alone = Polite::start(&polite, timing, &meter).ended().await?;
    report.notes.push(format!("overload: the polite tenant alone: {alone}"));
    let mut floods = Vec::new();
    for shape in FLOODS {
        let in_flight = shape.connections * shape.streams;
        eprintln!("overload: {in_flight} in flight");
        let beside = Polite::start(&polite, timing, &meter);
        let flooded = drive(&flood, shape, Load::Full, timing, &meter).await?;
        floods.push(Flooded { in_flight, flooded, beside: beside.ended().await? });
    }
    let [first, .., last] = floods.as_slice() else { return Ok(()) };
    let capacity = f64::midpoint(first.goodput(), last.goodput());
    for flood in &floods {
        let in_flight = flood.in_flight;
        report.short.extend(shortfall(in_flight, capacity, flood.goodput()));
        report.short.extend(impolite(in_flight, flood.beside.refused));
        let tally = &flood.flooded.tally;
        report.notes.push(format!(
            "overload: {in_flight} in flight: {:.0} decisions a second, {:.0} % of those at capacity; \
             {:.0} refused a second; p99 {}; {} MB; {}",
            flood.goodput(),
            flood.goodput() / capacity * 100.0,
            to_float(tally.failed) / (WARM + arguments.measured()).as_secs_f64(),
            millis(&flood.flooded, 0.99),
            flood.flooded.spent.resident / 1_000_000,
            flood.beside,
        ));
    }
    Ok(())
}

/// The results with a number of calls in flight, for the service and for the polite tenant.
struct Flooded {
    in_flight: usize,
    flooded: Outcome,
    beside: Seen,
}

impl Flooded {
    /// Decisions a second.
    fn goodput(&self) -> f64 {
        to_float(self.flooded.tally.answered) / self.flooded.spent.elapsed
    }
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
                runtime.block_on(drive(&call, shape, Load::Rate(POLITE), timing, &meter))
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
        Ok(Seen { words, refused: grpc.tally.failed + rest.tally.failed })
    }
}

/// The results of the polite tenant.
struct Seen {
    words: String,
    /// Calls without a decision.
    refused: u64,
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn millis(outcome: &Outcome, quantile: f64) -> String {
    format!("{:.1} ms", to_float(outcome.tally.latency.value_at_quantile(quantile)) / 1000.0)
}
