//! The rate limit of feeders across all nodes. It is one snapshot per second for each anchor and
//! API key, with bursts of ten.
//!
//! Uses the generic cell rate algorithm. For each pair of anchor and API key, the database stores
//! the time at which the next snapshot is due at a constant rate. A snapshot may arrive up to 9
//! seconds before that time, which allows bursts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use authority_api::rate_limit::{RateLimit, Remaining};
use authority_model::{proto::reality::RealityAnchor, schema::reality_feeding, wire::Time};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::upsert::excluded;

use super::freshness::moment;
use crate::flow::prelude::*;

/// The limit for an anchor and API key.
pub const RATE_LIMIT: RateLimit =
    RateLimit { name: "reality_snapshots_per_anchor_and_key", limit: 10, window_seconds: 10 };

/// An anchor and a feeder.
pub(super) type Pair = (String, String);

/// The due time of the next snapshot for each pair.
pub(super) struct Pace {
    due: BTreeMap<Pair, DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl Pace {
    /// Reads the due times of pairs. With `locks`, locks the pairs in order.
    pub(super) async fn read(
        db: &mut Db,
        pairs: BTreeSet<Pair>,
        now: DateTime<Utc>,
        locks: bool,
    ) -> Result<Self, Error> {
        if pairs.is_empty() {
            return Ok(Self { due: BTreeMap::new(), now });
        }
        let (anchors, feeders): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
        let rows = reality_feeding::table
            .filter(reality_feeding::anchor_id.eq_any(anchors))
            .filter(reality_feeding::feeder_key_id.eq_any(feeders))
            .order((reality_feeding::anchor_id, reality_feeding::feeder_key_id));
        let columns =
            (reality_feeding::anchor_id, reality_feeding::feeder_key_id, reality_feeding::due_at);
        let stored: Vec<(String, String, Time)> = if locks {
            rows.for_update().select(columns).load(db).await?
        } else {
            rows.select(columns).load(db).await?
        };
        let mut due: BTreeMap<_, _> = pairs.into_iter().map(|pair| (pair, now)).collect();
        for (anchor, feeder, at) in stored {
            if let Some(due) = due.get_mut(&(anchor, feeder)) {
                *due = moment(at).max(now);
            }
        }
        Ok(Self { due, now })
    }

    /// Counts another snapshot, or refuses it with the number of seconds to wait.
    pub(super) fn take(&mut self, pair: &Pair) -> Result<(), Error> {
        let Some(due) = self.due.get_mut(pair) else { return Ok(()) };
        let ahead = *due - self.now - (RATE_LIMIT.window() - every());
        if ahead > TimeDelta::zero() {
            let RateLimit { limit, window_seconds, .. } = RATE_LIMIT;
            let text = format!(
                "at most {limit} snapshots in {window_seconds} seconds for an anchor and API key"
            );
            return Err(RATE_LIMIT.refusal(text, seconds(ahead)).into());
        }
        *due += every();
        Ok(())
    }

    /// Returns the remaining snapshots of a pair; `None` if the pair was not read.
    pub(super) fn left(&self, pair: &Pair) -> Option<Remaining> {
        let ahead = *self.due.get(pair)? - self.now;
        let room = (RATE_LIMIT.window() - ahead).num_milliseconds();
        let calls = u32::try_from(room / every().num_milliseconds().max(1)).unwrap_or_default();
        Some(Remaining::Calls { limit: RATE_LIMIT, calls, seconds: seconds(ahead) })
    }

    /// Returns the remaining snapshots of the pair with the fewest.
    pub(super) fn least(&self) -> Option<Remaining> {
        self.due.keys().filter_map(|pair| self.left(pair)).min()
    }

    /// Stores the new due times.
    pub(super) async fn write(
        self,
        db: &mut Db,
        anchors: &HashMap<String, RealityAnchor>,
    ) -> Result<(), Error> {
        let rows: Vec<_> = self
            .due
            .iter()
            .filter_map(|((anchor, feeder), due)| {
                let tenant = &anchors.get(anchor)?.tenant_id;
                Some((
                    reality_feeding::anchor_id.eq(anchor),
                    reality_feeding::feeder_key_id.eq(feeder),
                    reality_feeding::tenant_id.eq(tenant),
                    reality_feeding::due_at.eq(Time::from(*due)),
                ))
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        diesel::insert_into(reality_feeding::table)
            .values(rows)
            .on_conflict((reality_feeding::anchor_id, reality_feeding::feeder_key_id))
            .do_update()
            .set(reality_feeding::due_at.eq(excluded(reality_feeding::due_at)))
            .execute(db)
            .await?;
        Ok(())
    }
}

/// The time for one snapshot at the constant rate.
fn every() -> TimeDelta {
    RATE_LIMIT.window() / i32::try_from(RATE_LIMIT.limit).unwrap_or(i32::MAX)
}

/// Returns whole seconds, rounded up: at least one.
fn seconds(wait: TimeDelta) -> u64 {
    let seconds = (wait + TimeDelta::milliseconds(999)).num_seconds().max(1);
    u64::try_from(seconds).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_come_at_once_and_then_one_in_a_second() {
        let now = DateTime::UNIX_EPOCH;
        let pair = ("a".to_owned(), "k".to_owned());
        let mut pace = Pace { due: BTreeMap::from([(pair.clone(), now)]), now };
        let left = |pace: &Pace, calls: u32, seconds: u64| {
            let expected = Remaining::Calls { limit: RATE_LIMIT, calls, seconds };
            assert_eq!(pace.left(&pair), Some(expected));
            assert_eq!(pace.least(), Some(expected));
        };
        left(&pace, 10, 1);
        for number in 1..=10 {
            assert!(pace.take(&pair).is_ok(), "{number}");
            left(&pace, 10 - number, number.into());
        }
        let Err(Error::Api(refused)) = pace.take(&pair) else { panic!("an eleventh") };
        assert_eq!(refused.about.as_slice().first(), Some(&("retry_after", "1".to_owned())));
        pace.now += TimeDelta::milliseconds(999);
        assert!(pace.take(&pair).is_err());
        left(&pace, 0, 10);
        pace.now += TimeDelta::milliseconds(1);
        left(&pace, 1, 9);
        assert!(pace.take(&pair).is_ok());
        assert!(pace.take(&pair).is_err());
        assert_eq!(pace.left(&("b".to_owned(), "k".to_owned())), None);
    }
}
