//! The tenant that a connection is used by. A tenant with more than its share of an address's connections keeps the
//! further ones only while it uses them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use authority_ids::TenantId;
use parking_lot::Mutex;

use super::activity::Activity;

/// The connections of an address, by tenant.
pub(super) struct Held {
    counts: Mutex<HashMap<TenantId, usize>>,
    /// A tenant's share.
    share: usize,
}

impl Held {
    pub(super) fn new(share: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), share })
    }
}

/// In the extensions of every request, unless its peer is a trusted proxy, whose connections many tenants use: the
/// holder of its connection. Cheap to clone.
#[derive(Clone)]
pub struct Holder(Arc<Holding>);

struct Holding {
    held: Arc<Held>,
    activity: Arc<Activity>,
    tenant: OnceLock<TenantId>,
}

impl Holder {
    pub(super) fn new(held: Arc<Held>, activity: Arc<Activity>) -> Self {
        Self(Arc::new(Holding { held, activity, tenant: OnceLock::new() }))
    }

    /// The connection was used by this tenant; the first one counts.
    pub fn note(&self, tenant_id: &TenantId) {
        self.0.tenant.get_or_init(|| {
            let mut counts = self.0.held.counts.lock();
            let count = counts.entry(tenant_id.clone()).or_default();
            *count += 1;
            if *count > self.0.held.share {
                self.0.activity.curb();
            }
            tenant_id.clone()
        });
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let Some(tenant_id) = self.tenant.get() else { return };
        let mut counts = self.held.counts.lock();
        if let Some(count) = counts.get_mut(tenant_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(tenant_id);
            }
        }
    }
}
