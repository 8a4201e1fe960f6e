//! The rate limit of feeders across all nodes. It is one snapshot per second for each anchor and
//! API key, with bursts of ten.
//!
//! Uses the generic cell rate algorithm. For each pair of anchor and API key, the database stores
//! the time at which the next snapshot is due at a constant rate. A snapshot may arrive up to 9
//! seconds before that time, which allows bursts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use authority_api::rate_limit::RateLimit;
use authority_model::{proto::reality::RealityAnchor, schema::reality_feeding, wire::Time};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::upsert::excluded;

use super::{super::prelude::*, freshness::moment};

/// The limit for an anchor and API key.
pub const RATE_LIMIT: RateLimit =
    RateLimit { name: "reality_snapshots_per_anchor_and_key", limit: 10, window_seconds: 10 };

/// The due time of the next snapshot for each pair of anchor and feeder.
pub(super) struct Pace {
    due: BTreeMap<(String, String), DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl Pace {
    /// Locks the pairs in order and reads their due times.
    pub(super) async fn read(
        db: &mut Db,
        pairs: BTreeSet<(&str, &str)>,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let mut due: BTreeMap<_, _> = pairs
            .iter()
            .map(|(anchor, feeder)| (((*anchor).to_owned(), (*feeder).to_owned()), now))
            .collect();
        if due.is_empty() {
            return Ok(Self { due, now });
        }
        let (anchors, feeders): (Vec<&str>, Vec<&str>) = pairs.into_iter().unzip();
        let stored: Vec<(String, String, Time)> = reality_feeding::table
            .filter(reality_feeding::anchor_id.eq_any(anchors))
            .filter(reality_feeding::feeder_key_id.eq_any(feeders))
            .order((reality_feeding::anchor_id, reality_feeding::feeder_key_id))
            .for_update()
            .select((
                reality_feeding::anchor_id,
                reality_feeding::feeder_key_id,
                reality_feeding::due_at,
            ))
            .load(db)
            .await?;
        for (anchor, feeder, at) in stored {
            if let Some(due) = due.get_mut(&(anchor, feeder)) {
                *due = moment(at).max(now);
            }
        }
        Ok(Self { due, now })
    }

    /// Counts another snapshot, or refuses it with the number of seconds to wait.
    pub(super) fn take(&mut self, anchor: &str, feeder: &str) -> Result<(), Error> {
        let pair = (anchor.to_owned(), feeder.to_owned());
        let Some(due) = self.due.get_mut(&pair) else { return Ok(()) };
        let every = RATE_LIMIT.window() / i32::try_from(RATE_LIMIT.limit).unwrap_or(i32::MAX);
        let ahead = *due - self.now - (RATE_LIMIT.window() - every);
        if ahead > TimeDelta::zero() {
            // Rounded up to whole seconds.
            let seconds = (ahead + TimeDelta::milliseconds(999)).num_seconds().max(1);
            let seconds = u64::try_from(seconds).unwrap_or(1);
            let RateLimit { limit, window_seconds, .. } = RATE_LIMIT;
            let text = format!(
                "at most {limit} snapshots in {window_seconds} seconds for an anchor and API key"
            );
            return Err(RATE_LIMIT.refusal(text, seconds).into());
        }
        *due += every;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_come_at_once_and_then_one_in_a_second() {
        let now = DateTime::UNIX_EPOCH;
        let pair = ("a".to_owned(), "k".to_owned());
        let mut pace = Pace { due: BTreeMap::from([(pair, now)]), now };
        for number in 1..=10 {
            assert!(pace.take("a", "k").is_ok(), "{number}");
        }
        let Err(Error::Api(refused)) = pace.take("a", "k") else { panic!("an eleventh") };
        assert_eq!(refused.about.as_slice().first(), Some(&("retry_after", "1".to_owned())));
        pace.now += TimeDelta::milliseconds(999);
        assert!(pace.take("a", "k").is_err());
        pace.now += TimeDelta::milliseconds(1);
        assert!(pace.take("a", "k").is_ok());
        assert!(pace.take("a", "k").is_err());
    }
}
