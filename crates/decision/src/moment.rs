//! Times in facts, requests and verdicts: RFC 3339, UTC with `Z`, to the microsecond.
//!
//! There is only one text form, because it is hashed and signed: equal times must be equal bytes.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Formats the time as RFC 3339. Microseconds are included only if they are not zero.
pub fn text(at: DateTime<Utc>) -> String {
    let whole = at.timestamp_subsec_micros() == 0;
    let format = if whole { SecondsFormat::Secs } else { SecondsFormat::Micros };
    at.to_rfc3339_opts(format, true)
}

pub fn serialize<S: Serializer>(at: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*at))
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DateTime<Utc>, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
    Ok(parsed.with_timezone(&Utc))
}

/// Serializes optional times in the same text form.
pub(super) mod option {
    use super::{DateTime, Deserialize, Deserializer, Serialize, Serializer, Utc};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Moment(#[serde(with = "super")] DateTime<Utc>);

    #[expect(clippy::ref_option, reason = "serde's `with` passes the field by reference")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Option<DateTime<Utc>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(Moment).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        Ok(Option::<Moment>::deserialize(from)?.map(|moment| moment.0))
    }
}

/// A period: `from <= at < until`. A missing start or end means that the period has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    #[serde(with = "option", skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    #[serde(with = "option", skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

impl Window {
    pub fn has_started(self, at: DateTime<Utc>) -> bool {
        self.from.is_none_or(|from| from <= at)
    }

    pub fn over(self, at: DateTime<Utc>) -> bool {
        self.until.is_some_and(|until| until <= at)
    }

    pub fn holds(self, at: DateTime<Utc>) -> bool {
        self.has_started(at) && !self.over(at)
    }

    /// Describes why `at` is not within the period; `None` if it is.
    pub fn problem(self, at: DateTime<Utc>) -> Option<String> {
        match (self.from, self.until) {
            (Some(from), _) if !self.has_started(at) => Some(format!("begins at {}", text(from))),
            (_, Some(until)) if self.over(at) => Some(format!("expired at {}", text(until))),
            _ => None,
        }
    }

    /// Whether this period is entirely within `outer`.
    pub fn is_within(self, outer: Self) -> bool {
        let begins = outer.from.is_none_or(|from| self.from.is_some_and(|own| own >= from));
        begins && outer.until.is_none_or(|until| self.until.is_some_and(|own| own <= until))
    }
}
