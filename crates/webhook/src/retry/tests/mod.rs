//! Schedules, consequences of attempts, breakers.

mod breaker;
mod outcome;
mod policy;
mod schedule;

use chrono::{DateTime, Utc};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
}
