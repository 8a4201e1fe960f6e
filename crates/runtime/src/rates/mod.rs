//! Limits on the decisions of a tenant and of an API key, on all nodes together.
//!
//! The records of the tenant and the key have `decisions_per_second`. A node takes portions of a
//! limit from Postgres ([`portion`]) and keeps track of the unused part of each portion
//! ([`lease`]). Only one decision per portion waits for the database. When the limit is exceeded,
//! only the first refusal waits for the database. Without a limit, only the record is looked up.

mod lease;
mod portion;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind},
    rate_limit::{AppliedLimits, RateLimit, Remaining},
};
use authority_graph::{self as graph, Graph};
use authority_ids::{ApiKeyId, TenantId};
use authority_model::schema::decision_rates;
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{dsl::sql, prelude::*, sql_types::Timestamptz};
use metrics::Counter;
use parking_lot::{Mutex, RwLock};

use lease::{Known, Lease};
use portion::{Portion, portion};

/// The names of the limits in the records of tenants and of API keys.
pub const PER_TENANT: &str = "decisions_per_tenant";
pub const PER_KEY: &str = "decisions_per_api_key";

/// A tenant or an API key with limited decisions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Limited {
    tenant_id: TenantId,
    key_id: Option<ApiKeyId>,
}

/// The limits as this node uses them. Cheap to clone.
#[derive(Clone)]
pub struct DecisionRates {
    graph: Arc<Graph>,
    store: Store,
    /// The rates of tenants and keys that have or had a limit.
    rates: Arc<RwLock<HashMap<Limited, Arc<Rate>>>>,
}

#[derive(Default)]
struct Rate {
    lease: Mutex<Lease>,
    /// Locked while a portion is taken. One call takes the portion for all waiting calls.
    taking: tokio::sync::Mutex<()>,
}

impl DecisionRates {
    pub fn new(graph: Arc<Graph>, store: Store) -> Self {
        // Registers the metric with the value 0. Its first increase is then visible.
        above().increment(0);
        Self { graph, store, rates: Arc::default() }
    }

    /// Counts a call of this many decisions, and returns the limits that apply to it.
    ///
    /// # Errors
    /// `rate_limited`, with Retry-After: a limit is reached. `unavailable`: a limit can't be read.
    pub(super) async fn take(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        decisions: usize,
    ) -> Result<AppliedLimits, ApiError> {
        let decisions = u32::try_from(decisions).unwrap_or(u32::MAX);
        // A call refused by its key's own limit does not count for its tenant.
        let of_key = match key(caller) {
            Some(limited) => self.take_of(&limited, decisions).await?,
            None => None,
        };
        let tenant = Limited { tenant_id: tenant_id.clone(), key_id: None };
        Ok(AppliedLimits::new(of_key, self.take_of(&tenant, decisions).await?))
    }

    /// Counts decisions for the limit in a record. `None` if the record has no limit.
    async fn take_of(
        &self,
        limited: &Limited,
        decisions: u32,
    ) -> Result<Option<Remaining>, ApiError> {
        let Some(per_second) = self.limit(limited)? else { return Ok(None) };
        self.take_one(limited, per_second, decisions).await.map(Some)
    }

    /// Returns the refusal of a call for one decision, if this node is already refusing such calls.
    /// The call's body then need not be read.
    pub fn refusal(&self, caller: &Caller) -> Option<ApiError> {
        let rates = self.rates.read();
        if rates.is_empty() {
            return None;
        }
        let tenant_id = caller.tenant()?.clone();
        let both = [key(caller), Some(Limited { tenant_id, key_id: None })];
        both.into_iter().flatten().find_map(|limited| {
            let rate = rates.get(&limited)?;
            let per_second = self.limit(&limited).ok()??;
            let mut lease = rate.lease.lock();
            lease.keep_only_of(per_second);
            let wait = lease.refused(1, Instant::now())?;
            Some(refused(&limited, per_second, wait))
        })
    }

    /// Returns the limit in the record. `None` if the record has no limit.
    fn limit(&self, limited: &Limited) -> Result<Option<u32>, graph::Error> {
        if let Some(key_id) = &limited.key_id {
            let key = self.graph.api_key(key_id.public_id());
            return Ok(key.and_then(|key| key.decisions_per_second));
        }
        let handle = self.graph.tenant(&limited.tenant_id)?;
        Ok(handle.and_then(|handle| handle.read().profile.decisions_per_second))
    }

    async fn take_one(
        &self,
        limited: &Limited,
        per_second: u32,
        decisions: u32,
    ) -> Result<Remaining, ApiError> {
        let found = self.rates.read().get(limited).cloned();
        let rate = found
            .unwrap_or_else(|| Arc::clone(self.rates.write().entry(limited.clone()).or_default()));
        let take = || {
            let mut lease = rate.lease.lock();
            lease.keep_only_of(per_second);
            let now = Instant::now();
            match lease.take(decisions, now) {
                Known::Taken => Some(Ok(remaining(limited, &lease, now))),
                Known::Refused(wait) => Some(Err(refused(limited, per_second, wait))),
                Known::Empty => None,
            }
        };
        if let Some(outcome) = take() {
            return outcome;
        }
        let _taking = rate.taking.lock().await;
        // Another call may have taken a portion in the meantime.
        if let Some(outcome) = take() {
            return outcome;
        }
        let (portion, whole_in) = Box::pin(self.portion(limited, per_second, decisions)).await?;
        let now = Instant::now();
        let mut lease = rate.lease.lock();
        lease.keep_only_of(per_second);
        match portion {
            Portion::Granted(granted) => {
                lease.add(granted, now + whole_in.to_std().unwrap_or_default());
            }
            Portion::Refused(wait) => {
                let wait = wait.to_std().unwrap_or_default();
                lease.refuse(decisions, now + wait);
                return Err(refused(limited, per_second, wait));
            }
        }
        match lease.take(decisions, now) {
            Known::Taken => Ok(remaining(limited, &lease, now)),
            Known::Refused(_) | Known::Empty => Err(ApiError::plain(ErrorCode::Internal)),
        }
    }

    /// Takes a portion. Also returns the time until the whole limit is available again.
    async fn portion(
        &self,
        limited: &Limited,
        per_second: u32,
        decisions: u32,
    ) -> Result<(Portion, TimeDelta), store::Error> {
        let limited = limited.clone();
        let take = async move |db: &mut Db| -> Result<(Portion, TimeDelta), store::Error> {
            Ok(take_portion(db, &limited, per_second, decisions).await?)
        };
        self.store.write_tx(&Scope::service(), take).await
    }
}

fn key(caller: &Caller) -> Option<Limited> {
    match &caller.kind {
        CallerKind::Key { tenant_id, key_id, .. } => {
            Some(Limited { tenant_id: tenant_id.clone(), key_id: Some(key_id.clone()) })
        }
        _ => None,
    }
}

fn above() -> Counter {
    metrics::counter!("authority_decisions_refused_total", "reason" => "rate_limit")
}

fn rate_limit(limited: &Limited, per_second: u32) -> RateLimit {
    let name = if limited.key_id.is_some() { PER_KEY } else { PER_TENANT };
    RateLimit { name, limit: per_second, window_seconds: 1 }
}

fn remaining(limited: &Limited, lease: &Lease, now: Instant) -> Remaining {
    let (calls, wait) = lease.remaining(now);
    let limit = rate_limit(limited, lease.per_second());
    Remaining::Calls { limit, calls, seconds: seconds(wait) }
}

/// Returns whole seconds, rounded up: at least one.
fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}

fn refused(limited: &Limited, per_second: u32, wait: Duration) -> ApiError {
    above().increment(1);
    let whose = if limited.key_id.is_some() { "API key" } else { "tenant" };
    let text = format!(
        "this {whose} has exceeded its limit of {per_second} decisions a second (`decisions_per_second` \
         of its record)"
    );
    rate_limit(limited, per_second).refusal(text, seconds(wait))
}

/// Takes a portion by the database's clock, which is the same for all nodes.
async fn take_portion(
    db: &mut Db,
    limited: &Limited,
    per_second: u32,
    decisions: u32,
) -> QueryResult<(Portion, TimeDelta)> {
    use decision_rates::{key_id, table, tenant_id, unused_at};
    let now = || sql::<Timestamptz>("clock_timestamp()");
    // The ID of an API key is never the empty text.
    let own_key = limited.key_id.as_ref().map_or("", ApiKeyId::as_str);
    let row = (tenant_id.eq(limited.tenant_id.as_str()), key_id.eq(own_key), unused_at.eq(now()));
    diesel::insert_into(table).values(row).on_conflict_do_nothing().execute(db).await?;
    let own = || table.filter(tenant_id.eq(limited.tenant_id.as_str())).filter(key_id.eq(own_key));
    let unused: DateTime<Utc> = own().for_update().select(unused_at).get_result(db).await?;
    let present: DateTime<Utc> = diesel::select(now()).get_result(db).await?;
    let (portion, unused) = portion(unused, present, per_second, decisions);
    if matches!(portion, Portion::Granted(_)) {
        diesel::update(own()).set(unused_at.eq(unused)).execute(db).await?;
    }
    Ok((portion, unused - present))
}
