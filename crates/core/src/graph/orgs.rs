//! Tenants by the organisation that their people sign in with.

use std::collections::HashMap;

use authority_ids::TenantId;

use super::{Graph, tenant::TenantGraph};

/// The tenant, not deleted, of each organisation.
pub(super) type Orgs = HashMap<Box<str>, TenantId>;

impl TenantGraph {
    /// The organisation whose people belong to this tenant, while it is not deleted. An empty one does not
    /// count.
    pub(super) fn organisation(&self) -> Option<&str> {
        let live = self.tenant().is_some() && !self.profile.deleted;
        self.profile.idp_org_id.as_deref().filter(|org| live && !org.is_empty())
    }
}

impl Graph {
    /// The tenant, not deleted, whose `idp_org_id` this is. A suspended one is found too: its people
    /// are refused, and not taken for another tenant's.
    pub fn tenant_of_org(&self, org: &str) -> Option<TenantId> {
        let tenant_id = self.orgs.read().get(org).cloned()?;
        // One lock is never held while waiting for the other.
        let handle = self.tenants.read().get(&tenant_id).cloned()?;
        let is = handle.read().organisation() == Some(org);
        is.then_some(tenant_id)
    }

    /// Moves a tenant from one organisation to another. The one it left may belong to another tenant by
    /// then, and then stays so.
    pub(super) fn move_org(&self, tenant_id: &TenantId, from: Option<&str>, to: Option<&str>) {
        if from == to {
            return;
        }
        let mut orgs = self.orgs.write();
        if let Some(from) = from
            && orgs.get(from).is_some_and(|known| known == tenant_id)
        {
            orgs.remove(from);
        }
        if let Some(to) = to {
            orgs.insert(to.into(), tenant_id.clone());
        }
    }
}
