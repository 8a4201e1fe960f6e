//! A time: `google.protobuf.Timestamp` and `timestamptz`.

use std::fmt;

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::{Pg, PgValue},
    serialize::{self, Output, ToSql},
    sql_types::{BigInt, Timestamptz},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// The reason why a time cannot be stored.
const OUT_OF_RANGE: &str = "the time is outside the years 1 to 9999";

/// Seconds from 1970 to 2000, the epoch of Postgres.
const POSTGRES_EPOCH: i64 = 946_684_800;

/// A time to the microsecond, as Postgres stores it.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message, AsExpression, FromSqlRow,
)]
#[diesel(sql_type = Timestamptz)]
pub struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl Time {
    /// Converts the time; `None` if it is outside RFC 3339's range (years 1 to 9999).
    pub fn moment(self) -> Option<DateTime<Utc>> {
        let nanos = u32::try_from(self.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        let moment = DateTime::from_timestamp(self.seconds, nanos / 1000 * 1000)?;
        (1..=9999).contains(&moment.year()).then_some(moment)
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.seconds.saturating_mul(1_000_000).saturating_add(i64::from(self.nanos / 1000))
    }

    /// Converts microseconds since 1970. A number outside the calendar's range becomes 1970.
    pub fn from_micros(micros: i64) -> Self {
        DateTime::from_timestamp_micros(micros).unwrap_or_default().into()
    }
}

impl From<DateTime<Utc>> for Time {
    fn from(moment: DateTime<Utc>) -> Self {
        // In chrono, a leap second has more than 999,999,999 nanoseconds.
        let nanos = moment.timestamp_subsec_micros().min(999_999) * 1000;
        Self { seconds: moment.timestamp(), nanos: nanos.cast_signed() }
    }
}

/// Formats the time as RFC 3339 with `Z`. Microseconds are included only if they are not zero.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = self.moment().unwrap_or_default();
        let fraction = match moment.timestamp_subsec_micros() {
            0 => SecondsFormat::Secs,
            _ => SecondsFormat::Micros,
        };
        f.write_str(&moment.to_rfc3339_opts(fraction, true))
    }
}

/// Serialises the text of [`Display`](fmt::Display).
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.moment().ok_or_else(|| ser::Error::custom(OUT_OF_RANGE))?;
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let moment = DateTime::parse_from_rfc3339(&text).map_err(de::Error::custom)?;
        let time = Self::from(moment.to_utc());
        time.moment().map(|_| time).ok_or_else(|| de::Error::custom(OUT_OF_RANGE))
    }
}

impl FromSql<Timestamptz, Pg> for Time {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        DateTime::<Utc>::from_sql(value).map(Self::from)
    }
}

impl ToSql<Timestamptz, Pg> for Time {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        self.moment().ok_or(OUT_OF_RANGE)?;
        let micros = self.micros() - POSTGRES_EPOCH * 1_000_000;
        ToSql::<BigInt, Pg>::to_sql(&micros, &mut out.reborrow())
    }
}
