//! Ids of tenants, and of records with the slug of their tenant in the id.

use crate::{DelegationId, EntityId, InvalidId, PrincipalId, TenantId, TenantRef, Unique};

impl TenantId {
    /// # Errors
    /// The slug cannot be a part of an id.
    pub fn from_slug(slug: &str) -> Result<Self, InvalidId> {
        Self::parse(&format!("svc:tenant:{slug}"))
    }

    /// Returns the id of a tenant, given the tenant's slug or id.
    ///
    /// Any other text is returned unchanged and matches no tenant.
    pub fn complete(slug_or_id: &str) -> TenantRef {
        Self::from_slug(slug_or_id).map_or_else(|_| slug_or_id.into(), TenantRef::from)
    }

    /// Returns the tenant of a principal.
    pub fn of(principal: &PrincipalId) -> Self {
        Self::from_valid(format!("svc:tenant:{}", principal.part(2)))
    }

    pub fn slug(&self) -> &str {
        self.part(2)
    }
}

impl PrincipalId {
    /// # Errors
    /// The slug of the tenant or the agent's name cannot be a part of an id.
    pub fn agent(slug: &str, name: &str) -> Result<Self, InvalidId> {
        Self::parse(&format!("svc:agent:{slug}:{name}"))
    }

    /// Returns a new id of a principal without a name.
    ///
    /// # Errors
    /// The slug of the tenant cannot be a part of an id.
    pub fn new(slug: &str, unique: Unique) -> Result<Self, InvalidId> {
        Self::parse(&format!("svc:ent:{slug}:principal:{unique}"))
    }
}

impl EntityId {
    /// # Errors
    /// The slug of the tenant cannot be a part of an id.
    pub fn new(slug: &str, kind: &'static str, unique: Unique) -> Result<Self, InvalidId> {
        Self::parse(&format!("svc:ent:{slug}:{kind}:{unique}"))
    }
}

impl DelegationId {
    /// # Errors
    /// The slug of the tenant cannot be a part of an id.
    pub fn new(slug: &str, unique: Unique) -> Result<Self, InvalidId> {
        Self::parse(&format!("svc:del:{slug}:{unique}"))
    }
}
