//! Measures one row: finds the best shape, then measures at full speed and at half of that rate.

use std::{sync::Arc, time::Duration};

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol, Shape},
    drive::{Load, Outcome, drive},
    meter::{Meter, to_float},
    preflight::preflight,
};

/// The shapes tried for every gRPC row.
const SHAPES: &[Shape] =
    &[Shape::new(4, 4), Shape::new(4, 16), Shape::new(16, 16), Shape::new(16, 64)];
/// The shapes tried if each call has a hundred decisions.
const BATCH_SHAPES: &[Shape] = &[Shape::new(2, 1), Shape::new(4, 2), Shape::new(4, 8)];
const REST_SHAPE: Shape = Shape::new(32, 1);

/// More concurrent calls also delay each other. They are only used if they raise the rate by at least
/// this factor.
const WORTH: f64 = 1.05;
/// The most concurrent calls of a connection in an open loop, where the rate limits them.
pub(crate) const OPEN_STREAMS: usize = 100;

const TRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(1500));
const WARM: Duration = Duration::from_secs(2);

pub(crate) struct Measurement {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Decisions per second.
    pub(crate) per_second: f64,
    /// The median latency of a call, in microseconds.
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    /// `None` if it was not measured.
    pub(crate) p99_at_half: Option<u64>,
    /// Microseconds of CPU for each decision.
    pub(crate) service: f64,
    pub(crate) postgres: f64,
    pub(crate) generator: f64,
    /// The resident memory of the service, in bytes.
    pub(crate) resident: u64,
    pub(crate) failed: u64,
    /// The share of the machine's CPU that other processes used.
    pub(crate) others: f64,
}

/// The measured rows, and the parts that could not be measured.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Measurement>,
    /// Tables of `--curves`.
    pub(crate) tables: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// The missed goals. If there are any, the run fails.
    pub(crate) short: Vec<String>,
}

impl Report {
    /// Measures `call` on the server that `meter` watches.
    pub(crate) async fn measure(
        &mut self,
        name: &'static str,
        call: Call,
        meter: &Meter,
        arguments: &Arguments,
    ) {
        eprintln!("{name}");
        match measure(name, call, meter, arguments).await {
            Ok(row) => self.rows.push(row),
            Err(fault) => self.left_out(name, &fault),
        }
    }

    pub(crate) fn left_out(&mut self, name: &str, fault: &Fault) {
        let note = format!("{name}: left out: {fault}");
        eprintln!("{note}");
        self.notes.push(note);
    }
}

async fn measure(
    name: &'static str,
    call: Call,
    meter: &Meter,
    arguments: &Arguments,
) -> Result<Measurement, Fault> {
    preflight(&call).await?;
    let calls = [Arc::new(call)];
    let [call] = &calls;
    let shape = best(&calls, meter).await?;
    let timing = (WARM, arguments.measured());
    let full = drive(&calls, shape, Load::Full, timing, meter).await?;
    let per_second = rate(&full);
    let open = match call.protocol {
        Protocol::Grpc => Shape::new(shape.connections, OPEN_STREAMS),
        Protocol::Rest => shape,
    };
    let half = drive(&calls, open, Load::Rate(per_second / 2.0), timing, meter).await?;
    let decisions = to_float(full.tally.answered) * f64::from(call.decisions);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let micros = |seconds: f64| seconds * 1e6 / decisions;
    Ok(Measurement {
        name,
        shape,
        per_second: per_second * f64::from(call.decisions),
        p50: full.tally.latency.value_at_quantile(0.5),
        p99: full.tally.latency.value_at_quantile(0.99),
        p99_at_half: Some(half.tally.latency.value_at_quantile(0.99)),
        service: micros(full.spent.service),
        postgres: micros(full.spent.postgres),
        generator: micros(full.spent.generator),
        resident: full.spent.resident,
        failed: full.tally.failed + half.tally.failed,
        others: full.spent.others / full.spent.elapsed / to_float(cores as u64),
    })
}

/// Returns the shape with the fewest concurrent calls that comes close to the highest rate.
async fn best(calls: &[Arc<Call>; 1], meter: &Meter) -> Result<Shape, Fault> {
    let [call] = calls;
    let shapes = match (call.protocol, call.decisions) {
        (Protocol::Rest, _) => return Ok(REST_SHAPE),
        (Protocol::Grpc, 1) => SHAPES,
        (Protocol::Grpc, _) => BATCH_SHAPES,
    };
    let mut best = None;
    let mut highest = 0.0;
    for &shape in shapes {
        let tried = drive(calls, shape, Load::Full, TRY, meter).await?;
        let rate = rate(&tried);
        let Shape { connections, streams } = shape;
        let failed = tried.tally.failed;
        eprintln!("  {connections} x {streams}: {rate:.0} calls a second, {failed} failed");
        if failed == 0 && rate > highest * WORTH {
            (best, highest) = (Some(shape), rate);
        }
    }
    best.ok_or_else(|| "calls failed in every shape".into())
}

/// Returns the calls per second.
pub(crate) fn rate(outcome: &Outcome) -> f64 {
    to_float(outcome.tally.answered) / outcome.spent.elapsed
}
