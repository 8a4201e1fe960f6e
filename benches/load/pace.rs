//! When the calls of an open loop fall due: at random (a Poisson process), as from many clients
//! that know nothing of each other.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::UnboundedSender;

/// Sleeping for less costs more than it brings; what fell due meanwhile goes out together.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// Hands out `rate` calls a second, in turn, until `end`. Blocks: tokio's timers are too coarse
/// (1 ms), so this has a thread of its own.
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

/// Marsaglia's xorshift64: the same calls at the same times in every run.
struct Random(u64);

impl Random {
    /// Above 0, at most 1.
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (f64::from((self.0 >> 32) as u32) + 1.0) / 4_294_967_296.0
    }
}
