//! What the log says of refused calls: a line a second while there are some, with their number and the tenant that had
//! the most of them. No metric names a tenant, and an operator must know whose limit to set.

use std::collections::HashMap;

use authority_ids::TenantId;

/// Why a call for decisions is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// More is asked for than can be made, and the tenant has its share of the queue.
    QueueFull,
    /// The tenant or its key is above `decisions_per_second`.
    RateLimit,
}

/// The refusals since the last line.
#[derive(Default)]
pub(super) struct RefusalLog {
    by_tenant: HashMap<TenantId, u64>,
    queue_full: u64,
    rate_limit: u64,
}

impl RefusalLog {
    /// Counts one; true if it is the first since the last line, which is then due in a second.
    pub(super) fn note(&mut self, tenant_id: &TenantId, cause: Cause) -> bool {
        let is_first = self.by_tenant.is_empty();
        match cause {
            Cause::QueueFull => self.queue_full += 1,
            Cause::RateLimit => self.rate_limit += 1,
        }
        // No id is copied for one that is known.
        match self.by_tenant.get_mut(tenant_id) {
            Some(count) => *count += 1,
            None => drop(self.by_tenant.insert(tenant_id.clone(), 1)),
        }
        is_first
    }

    /// The line; `waiting` decisions are in the queue now.
    pub(super) fn write(self, waiting: usize) {
        let tenants = self.by_tenant.len();
        let Some((most, of_it)) = self.by_tenant.into_iter().max_by_key(|(_, count)| *count) else {
            return;
        };
        tracing::warn!(
            count = self.queue_full + self.rate_limit,
            queue_full = self.queue_full,
            rate_limit = self.rate_limit,
            waiting,
            tenants,
            most_refused = %most,
            of_it,
            "refused calls for decisions"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_makes_a_line_due_and_the_others_are_counted() {
        let [flood, other] = ["flood", "other"].map(|slug| TenantId::from_slug(slug).unwrap());
        let mut log = RefusalLog::default();
        assert!(log.note(&other, Cause::RateLimit));
        assert!(!log.note(&flood, Cause::QueueFull));
        assert!(!log.note(&flood, Cause::QueueFull));
        assert_eq!((log.queue_full, log.rate_limit), (2, 1));
        let most = log.by_tenant.iter().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(most, (&flood, &2));
        assert!(RefusalLog::default().note(&other, Cause::RateLimit));
    }
}
