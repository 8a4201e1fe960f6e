//! The filter of the lists of decisions, as queries that an index can answer.
//!
//! Each query compares a column with only one value. Postgres then reads an index in the order of
//! IDs (the order of sort keys is the same), and stops when the page is full. With several values
//! for a column, Postgres would first read all rows and sort them.

use std::time::{Duration, Instant};

use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::ListDecisionsRequest,
    schema::decisions,
    validate::{Violation, suggestion},
    wire::Time,
};
use diesel::{
    pg::Pg,
    prelude::*,
    sql_types::{Bool, Text},
};

use authority_api::error::ApiError;
use authority_decision::{Decision, Reason};
use authority_store::{self as store, Db, RunQueryDsl};

/// The longest time for a query of a list, which must not delay other work.
pub(super) const LIMIT: Duration = Duration::from_secs(3);
/// The settings for the transaction of a list. A generic plan can't use the partial index that fits
/// the values. JIT compilation is off, because the queries read little data.
const SETTINGS: &str = "SELECT set_config('statement_timeout', $1, true), \
     set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)";

/// Applies the limits of list queries to the transaction.
pub(super) async fn limit(db: &mut Db) -> QueryResult<()> {
    let limit = LIMIT.as_millis().to_string();
    diesel::sql_query(SETTINGS).bind::<Text, _>(limit).execute(db).await.map(drop)
}

diesel::define_sql_function! {
    /// The function behind the `…_key` columns.
    fn hashtext(text: Text) -> Integer;
}
diesel::define_sql_function! {
    /// Whether a row has the value itself and not only its hash. Postgres would treat a plain
    /// comparison as a second, independent condition. It would then expect far too few rows and
    /// sort all of them.
    #[sql_name = "coalesce"]
    fn is_so(equal: Bool, otherwise: Bool) -> Bool;
}

type FoundBy = decisions::BoxedQuery<'static, Pg>;

/// Selects the decisions of a list.
#[derive(Clone, Debug)]
pub struct DecisionFilter {
    by: ListDecisionsRequest,
    /// The caller's own tenant. The owner of the installation has none.
    within: Option<TenantId>,
}

impl DecisionFilter {
    /// Creates a filter.
    ///
    /// # Errors
    /// 400: the reason code is unknown, or the filter has neither a tenant nor a span of time.
    pub fn new(by: ListDecisionsRequest, within: Option<TenantId>) -> Result<Self, ApiError> {
        let filter = Self { by, within };
        known_reason(filter.by.reason_code.as_deref())?;
        let is_within = filter.has_tenant() || filter.by.since.is_some();
        if filter.narrows() && !is_within {
            // Otherwise the query might read every decision.
            return Err(ApiError::field("tenant_id", "is required with this filter, or `since`"));
        }
        Ok(filter)
    }

    /// The tenant that the decisions belong to, if the filter has one.
    pub(super) fn tenant(&self) -> Option<&str> {
        self.within.as_ref().map(TenantId::as_str).or(self.by.tenant_id.as_deref())
    }

    /// The filter's other conditions.
    pub(super) fn conditions(&self) -> &ListDecisionsRequest {
        &self.by
    }

    fn has_tenant(&self) -> bool {
        self.within.is_some() || self.by.tenant_id.is_some()
    }

    /// Whether the filter skips decisions.
    fn narrows(&self) -> bool {
        let by = &self.by;
        [&by.subject, &by.action, &by.decision, &by.reason_code].iter().any(|one| one.is_some())
    }

    /// Returns queries that together find the newest `most` decisions. With `before`, these are
    /// older than the decision with this ID. Returns no query if no decision can match.
    pub fn newest(&self, before: Option<&str>, most: i64) -> Vec<FoundBy> {
        let page = |word| {
            let by_sort_key = self.has_sort_key(word);
            let mut query = self.query(word).limit(most);
            if let Some(before) = before {
                query = query.filter(decisions::id.lt(before.to_owned()));
                if by_sort_key {
                    query = query.filter(decisions::sort_key.le(sort_key(before)));
                }
            }
            if by_sort_key {
                query.order((decisions::sort_key.desc(), decisions::id.desc()))
            } else {
                query.order(decisions::id.desc())
            }
        };
        self.words().into_iter().map(page).collect()
    }

    /// Returns queries for the oldest decisions between two IDs.
    pub(super) fn oldest(&self, after: &str, end: &str, most: i64) -> Vec<FoundBy> {
        let page = |word| {
            let query = self.query(word).limit(most);
            let query = query.filter(decisions::id.gt(after.to_owned()));
            let query = query.filter(decisions::id.lt(end.to_owned()));
            if self.has_sort_key(word) {
                let query = query.filter(decisions::sort_key.ge(sort_key(after)));
                let query = query.filter(decisions::sort_key.le(sort_key(end)));
                query.order((decisions::sort_key.asc(), decisions::id.asc()))
            } else {
                query.order(decisions::id.asc())
            }
        };
        self.words().into_iter().map(page).collect()
    }

    /// Whether the index for this query has sort keys. Only the indexes by subject and by outcomes
    /// other than `allow` have them.
    fn has_sort_key(&self, word: Option<&str>) -> bool {
        let is_not_allowed = word.is_some_and(|word| !found_by(Decision::Allow).contains(&word));
        self.has_tenant() && (self.by.subject.is_some() || is_not_allowed)
    }

    /// Returns the stored words to query for. The queries for all returned words together find all
    /// decisions. `None` stands for any word.
    fn words(&self) -> Vec<Option<&'static str>> {
        let asked = self.by.decision.as_deref().and_then(Decision::from_word).map(found_by);
        let allowed = found_by(Decision::Allow);
        let Some(reason) = self.by.reason_code.as_deref() else {
            return asked.map_or(vec![None], |words| words.into_iter().map(Some).collect());
        };
        // Only permissions have the reason `permission_granted`. Each index contains either
        // permissions or other decisions.
        let is_allowed = reason == Reason::PermissionGranted.word();
        let all = Decision::ALL.iter().map(|word| word.word());
        let words = all.filter(|word| allowed.contains(word) == is_allowed);
        words
            .filter(|word| asked.as_ref().is_none_or(|asked| asked.contains(word)))
            .map(Some)
            .collect()
    }

    fn query(&self, word: Option<&'static str>) -> FoundBy {
        let by = &self.by;
        let mut query = decisions::table.into_boxed();
        let own = self.within.as_ref().map(TenantId::as_str);
        for tenant in [by.tenant_id.as_deref(), own].into_iter().flatten() {
            query = query.filter(decisions::tenant_id.eq(tenant.to_owned()));
        }
        if let Some(subject) = by.subject.clone() {
            query = query.filter(decisions::subject_key.eq(hashtext(subject.clone())));
            query = query.filter(is_so(decisions::subject.eq(subject), false));
        }
        if let Some(action) = by.action.clone() {
            query = query.filter(decisions::action_key.eq(hashtext(action.clone())));
            query = query.filter(is_so(decisions::action.eq(action), false));
        }
        if let Some(word) = word {
            query = query.filter(decisions::decision_key.eq(hashtext(word)));
            query = query.filter(is_so(decisions::decision.eq(word), false));
        }
        if let Some(reason) = by.reason_code.clone() {
            query = query.filter(decisions::reason_key.eq(hashtext(reason.clone())));
            query = query.filter(is_so(decisions::reason_code.eq(reason), false));
        }
        let has_sort_key = self.has_sort_key(word);
        if let Some(first) = by.since.map(first_id) {
            if has_sort_key {
                query = query.filter(decisions::sort_key.ge(sort_key(&first)));
            }
            query = query.filter(decisions::id.ge(first));
        }
        if let Some(end) = by.until.map(first_id) {
            if has_sort_key {
                query = query.filter(decisions::sort_key.le(sort_key(&end)));
            }
            query = query.filter(decisions::id.lt(end));
        }
        query
    }

    /// Converts the error of reading a page that began at `begun`. The same list would time out
    /// again. A timeout is therefore a 400 with advice on narrowing the filter.
    pub(super) fn fault(&self, error: store::Error, begun: Instant) -> ApiError {
        let timed_out = matches!(error, store::Error::Timeout(_));
        if !(timed_out && begun.elapsed() >= LIMIT && self.narrows()) {
            return error.into();
        }
        tracing::warn!(%error, "stopped a list of decisions at its time limit");
        let seconds = LIMIT.as_secs();
        let (field, remedy) = if self.has_tenant() {
            ("since", "narrow the time by `since` and `until`")
        } else {
            ("tenant_id", "add `tenant_id`, or narrow the time by `since` and `until`")
        };
        let problem = format!("the list took longer than {seconds} s: {remedy}");
        let violation = Violation::new(field, problem.clone());
        ApiError { message: problem, ..ApiError::invalid(vec![violation]) }
    }
}

/// Checks that a filter's reason code exists.
pub(super) fn known_reason(code: Option<&str>) -> Result<(), ApiError> {
    let Some(code) = code.filter(|code| Reason::from_word(code).is_none()) else { return Ok(()) };
    let near = suggestion(code, Reason::ALL.iter().map(Reason::word));
    Err(ApiError::field("reason_code", format!("`{code}` is not a reason code{near}")))
}

/// Returns the stored words that match a requested decision. A permission with constraints also
/// matches `allow`, because the evaluate endpoint returns it as `allow`.
pub(super) fn found_by(asked: Decision) -> Vec<&'static str> {
    let words = Decision::ALL.iter().filter(|word| asked == **word || asked == word.folded());
    words.map(|word| word.word()).collect()
}

/// Returns the smallest ID of a time.
pub(super) fn first_id(at: Time) -> String {
    DecisionId::first(u64::try_from(at.micros()).unwrap_or_default() / 1000)
}

/// Returns the sort key of an ID or of an ID prefix. It is the first 16 hex digits, padded with
/// zeros.
fn sort_key(id: &str) -> i64 {
    let digits = id.strip_prefix(DecisionId::PREFIX).unwrap_or_default().bytes();
    let digits = digits.map(|digit| char::from(digit).to_digit(16).unwrap_or_default());
    digits.chain(std::iter::repeat(0)).take(16).fold(0, |key, digit| key << 4 | i64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_have_the_order_of_ids() {
        let id = |millis, byte| DecisionId::new(millis, &[byte; 32]).to_string();
        assert_eq!(sort_key(&id(0x0198_7654_3210, 0xab)), 0x0198_7654_3210_abab);
        assert_eq!(sort_key(&DecisionId::first(0x0198_7654_3210)), 0x0198_7654_3210_0000);
        // An export begins after the empty ID.
        assert_eq!(sort_key(""), 0);
    }
}
