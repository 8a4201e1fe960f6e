//! Server streams: the source is polled for each message.
//!
//! A stream needs no task and no queue, and ends with its connection. On each node, a tenant has a
//! limited number of places for streams, and each caller of the tenant has a smaller number. One
//! credential therefore can't take all of the tenant's places.

use std::{collections::HashMap, sync::Arc};

use authority_ids::TenantId;
use authority_model::service::Messages;
use futures_util::stream;
use parking_lot::Mutex;

use super::{
    error::ApiError,
    rate_limit::{AppliedLimits, OpenLimit, Remaining},
};

/// The seconds after which a refused caller may try again.
const RETRY_AFTER: u64 = 10;

/// The source of a stream's messages.
pub trait MessageSource: Send + 'static {
    type Message: Send;

    /// The next message; `None` at the end. An error is the last item.
    fn next(&mut self) -> impl Future<Output = Option<Result<Self::Message, ApiError>>> + Send;
}

/// The stream of a source's messages.
pub fn stream_of<T: MessageSource>(source: T) -> Messages<T::Message> {
    let next = |source: Option<T>| async {
        let mut source = source?;
        match source.next().await? {
            Ok(message) => Some((Ok(message), Some(source))),
            Err(refusal) => Some((Err(refusal.into()), None)),
        }
    };
    Box::pin(stream::unfold(Some(source), next))
}

/// The places for a category of streams on this node. Cheap to clone.
#[derive(Clone)]
pub struct Places(Arc<Inner>);

struct Inner {
    /// The category in the plural, for messages: `streams of events`.
    sort: &'static str,
    tenant: OpenLimit,
    caller: OpenLimit,
    taken: Mutex<HashMap<TenantId, Taken>>,
}

/// The places that a tenant's callers have taken.
#[derive(Default)]
struct Taken {
    all: usize,
    by_caller: HashMap<String, usize>,
}

/// One stream's place, released when dropped.
pub struct StreamPlace {
    places: Places,
    tenant_id: TenantId,
    caller: String,
    limits: AppliedLimits,
}

impl Places {
    /// Creates places: at most `tenant` for each tenant, and at most `caller` of these for each
    /// caller.
    pub fn new(sort: &'static str, tenant: usize, caller: usize) -> Self {
        let tenant = OpenLimit { name: "streams_per_tenant", limit: tenant };
        let caller = OpenLimit { name: "streams_per_credential", limit: caller };
        Self(Arc::new(Inner { sort, tenant, caller, taken: Mutex::default() }))
    }

    /// Takes a place for a caller; `caller` is the caller's identity.
    ///
    /// # Errors
    /// The tenant or the caller has no place left.
    pub fn enter(&self, tenant_id: &TenantId, caller: String) -> Result<StreamPlace, ApiError> {
        let Inner { sort, tenant, caller: each, taken } = &*self.0;
        let mut taken = taken.lock();
        let (all, own) = taken.get(tenant_id).map_or((0, 0), |taken| {
            (taken.all, taken.by_caller.get(&caller).copied().unwrap_or_default())
        });
        if own >= each.limit {
            let text = format!("this credential has {own} {sort} open on this node; close one");
            return Err(each.refusal(text, RETRY_AFTER));
        }
        if all >= tenant.limit {
            let text = format!("the tenant has {all} {sort} open on this node; close one");
            return Err(tenant.refusal(text, RETRY_AFTER));
        }
        let left = |limit: OpenLimit, open: usize| {
            let calls = limit.limit.saturating_sub(open + 1);
            Some(Remaining::Open { limit, calls })
        };
        let limits = AppliedLimits::new(left(*each, own), left(*tenant, all));
        let taken = taken.entry(tenant_id.clone()).or_default();
        taken.all += 1;
        *taken.by_caller.entry(caller.clone()).or_default() += 1;
        Ok(StreamPlace { places: self.clone(), tenant_id: tenant_id.clone(), caller, limits })
    }
}

impl StreamPlace {
    /// The limits of the caller and of its tenant, without this place.
    pub fn limits(&self) -> AppliedLimits {
        self.limits
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut all = self.places.0.taken.lock();
        let Some(taken) = all.get_mut(&self.tenant_id) else { return };
        taken.all -= 1;
        if taken.all == 0 {
            all.remove(&self.tenant_id);
        } else if let Some(own) = taken.by_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn places() -> (Places, impl Fn(&str) -> TenantId) {
        (Places::new("streams", 4, 3), |slug: &str| TenantId::from_slug(slug).unwrap())
    }

    fn refused(place: Result<StreamPlace, ApiError>) -> String {
        let refused = place.err().unwrap();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        refused.message
    }

    #[test]
    fn a_caller_cannot_take_all_places_of_its_tenant() {
        let (places, tenant) = places();
        let (own, other) = (tenant("own"), tenant("other"));
        let enter = |caller: &str| places.enter(&own, caller.to_owned());
        let mut greedy: Vec<_> = (0..3).map(|_| enter("greedy").unwrap()).collect();
        let message = "this credential has 3 streams open on this node; close one";
        assert_eq!(refused(enter("greedy")), message);
        let beside = enter("another").unwrap();
        let message = "the tenant has 4 streams open on this node; close one";
        assert_eq!(refused(enter("another")), message);
        // The same name in another tenant is a different caller.
        assert!(places.enter(&other, "greedy".to_owned()).is_ok());
        drop(beside);
        greedy.pop();
        greedy.push(enter("greedy").unwrap());
        assert!(refused(enter("greedy")).starts_with("this credential"));
    }

    #[test]
    fn what_is_closed_leaves_nothing() {
        let (places, tenant) = places();
        let own = tenant("own");
        let enter = |caller: &str| places.enter(&own, caller.to_owned()).unwrap();
        let (first, second) = (enter("a"), enter("b"));
        drop(first);
        assert_eq!(places.0.taken.lock()[&own].by_caller.len(), 1);
        drop(second);
        assert!(places.0.taken.lock().is_empty());
    }
}
