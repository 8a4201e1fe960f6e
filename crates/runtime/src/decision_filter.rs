//! The filter of the lists of decisions, as queries that an index answers.
//!
//! Each query compares columns with one value. Postgres then reads an index of migration 48 in the order of ids and
//! stops when the page is full; of several values it would read all rows first, and sort them.

use std::time::{Duration, Instant};

use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::ListDecisionsRequest, schema::decisions, validate::Violation, wire::Time,
};
use diesel::{pg::Pg, prelude::*, sql_types::Text};

use authority_api::error::ApiError;
use authority_core::store::{self, Db, RunQueryDsl};
use authority_decision::{Decision, Reason};

/// How long a query of a list may take: it must not delay other work.
pub(super) const LIMIT: Duration = Duration::from_secs(3);
/// For the transaction of a list. A plan for unknown values cannot know which partial index serves them; what is read
/// is too little for compiling the query to be worth it.
const SETTINGS: &str = "SELECT set_config('statement_timeout', $1, true), \
     set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)";

/// Limits the transaction's queries as those of lists.
pub(super) async fn limit(db: &mut Db) -> QueryResult<()> {
    let limit = LIMIT.as_millis().to_string();
    diesel::sql_query(SETTINGS).bind::<Text, _>(limit).execute(db).await.map(drop)
}

type FoundBy = decisions::BoxedQuery<'static, Pg>;

/// Which decisions a list has.
#[derive(Clone, Debug)]
pub struct DecisionFilter {
    by: ListDecisionsRequest,
    /// The caller's own tenant; the owner of the installation has none.
    within: Option<TenantId>,
}

impl DecisionFilter {
    /// # Errors
    /// 400: it is limited neither to a tenant nor to a span of time.
    pub fn new(by: ListDecisionsRequest, within: Option<TenantId>) -> Result<Self, ApiError> {
        let filter = Self { by, within };
        let is_within = filter.has_tenant() || filter.by.since.is_some();
        if filter.narrows() && !is_within {
            // Otherwise the query might read every decision.
            return Err(ApiError::field("tenant_id", "is required with this filter, or `since`"));
        }
        Ok(filter)
    }

    fn has_tenant(&self) -> bool {
        self.within.is_some() || self.by.tenant_id.is_some()
    }

    /// Whether decisions are passed over.
    fn narrows(&self) -> bool {
        let by = &self.by;
        [&by.subject, &by.action, &by.decision, &by.reason_code].iter().any(|one| one.is_some())
    }

    /// Queries whose rows have the newest `most` decisions, before an id if one is given. There is no query if there
    /// can be no decision.
    pub fn newest(&self, before: Option<&str>, most: i64) -> Vec<FoundBy> {
        let page = |query: FoundBy| {
            let query = query.order(decisions::id.desc()).limit(most);
            match before {
                Some(before) => query.filter(decisions::id.lt(before.to_owned())),
                None => query,
            }
        };
        self.queries().into_iter().map(page).collect()
    }

    /// The same for the oldest decisions between two ids.
    pub(super) fn oldest(&self, after: &str, end: &str, most: i64) -> Vec<FoundBy> {
        let page = |query: FoundBy| {
            let query = query.filter(decisions::id.gt(after.to_owned()));
            let query = query.filter(decisions::id.lt(end.to_owned()));
            query.order(decisions::id.asc()).limit(most)
        };
        self.queries().into_iter().map(page).collect()
    }

    /// Queries that together find the decisions, in no order.
    fn queries(&self) -> Vec<FoundBy> {
        match self.words() {
            None => vec![self.query()],
            Some(words) => {
                let of_word = |word| self.query().filter(decisions::decision.eq(word));
                words.into_iter().map(of_word).collect()
            }
        }
    }

    /// The stored words of the decisions; `None` for any.
    fn words(&self) -> Option<Vec<&'static str>> {
        let asked = self.by.decision.as_deref().and_then(Decision::from_word).map(found_by);
        if self.by.reason_code.as_deref() != Some(Reason::PermissionGranted.word()) {
            return asked;
        }
        // The index of reasons leaves this one out.
        let mut words = found_by(Reason::PermissionGranted.decision());
        words.retain(|word| asked.as_ref().is_none_or(|asked| asked.contains(word)));
        Some(words)
    }

    fn query(&self) -> FoundBy {
        let by = &self.by;
        let mut query = decisions::table.into_boxed();
        let own = self.within.as_ref().map(TenantId::as_str);
        for tenant in [by.tenant_id.as_deref(), own].into_iter().flatten() {
            query = query.filter(decisions::tenant_id.eq(tenant.to_owned()));
        }
        if let Some(subject) = by.subject.clone() {
            query = query.filter(decisions::subject.eq(subject));
        }
        if let Some(action) = by.action.clone() {
            query = query.filter(decisions::action.eq(action));
        }
        if let Some(reason) = by.reason_code.clone() {
            query = query.filter(decisions::reason_code.eq(reason));
        }
        if let Some(since) = by.since {
            query = query.filter(decisions::id.ge(first_id(since)));
        }
        if let Some(until) = by.until {
            query = query.filter(decisions::id.lt(first_id(until)));
        }
        query
    }

    /// The error of reading a page that began then. A list that does not end will not end the next time either: that
    /// is a 400 which says what to change.
    pub(super) fn fault(&self, error: store::Error, begun: Instant) -> ApiError {
        let timed_out = matches!(error, store::Error::Timeout(_));
        if !(timed_out && begun.elapsed() >= LIMIT && self.narrows()) {
            return error.into();
        }
        tracing::warn!(%error, "a list of decisions did not end");
        let seconds = LIMIT.as_secs();
        let (field, remedy) = if self.has_tenant() {
            ("since", "narrow the time by `since` and `until`")
        } else {
            ("tenant_id", "add `tenant_id`, or narrow the time by `since` and `until`")
        };
        let problem = format!("the list did not end within {seconds} s: {remedy}");
        let violation = Violation { field: field.to_owned(), problem: problem.clone() };
        ApiError { message: problem, ..ApiError::invalid(vec![violation]) }
    }
}

/// The stored words of a decision: a permission with constraints is also an `allow`,
/// as the evaluate endpoint returns it.
pub(super) fn found_by(asked: Decision) -> Vec<&'static str> {
    let words = Decision::ALL.iter().filter(|word| asked == **word || asked == word.folded());
    words.map(|word| word.word()).collect()
}

/// The smallest id of a time.
pub(super) fn first_id(at: Time) -> String {
    DecisionId::first(u64::try_from(at.micros()).unwrap_or_default() / 1000)
}
