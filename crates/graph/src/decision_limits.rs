//! The limits on decisions per second that are set in the records of tenants and API keys.

use authority_ids::{ApiKeyId, TenantId};

use super::graph::Graph;

/// A limit that is set in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionLimit {
    pub tenant_id: TenantId,
    /// The limited API key; `None` for a limit on all decisions of the tenant.
    pub key_id: Option<ApiKeyId>,
    pub per_second: u32,
}

impl Graph {
    /// Returns the limits of live tenants and active API keys.
    pub fn decision_limits(&self) -> Vec<DecisionLimit> {
        let mut limits = Vec::new();
        for (tenant_id, handle) in &*self.tenants.read() {
            let graph = handle.read();
            if let Some(per_second) =
                graph.profile.decisions_per_second.filter(|_| !graph.profile.deleted)
            {
                limits.push(DecisionLimit {
                    tenant_id: tenant_id.clone(),
                    key_id: None,
                    per_second,
                });
            }
        }
        for key in self.keys.read().values().filter(|key| key.active) {
            if let Some(per_second) = key.decisions_per_second {
                let (tenant_id, key_id) = (key.tenant_id.clone(), Some(key.id.clone()));
                limits.push(DecisionLimit { tenant_id, key_id, per_second });
            }
        }
        limits
    }
}
