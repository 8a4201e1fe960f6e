//! Tenants by the organisation that their people sign in with.

use authority_ids::TenantId;

use super::{graph::Graph, tenant::TenantGraph};

impl TenantGraph {
    /// Returns the organisation of this tenant's people.
    ///
    /// Returns `None` if the tenant is deleted or the organisation is empty.
    pub(super) fn organisation(&self) -> Option<&str> {
        let live = self.tenant().is_some() && !self.profile.deleted;
        self.profile.idp_org_id.as_deref().filter(|org| live && !org.is_empty())
    }
}

impl Graph {
    /// Returns the tenant with this `idp_org_id`, unless it is deleted.
    ///
    /// A suspended tenant is also found: its people are refused instead of matching another tenant.
    pub fn tenant_of_org(&self, org: &str) -> Option<TenantId> {
        let tenant_id = self.orgs.read().get(org).cloned()?;
        // The two locks are never held together.
        let handle = self.tenants.read().get(&tenant_id).cloned()?;
        let is = handle.read().organisation() == Some(org);
        is.then_some(tenant_id)
    }

    /// Moves a tenant from one organisation to another.
    ///
    /// If the old organisation now belongs to another tenant, that entry stays.
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
