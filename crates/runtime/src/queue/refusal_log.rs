//! The log of refused calls. While calls are refused, it writes one line per second, with the
//! number of refusals and the tenant with the most refusals. Metrics have no tenant label, but an
//! operator must know which tenant's limit to change.

use std::collections::HashMap;

use authority_ids::TenantId;

/// The reason why a call for decisions is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The queue is full, and the tenant has used its share of it.
    QueueFull,
    /// The tenant or its key exceeds `decisions_per_second`.
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
    /// Counts a refusal. Returns true for the first refusal since the last line. The next line is
    /// then due in a second.
    pub(super) fn note(&mut self, tenant_id: &TenantId, cause: Cause) -> bool {
        let is_first = self.by_tenant.is_empty();
        match cause {
            Cause::QueueFull => self.queue_full += 1,
            Cause::RateLimit => self.rate_limit += 1,
        }
        // The ID is only copied for a new tenant.
        match self.by_tenant.get_mut(tenant_id) {
            Some(count) => *count += 1,
            None => drop(self.by_tenant.insert(tenant_id.clone(), 1)),
        }
        is_first
    }

    /// Writes the line. `waiting` is the number of decisions that are in the queue now.
    pub(super) fn write(self, waiting: usize) {
        let tenants = self.by_tenant.len();
        let Some((most, of_it)) = self.by_tenant.into_iter().max_by_key(|(_, count)| *count) else {
            return;
        };
        tracing::warn!(
            refused = self.queue_full + self.rate_limit,
            queue_full = self.queue_full,
            rate_limit = self.rate_limit,
            waiting,
            tenants,
            tenant.id = %most,
            tenant.refused = of_it,
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
