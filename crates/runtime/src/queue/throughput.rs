//! Measures how many decisions a second the node makes at full load.

use std::time::{Duration, Instant};

/// The time over which decisions are counted.
const SPAN: Duration = Duration::from_millis(50);
/// The assumed number of decisions a second before the first measurement.
const ASSUMED: f64 = 8192.0;
/// How long the last call of a full queue waits for its place.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// The minimum length of the queue. A short stall of the database must not lead to refusals.
const LEAST: usize = 256;

/// The recent throughput. Only time spans in which calls waited all the time are measured. In other
/// spans, fewer decisions were requested than could have been made.
pub(super) struct Throughput {
    since: Instant,
    done: usize,
    is_busy: bool,
    per_second: f64,
}

impl Throughput {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, done: 0, is_busy: false, per_second: ASSUMED }
    }

    /// Records completed decisions, and whether others wait.
    pub(super) fn note(&mut self, decisions: usize, waiting: bool, now: Instant) {
        self.done += decisions;
        self.is_busy &= waiting;
        let span = now.saturating_duration_since(self.since);
        if span < SPAN {
            return;
        }
        if self.is_busy {
            self.per_second =
                f64::midpoint(self.per_second, to_float(self.done) / span.as_secs_f64());
        }
        *self = Self { since: now, done: 0, is_busy: waiting, per_second: self.per_second };
    }

    /// Returns the number of decisions a second at full load.
    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Returns the maximum number of waiting decisions. It is the number made in [`LONGEST_WAIT`],
    /// but at least [`LEAST`].
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number far below 2^32"
    )]
    pub(super) fn longest_queue(&self) -> usize {
        ((self.per_second * LONGEST_WAIT.as_secs_f64()) as usize).max(LEAST)
    }
}

#[expect(clippy::cast_precision_loss, reason = "decisions of a moment are far below 2^52")]
fn to_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes decisions at this rate for a second.
    fn run(throughput: &mut Throughput, begin: Instant, per_second: u32, waiting: bool) -> Instant {
        let every = Duration::from_secs(1) / per_second;
        for number in 1..=per_second {
            throughput.note(1, waiting, begin + every * number);
        }
        begin + Duration::from_secs(1)
    }

    #[test]
    fn the_queue_holds_a_quarter_second_of_what_is_made_at_capacity() {
        let begin = Instant::now();
        let mut throughput = Throughput::new(begin);
        assert_eq!(throughput.longest_queue(), 2048);
        let begin = run(&mut throughput, begin, 20_000, true);
        assert!((4900..5100).contains(&throughput.longest_queue()), "{}", throughput.per_second());
        // A small number of calls does not indicate a slow service.
        let begin = run(&mut throughput, begin, 10, false);
        assert!((4900..5100).contains(&throughput.longest_queue()), "{}", throughput.per_second());
        run(&mut throughput, begin, 500, true);
        assert_eq!(throughput.longest_queue(), LEAST);
    }
}
