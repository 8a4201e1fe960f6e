//! The queries of usage: the counts of days or hours, as a list or ranked.

use std::time::Instant;

use authority_api::error::ApiError;
use authority_ids::TenantId;
use authority_model::{
    proto::runtime::{ListUsageRequest, UsageCount, UsageRank},
    wire::Time,
};
use authority_store::{self as store, Db, RunQueryDsl};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{BigInt, Nullable, Text, Timestamptz},
};

use crate::decision_filter::{LIMIT, known_reason, limit};

/// The columns with counts, which have the words of the filter `decision`.
const COUNTS: [&str; 3] = ["allow", "require_approval", "deny"];
/// The conditions of the filter. The query is planned with its values: the planner removes absent
/// filters, and the other filters use the index.
const MATCHING: &str = "WHERE ($1 IS NULL OR tenant_id = $1) \
     AND ($2 IS NULL OR starts_at > $2) AND ($3 IS NULL OR starts_at < $3) \
     AND ($4 IS NULL OR subject = $4) AND ($5 IS NULL OR action = $5) \
     AND ($6 IS NULL OR reason_code = $6)";

/// An item of the list. A field that is not listed separately is empty.
#[derive(QueryableByName)]
struct UsageRow {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Timestamptz)]
    starts_at: Time,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = Text)]
    reason_code: String,
    #[diesel(sql_type = BigInt)]
    allow: i64,
    #[diesel(sql_type = BigInt)]
    require_approval: i64,
    #[diesel(sql_type = BigInt)]
    deny: i64,
}

#[derive(QueryableByName)]
struct RankRow {
    #[diesel(sql_type = Text)]
    value: String,
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// The position of an item in the list.
pub(super) struct PagePosition {
    starts_at: Time,
    /// Tenant, subject, action and reason.
    texts: [String; 4],
}

impl PagePosition {
    pub(super) fn of(item: &UsageCount) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            starts_at: item.starts_at.unwrap_or_default(),
            texts: [
                text(&item.tenant_id),
                text(&item.subject),
                text(&item.action),
                text(&item.reason_code),
            ],
        }
    }

    /// Writes the position as lines. Ids, actions and reasons have no line breaks.
    pub(super) fn write(&self) -> String {
        format!("{}\n{}", self.starts_at.micros(), self.texts.join("\n"))
    }

    pub(super) fn read(place: &[u8]) -> Option<Self> {
        let (micros, texts) = std::str::from_utf8(place).ok()?.split_once('\n')?;
        let texts: Vec<String> = texts.split('\n').map(str::to_owned).collect();
        let texts = texts.try_into().ok()?;
        Some(Self { starts_at: Time::from_micros(micros.parse().ok()?), texts })
    }
}

/// Selects counts.
pub(super) struct UsageFilter(ListUsageRequest);

impl UsageFilter {
    /// Creates a filter. `within` is the caller's own tenant.
    ///
    /// # Errors
    /// 400: the reason code is unknown.
    pub(super) fn new(by: ListUsageRequest, within: Option<TenantId>) -> Result<Self, ApiError> {
        known_reason(by.reason_code.as_deref())?;
        let tenant_id = within.map(String::from).or(by.tenant_id);
        Ok(Self(ListUsageRequest { tenant_id, ..by }))
    }

    fn is_hourly(&self) -> bool {
        self.0.period.as_deref() == Some("hour")
    }

    fn table(&self) -> &'static str {
        if self.is_hourly() { "usage_hours" } else { "usage_days" }
    }

    /// The time after which a day or hour must begin, to end after `since`.
    fn begins_after(&self) -> Option<DateTime<Utc>> {
        let length = if self.is_hourly() { TimeDelta::hours(1) } else { TimeDelta::days(1) };
        Some(self.0.since.and_then(Time::moment)? - length)
    }

    /// The counts that the filter selects.
    fn counted(&self) -> impl Iterator<Item = &'static str> {
        let asked = self.0.decision.as_deref();
        COUNTS.into_iter().filter(move |count| asked.is_none_or(|asked| asked == *count))
    }

    fn total(&self) -> String {
        format!("sum({})::bigint", self.counted().collect::<Vec<_>>().join(" + "))
    }

    fn is_listed(&self, field: &str) -> bool {
        self.0.group_by.iter().any(|listed| listed == field)
    }

    /// Returns the list's query. The position of a page is compared with the same columns by which
    /// the list is ordered.
    fn list_sql(&self) -> String {
        let fields = ["subject", "action", "reason_code"];
        let [subject, action, reason] =
            fields.map(|field| if self.is_listed(field) { field } else { "''::text" });
        let tenant = if self.0.all_tenants { "''::text" } else { "tenant_id" };
        let sums = COUNTS.map(|count| {
            let sum = self.counted().find(|counted| *counted == count);
            let sum = sum.map_or("0".to_owned(), |count| format!("sum({count})"));
            format!("{sum}::bigint AS {count}")
        });
        format!(
            "SELECT {tenant} AS tenant_id, starts_at, {subject} AS subject, {action} AS action, \
                 {reason} AS reason_code, {sums} \
             FROM {table} {MATCHING} \
                 AND ($7 IS NULL OR starts_at < $7 OR starts_at = $7 \
                      AND ({tenant}, {subject}, {action}, {reason}) > ($8, $9, $10, $11)) \
             GROUP BY 1, 2, 3, 4, 5 HAVING {total} > 0 \
             ORDER BY 2 DESC, 1, 3, 4, 5 LIMIT $12",
            sums = sums.join(", "),
            table = self.table(),
            total = self.total(),
        )
    }

    /// Reads the items after a position, one more than the page's size if there are more.
    pub(super) async fn list(
        &self,
        db: &mut Db,
        after: Option<PagePosition>,
        most: i64,
    ) -> QueryResult<Vec<UsageCount>> {
        begin(db).await?;
        let starts_at = after.as_ref().map(|place| place.starts_at);
        let [tenant_id, subject, action, reason_code] =
            after.map(|place| place.texts).unwrap_or_default();
        let rows: Vec<UsageRow> = diesel::sql_query(self.list_sql())
            .bind::<Nullable<Text>, _>(self.0.tenant_id.as_deref())
            .bind::<Nullable<Timestamptz>, _>(self.begins_after())
            .bind::<Nullable<Timestamptz>, _>(self.0.until)
            .bind::<Nullable<Text>, _>(self.0.subject.as_deref())
            .bind::<Nullable<Text>, _>(self.0.action.as_deref())
            .bind::<Nullable<Text>, _>(self.0.reason_code.as_deref())
            .bind::<Nullable<Timestamptz>, _>(starts_at)
            .bind::<Text, _>(tenant_id)
            .bind::<Text, _>(subject)
            .bind::<Text, _>(action)
            .bind::<Text, _>(reason_code)
            .bind::<BigInt, _>(most)
            .load(db)
            .await?;
        Ok(rows.into_iter().map(|row| self.item(row)).collect())
    }

    fn item(&self, row: UsageRow) -> UsageCount {
        UsageCount {
            tenant_id: (!self.0.all_tenants).then_some(row.tenant_id),
            starts_at: Some(row.starts_at),
            subject: self.is_listed("subject").then_some(row.subject),
            action: self.is_listed("action").then_some(row.action),
            reason_code: self.is_listed("reason_code").then_some(row.reason_code),
            allow: row.allow,
            require_approval: row.require_approval,
            deny: row.deny,
        }
    }

    /// Reads the values of a field with the most decisions.
    pub(super) async fn rank(
        &self,
        db: &mut Db,
        field: Option<&str>,
        most: i64,
    ) -> QueryResult<Vec<UsageRank>> {
        begin(db).await?;
        let field = match field {
            Some("action") => "action",
            Some("reason_code") => "reason_code",
            _ => "subject",
        };
        let sql = format!(
            "SELECT {field} AS value, {total} AS count FROM {table} {MATCHING} \
             GROUP BY 1 HAVING {total} > 0 ORDER BY 2 DESC, 1 LIMIT $7",
            total = self.total(),
            table = self.table(),
        );
        let rows: Vec<RankRow> = diesel::sql_query(sql)
            .bind::<Nullable<Text>, _>(self.0.tenant_id.as_deref())
            .bind::<Nullable<Timestamptz>, _>(self.begins_after())
            .bind::<Nullable<Timestamptz>, _>(self.0.until)
            .bind::<Nullable<Text>, _>(self.0.subject.as_deref())
            .bind::<Nullable<Text>, _>(self.0.action.as_deref())
            .bind::<Nullable<Text>, _>(self.0.reason_code.as_deref())
            .bind::<BigInt, _>(most)
            .load(db)
            .await?;
        Ok(rows.into_iter().map(|RankRow { value, count }| UsageRank { value, count }).collect())
    }
}

/// Reads all of the transaction in one snapshot, with the limits of lists. Counts and the time up
/// to which they are counted then agree.
async fn begin(db: &mut Db) -> QueryResult<()> {
    diesel::sql_query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(db).await?;
    limit(db).await
}

/// Converts the error of a query that began at `begun`. The same query would time out again. A
/// timeout is therefore a 400 with advice on narrowing the filter.
pub(super) fn fault(error: store::Error, begun: Instant) -> ApiError {
    if !(matches!(error, store::Error::Timeout(_)) && begun.elapsed() >= LIMIT) {
        return error.into();
    }
    tracing::warn!(%error, "stopped a query of usage at its time limit");
    let seconds = LIMIT.as_secs();
    let remedy = "narrow the time by `since` and `until`";
    ApiError::field("since", format!("counting took longer than {seconds} s: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(by: ListUsageRequest) -> UsageFilter {
        UsageFilter::new(by, None).unwrap()
    }

    #[test]
    fn a_position_reads_back() {
        let item = UsageCount {
            tenant_id: Some("svc:tenant:acme".to_owned()),
            starts_at: Some(Time::from_micros(1_764_000_000_000_000)),
            action: Some("payment.execute".to_owned()),
            ..UsageCount::default()
        };
        let place = PagePosition::read(PagePosition::of(&item).write().as_bytes()).unwrap();
        assert_eq!(Some(place.starts_at), item.starts_at);
        assert_eq!(place.texts, ["svc:tenant:acme", "", "payment.execute", ""]);
        for wrong in ["", "1", "1\na\nb\nc", "x\na\nb\nc\nd", "1\na\nb\nc\nd\ne"] {
            assert!(PagePosition::read(wrong.as_bytes()).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_query_counts_only_the_decision_that_it_is_filtered_by() {
        let all = filter(ListUsageRequest::default());
        assert_eq!(all.total(), "sum(allow + require_approval + deny)::bigint");
        assert!(all.list_sql().contains("FROM usage_days "), "{}", all.list_sql());
        let decision = Some("deny".to_owned());
        let period = Some("hour".to_owned());
        let denied = filter(ListUsageRequest { decision, period, ..<_>::default() });
        assert_eq!(denied.total(), "sum(deny)::bigint");
        let sql = denied.list_sql();
        assert!(
            sql.contains("0::bigint AS allow, 0::bigint AS require_approval, sum(deny)"),
            "{sql}"
        );
        assert!(sql.contains("FROM usage_hours "), "{sql}");
    }

    #[test]
    fn a_day_counts_if_it_ends_after_since() {
        let since = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        for (period, at, after) in [
            (None, "2026-11-24T00:00:00Z", "2026-11-23T00:00:00Z"),
            (Some("day"), "2026-11-24T10:00:00Z", "2026-11-23T10:00:00Z"),
            (Some("hour"), "2026-11-24T10:00:00Z", "2026-11-24T09:00:00Z"),
        ] {
            let by = ListUsageRequest {
                since: Some(since(at).into()),
                period: period.map(str::to_owned),
                ..<_>::default()
            };
            assert_eq!(filter(by).begins_after(), Some(since(after)), "{period:?} {at}");
        }
    }
}
