//! `script/bench --curves`: measures the cost of a decision as one size grows. Each round
//! measures all points of a curve, because the speed of a machine changes over time.

use std::{cmp::Ordering, sync::Arc, time::Duration};

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Shape},
    drive::{Load, drive},
    meter::{Meter, to_float},
    preflight::preflight,
    row::{OPEN_STREAMS, Report, rate},
    table::{grid, measured, milliseconds, thousands},
};

const ROUNDS: usize = 3;
const WARM: Duration = Duration::from_millis(500);
/// The calls a second at which latencies are measured, or half of the point's highest rate if that
/// is lower.
const PACE: f64 = 1000.0;

const HEADINGS: [&str; 7] =
    ["", "per second", "p50", "p99", "CPU µs: service", "Postgres", "resident"];

/// The points of a curve.
pub(crate) struct Curve {
    pub(crate) title: &'static str,
    pub(crate) shape: Shape,
    pub(crate) points: Vec<Point>,
}

/// A size, and the calls to measure at this size.
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) calls: Vec<Arc<Call>>,
    pub(crate) meter: Meter,
}

/// The measurements of one round.
struct Sample {
    per_second: f64,
    /// Microseconds.
    p50: u64,
    p99: u64,
    /// Microseconds of CPU for each decision.
    service: f64,
    postgres: f64,
    resident: f64,
    failed: u64,
}

impl Curve {
    pub(crate) fn new(title: &'static str, shape: Shape) -> Self {
        Self { title, shape, points: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, calls: Vec<Call>, meter: Meter) {
        let calls = calls.into_iter().map(Arc::new).collect();
        self.points.push(Point { name: name.into(), calls, meter });
    }

    /// Adds the curve's table to the report.
    pub(crate) async fn measure(
        self,
        arguments: &Arguments,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let mut points = Vec::new();
        for point in &self.points {
            match point.check().await {
                Ok(()) => points.push((point, Vec::new())),
                Err(fault) => report.left_out(&format!("{}, {}", self.title, point.name), &fault),
            }
        }
        for _ in 0..ROUNDS {
            for (point, samples) in &mut points {
                samples.push(point.round(self.shape, arguments.measured()).await?);
            }
        }
        for (point, samples) in &points {
            let failed: u64 = samples.iter().map(|sample| sample.failed).sum();
            if failed > 0 {
                let name = format!("{}, {}", self.title, point.name);
                report.notes.push(format!("{name}: {failed} calls failed, not counted"));
            }
        }
        let rows = points.iter().map(|(point, samples)| cells(&point.name, samples));
        let Shape { connections, streams } = self.shape;
        report.tables.push(format!(
            "## {}\n\n{connections} x {streams} in flight.\n\n{}",
            self.title,
            grid(HEADINGS, rows)
        ));
        Ok(())
    }
}

impl Point {
    /// Makes the first and the last call.
    async fn check(&self) -> Result<(), Fault> {
        for call in self.calls.first().into_iter().chain(self.calls.last()) {
            preflight(call).await?;
        }
        Ok(())
    }

    async fn round(&self, shape: Shape, seconds: Duration) -> Result<Sample, Fault> {
        let timing = (WARM, seconds);
        let full = drive(&self.calls, shape, Load::Full, timing, &self.meter).await?;
        let per_second = rate(&full);
        let open = Shape::new(shape.connections, OPEN_STREAMS);
        let paced = Load::Rate(PACE.min(per_second / 2.0));
        let paced = drive(&self.calls, open, paced, timing, &self.meter).await?;
        let micros = |seconds: f64| seconds * 1e6 / to_float(full.tally.answered);
        let sample = Sample {
            per_second,
            p50: paced.tally.latency.value_at_quantile(0.5),
            p99: paced.tally.latency.value_at_quantile(0.99),
            service: micros(full.spent.service),
            postgres: micros(full.spent.postgres),
            resident: to_float(full.spent.resident),
            failed: full.tally.failed + paced.tally.failed,
        };
        eprintln!("  {}: {per_second:.0} a second, {:.0} µs", self.name, sample.service);
        Ok(sample)
    }
}

/// Returns a row with the medians of the rounds.
fn cells(name: &str, samples: &[Sample]) -> [String; 7] {
    let float = |of: fn(&Sample) -> f64| median(samples, of, f64::total_cmp);
    let latency = |of: fn(&Sample) -> u64| milliseconds(median(samples, of, u64::cmp));
    [
        name.to_owned(),
        thousands(float(|sample| sample.per_second)),
        latency(|sample| sample.p50),
        latency(|sample| sample.p99),
        measured(float(|sample| sample.service)),
        measured(float(|sample| sample.postgres)),
        format!("{:.0} MB", float(|sample| sample.resident) / 1e6),
    ]
}

fn median<T>(samples: &[Sample], of: fn(&Sample) -> T, order: fn(&T, &T) -> Ordering) -> T
where
    T: Copy,
{
    let mut all: Vec<T> = samples.iter().map(of).collect();
    all.sort_by(order);
    all[all.len() / 2]
}
