//! The due times of calls in an open loop: random (a Poisson process), as from many independent
//! clients.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::UnboundedSender;

/// The shortest sleep. Shorter sleeps cost more than they gain: calls that are due within this time
/// are sent together.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// Sends `rate` due times per second to the queues, in turn, until `end`. It blocks and runs on a
/// separate thread, since tokio's timers are too coarse (1 ms).
pub(crate) fn pace(rate: f64, begin: Instant, end: Instant, queues: &[UnboundedSender<Instant>]) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut due = begin;
    for queue in queues.iter().cycle() {
        due += Duration::from_secs_f64(-random.fraction().ln() / rate);
        if due >= end {
            return;
        }
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            thread::sleep(wait.max(SHORTEST_SLEEP));
        }
        if queue.send(due).is_err() {
            return;
        }
    }
}

/// Marsaglia's xorshift64. Every run thus makes the same calls at the same times.
struct Random(u64);

impl Random {
    /// Returns a number above 0, at most 1.
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (f64::from((self.0 >> 32) as u32) + 1.0) / 4_294_967_296.0
    }
}
