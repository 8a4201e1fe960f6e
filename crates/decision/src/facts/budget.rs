//! Budgets: the bounds on uses and on total amounts, each in its current window.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    bounds::Bounds,
    gathered::{CounterKey, Counts, Spent},
};
use crate::request::amount::Amount;

/// A bound on uses or on a total amount, in its current window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The id of the delegation or `uses` row that has the bound.
    pub holder_id: String,
    /// The counter. A delegation shares it with its renewals.
    pub key: CounterKey,
    /// The bound: a number of uses, or an amount in ten-thousandths.
    pub limit: i64,
    /// The used part, in the unit of `limit`; `None` if it is unknown.
    pub used: Option<i64>,
    /// The currency of the amounts, if the bound has one.
    pub currency: Option<String>,
}

impl Budget {
    /// Returns the budgets among the bounds of a delegation or `uses` row, without the used parts.
    /// `holder` is the holder in its counters' keys.
    pub fn of(id: &str, holder: &str, bounds: &Bounds, at: DateTime<Utc>) -> Vec<Self> {
        let uses = bounds.max_uses.map(|max| (Counts::Uses, max.window_seconds, max.count.into()));
        let total = bounds.max_total_amount.map(|max| {
            let limit = max.amount.ten_thousandths();
            (Counts::Amount, max.window_seconds, limit)
        });
        let each = uses.into_iter().chain(total).filter_map(|(counts, window, limit)| {
            let key = CounterKey::at(holder, counts, window, at)?;
            let currency = bounds.currency.clone().filter(|_| counts == Counts::Amount);
            Some(Self { holder_id: id.to_owned(), key, limit, used: None, currency })
        });
        each.collect()
    }

    /// Adds the used part, if the counters include it.
    #[must_use]
    pub fn with_used(self, spent: &Spent) -> Self {
        let used = spent.0.get(&self.key).copied();
        Self { used, ..self }
    }

    /// Returns the name of the bound.
    pub const fn bound(&self) -> &'static str {
        match self.key.counts {
            Counts::Uses => "max_uses",
            Counts::Amount => "max_total_amount",
        }
    }

    /// Returns the unused part, if it is known. A bound may be narrowed below the used part: then
    /// nothing is left.
    pub fn left(&self) -> Option<i64> {
        self.used.map(|used| self.limit.saturating_sub(used).max(0))
    }

    /// Returns the end of the window. The next window begins then, with nothing used. `None` if
    /// the end is beyond the range of times.
    pub fn resets_at(&self) -> Option<DateTime<Utc>> {
        let end = self.key.window_start.checked_add(self.key.window_seconds.into())?;
        DateTime::from_timestamp(end, 0)
    }

    /// Formats a value in the unit of `limit`: `20` uses, or the amount `450.50`.
    pub fn text(&self, value: i64) -> String {
        match self.key.counts {
            Counts::Uses => value.to_string(),
            Counts::Amount => Amount::from_ten_thousandths(value).to_money(),
        }
    }
}
