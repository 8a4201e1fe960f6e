//! The tenant that uses a connection.
//!
//! If a tenant has more than its share of an address's connections, the excess connections are
//! closed when they are idle.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use authority_ids::TenantId;
use parking_lot::Mutex;

use super::activity::Activity;

/// The connections of an address, by tenant.
pub(super) struct AddressConnections {
    counts: Mutex<HashMap<TenantId, usize>>,
    /// The number of connections in a tenant's share.
    share: usize,
}

impl AddressConnections {
    pub(super) fn new(share: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), share })
    }
}

/// The holder of a connection, in the extensions of every request. It is absent if the peer is a
/// trusted proxy: many tenants use its connections. Cheap to clone.
#[derive(Clone)]
pub struct Holder(Arc<Holding>);

struct Holding {
    held: Arc<AddressConnections>,
    activity: Arc<Activity>,
    tenant: OnceLock<TenantId>,
}

impl Holder {
    pub(super) fn new(held: Arc<AddressConnections>, activity: Arc<Activity>) -> Self {
        Self(Arc::new(Holding { held, activity, tenant: OnceLock::new() }))
    }

    /// Records that this tenant uses the connection. Only the first tenant counts.
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
