//! Loads one server for a period: at full speed (closed loop: a new call for each response) or at a
//! given rate (open loop: calls are due even if earlier ones have no response yet).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{
    sync::{
        Mutex,
        mpsc::{UnboundedReceiver, unbounded_channel},
    },
    task::JoinSet,
    time::sleep_until,
};

use crate::{
    Fault,
    call::{Call, Protocol, Shape},
    http1, http2,
    meter::{Meter, Spent},
    pace,
};

/// The timeout for responses after the last call.
const GRACE: Duration = Duration::from_secs(10);
const LONGEST_MICROSECONDS: u64 = 60_000_000;

#[derive(Clone, Copy)]
pub(crate) enum Load {
    Full,
    /// Calls per second.
    Rate(f64),
}

/// The due times of calls in an open loop. Connections share them: a free connection takes the next
/// due time.
pub(crate) type Due = Arc<Mutex<UnboundedReceiver<Instant>>>;

/// The arguments of one connection.
pub(crate) struct Work {
    pub(crate) window: Window,
    pub(crate) due: Option<Due>,
}

/// The measured time, after the warm-up.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    from: Instant,
    to: Instant,
}

impl Window {
    pub(crate) fn over(&self, now: Instant) -> bool {
        now >= self.to
    }

    pub(crate) fn patience(&self) -> Instant {
        self.to + GRACE
    }

    fn holds(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

/// The results of the calls.
pub(crate) struct Tally {
    /// Latencies in microseconds of calls that started in the window. In an open loop, they start
    /// at the due time.
    pub(crate) latency: Histogram<u64>,
    /// The number of calls with a response in the window.
    pub(crate) answered: u64,
    /// The number of calls without a response, or with a response other than an allow.
    pub(crate) failed: u64,
    /// The number of responses in the window other than an allow.
    pub(crate) refused: u64,
}

impl Tally {
    pub(crate) fn new() -> Result<Self, Fault> {
        let latency = Histogram::new_with_bounds(1, LONGEST_MICROSECONDS, 3)?;
        Ok(Self { latency, answered: 0, failed: 0, refused: 0 })
    }

    pub(crate) fn note(&mut self, window: &Window, begun: Instant, now: Instant, allowed: bool) {
        if !allowed {
            self.failed += 1;
            self.refused += u64::from(window.holds(now));
            return;
        }
        if window.holds(now) {
            self.answered += 1;
        }
        if window.holds(begun) {
            let took = now.saturating_duration_since(begun).as_micros();
            self.latency.saturating_record(u64::try_from(took).unwrap_or(LONGEST_MICROSECONDS));
        }
    }
}

/// One load, measured.
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) spent: Spent,
}

/// Loads the server that `meter` watches: for the time `warm` without measuring, then for the time
/// `measured`.
///
/// The connections share the calls. A connection with several calls makes them in turn; only the
/// bodies of these may differ.
pub(crate) async fn drive(
    calls: &[Arc<Call>],
    shape: Shape,
    load: Load,
    (warm, measured): (Duration, Duration),
    meter: &Meter,
) -> Result<Outcome, Fault> {
    let begin = Instant::now();
    let window = Window { from: begin + warm, to: begin + warm + measured };
    // With HTTP/1.1, all connections share one queue, since a connection handles one call at a
    // time. With HTTP/2, each connection has its own queue.
    let protocol = calls.first().ok_or("there is no call")?.protocol;
    let queues = match protocol {
        Protocol::Grpc => shape.connections,
        Protocol::Rest => 1,
    };
    let mut due = Vec::new();
    if let Load::Rate(rate) = load {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..queues).map(|_| unbounded_channel()).unzip();
        due.extend(receivers.into_iter().map(|queue| Arc::new(Mutex::new(queue))));
        std::thread::spawn(move || pace::pace(rate, begin, window.to, &senders));
    }
    let mut connections = JoinSet::new();
    for number in 0..shape.connections {
        let work = Work { window, due: due.get(number % queues).cloned() };
        let own = calls.iter().cycle().skip(number).step_by(shape.connections);
        let own: Vec<_> = own.take(calls.len().div_ceil(shape.connections)).cloned().collect();
        connections.spawn(async move {
            match protocol {
                Protocol::Grpc => http2::run(&own, shape.streams, work).await,
                Protocol::Rest => http1::run(&own, work).await,
            }
        });
    }
    sleep_until(window.from.into()).await;
    let before = meter.read().await?;
    sleep_until(window.to.into()).await;
    let after = meter.read().await?;
    let mut tally = Tally::new()?;
    while let Some(ended) = connections.join_next().await {
        let part = ended??;
        tally.latency.add(&part.latency)?;
        tally.answered += part.answered;
        tally.failed += part.failed;
        tally.refused += part.refused;
    }
    Ok(Outcome { tally, spent: after.since(&before) })
}
