//! References that a foreign key can't express. They are lists of IDs, IDs of several kinds of
//! records, and IDs of principals, because principals are soft-deleted.
//!
//! A write locks the rows it refers to FOR KEY SHARE, and a delete locks its row FOR UPDATE. The
//! write and the delete therefore always see each other.

use authority_model::{
    proto::registry::{ExternalApp, Model, Project, Resource, Team, Tool, Workspace},
    schema::{delegations, granted_access_to, principals, projects, purposes, uses},
    state::{DelegationState, PurposeState},
    validate::Violations,
};
use diesel::{PgArrayExpressionMethods, QueryResult, dsl::exists, prelude::*};

use super::{error::Error, queries::Referenced};
use authority_ids::TenantId;
use authority_store::{Db, RunQueryDsl};

/// Collects the fields of a record that refer to rows unknown in the record's tenant.
pub(crate) struct Known {
    tenant: TenantId,
    kind: &'static str,
    found: Violations,
}

impl Known {
    pub(crate) fn of(tenant: TenantId, kind: &'static str) -> Self {
        Self { tenant, kind, found: Violations::default() }
    }

    /// Reports the field that determined the row's tenant if another field is unknown in that
    /// tenant. Either of the two fields may be the wrong one.
    pub(crate) fn placed_by(mut self, field: &str, id: &str) -> Self {
        if !self.found.is_empty() {
            self.found.add(field, format!("`{id}` belongs to another tenant than the rest"));
        }
        self
    }

    /// The tenant that all references must belong to.
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Checks a reference to a principal that is not deleted.
    pub(crate) async fn principal(
        &mut self,
        db: &mut Db,
        field: &str,
        id: Option<&str>,
    ) -> Result<(), Error> {
        let Some(id) = id else { return Ok(()) };
        let live = principals::table
            .filter(principals::tenant_id.eq(self.tenant.as_str()).and(principals::id.eq(id)))
            .filter(principals::deleted_at.is_null())
            .for_key_share()
            .select(principals::id)
            .load::<String>(db)
            .await?;
        self.compare(field, &[id], &live);
        Ok(())
    }

    pub(crate) async fn workspaces(
        &mut self,
        db: &mut Db,
        field: &str,
        ids: &[String],
    ) -> Result<(), Error> {
        if !ids.is_empty() {
            let present = Workspace::present(db, &self.tenant, ids).await?;
            self.compare_each(field, ids, &present);
        }
        Ok(())
    }

    /// Checks references to resources or projects. Access can be granted to either.
    pub(crate) async fn resources(
        &mut self,
        db: &mut Db,
        field: &str,
        ids: &[String],
    ) -> Result<(), Error> {
        if !ids.is_empty() {
            let mut present = Resource::present(db, &self.tenant, ids).await?;
            present.extend(Project::present(db, &self.tenant, ids).await?);
            self.compare_each(field, ids, &present);
        }
        Ok(())
    }

    /// Checks references to purposes by slug.
    pub(crate) async fn purposes(
        &mut self,
        db: &mut Db,
        field: &str,
        slugs: &[String],
    ) -> Result<(), Error> {
        if slugs.is_empty() {
            return Ok(());
        }
        let present = purposes::table
            .filter(purposes::tenant_id.eq(self.tenant.as_str()))
            .filter(purposes::slug.eq_any(slugs))
            .filter(purposes::state.eq(PurposeState::Active))
            .for_key_share()
            .select(purposes::slug)
            .load::<String>(db)
            .await?;
        self.compare_each(field, slugs, &present);
        Ok(())
    }

    /// Checks the record that a relationship refers to by kind and ID.
    pub(crate) async fn of_kind(
        &mut self,
        db: &mut Db,
        field: &str,
        kind: &str,
        id: &str,
    ) -> Result<(), Error> {
        let ids = [id.to_owned()];
        let present = match kind {
            "principal" => return self.principal(db, field, Some(id)).await,
            "resource" => return self.resources(db, field, &ids).await,
            "team" => Team::present(db, &self.tenant, &ids).await?,
            "tool" => Tool::present(db, &self.tenant, &ids).await?,
            "model" => Model::present(db, &self.tenant, &ids).await?,
            "external_app" => ExternalApp::present(db, &self.tenant, &ids).await?,
            _ => Vec::new(),
        };
        self.compare(field, &[id], &present);
        Ok(())
    }

    /// Fails if a reference was not found.
    pub(crate) fn all(self) -> Result<(), Error> {
        Error::unless_clean(self.found)
    }

    pub(crate) fn compare(&mut self, field: &str, ids: &[&str], present: &[String]) {
        for id in ids.iter().filter(|id| !present.iter().any(|known| known == *id)) {
            let field = format!("{}.{field}", self.kind);
            self.found.add(&field, format!("`{id}` is unknown"));
        }
    }

    pub(crate) fn compare_each(&mut self, field: &str, ids: &[String], present: &[String]) {
        for (index, id) in ids.iter().enumerate() {
            self.compare(&format!("{field}[{index}]"), &[id], present);
        }
    }
}

/// Sets the tenant of a record. A tenant's own callers may omit it.
pub(crate) fn own_tenant(
    tenant_id: &mut Option<String>,
    kind: &str,
    within: Option<&TenantId>,
) -> Result<(), Error> {
    if tenant_id.is_none() {
        let own =
            within.ok_or_else(|| Error::field(&format!("{kind}.tenant_id"), "is required"))?;
        *tenant_id = Some(own.into());
    }
    Ok(())
}

/// Refuses while a project, or a delegation that is not revoked, refers to the workspace.
pub(crate) async fn workspace_is_free(
    db: &mut Db,
    tenant: &TenantId,
    id: &str,
) -> Result<(), Error> {
    let seen = projects::table
        .filter(projects::tenant_id.eq(tenant.as_str()))
        .filter(projects::visible_in_workspaces.contains(vec![id]));
    let bound = delegations::table
        .filter(
            delegations::tenant_id
                .eq(tenant.as_str())
                .and(delegations::state.ne(DelegationState::Revoked)),
        )
        .filter(delegations::workspace_ids.contains(vec![id]));
    free(diesel::select(exists(seen)).get_result(db).await, "projects")?;
    free(diesel::select(exists(bound)).get_result(db).await, "delegations")
}

/// Refuses while access to the resource is granted, or while a delegation that is not revoked
/// refers to the resource.
pub(crate) async fn resource_is_free(
    db: &mut Db,
    tenant: &TenantId,
    id: &str,
) -> Result<(), Error> {
    let granted = granted_access_to::table.filter(
        granted_access_to::tenant_id.eq(tenant.as_str()).and(granted_access_to::resource_id.eq(id)),
    );
    let bound = delegations::table
        .filter(
            delegations::tenant_id
                .eq(tenant.as_str())
                .and(delegations::state.ne(DelegationState::Revoked)),
        )
        .filter(delegations::resource_ids.contains(vec![id]));
    free(diesel::select(exists(granted)).get_result(db).await, "granted-access-to rows")?;
    free(diesel::select(exists(bound)).get_result(db).await, "delegations")?;
    used_is_free(db, tenant, id).await
}

/// Refuses while a team is granted access.
pub(crate) async fn grantee_is_free(db: &mut Db, tenant: &TenantId, id: &str) -> Result<(), Error> {
    let granted = granted_access_to::table.filter(
        granted_access_to::tenant_id.eq(tenant.as_str()).and(granted_access_to::grantee_id.eq(id)),
    );
    free(diesel::select(exists(granted)).get_result(db).await, "granted-access-to rows")
}

/// Refuses while an agent's use of the record is granted or denied.
pub(crate) async fn used_is_free(db: &mut Db, tenant: &TenantId, id: &str) -> Result<(), Error> {
    let used = uses::table.filter(uses::tenant_id.eq(tenant.as_str()).and(uses::used_id.eq(id)));
    free(diesel::select(exists(used)).get_result(db).await, "uses rows")
}

/// Refuses while a delegation that is not revoked is bound to the purpose.
pub(crate) async fn purpose_is_free(
    db: &mut Db,
    tenant: &TenantId,
    slug: &str,
) -> Result<(), Error> {
    let bound = delegations::table
        .filter(
            delegations::tenant_id
                .eq(tenant.as_str())
                .and(delegations::state.ne(DelegationState::Revoked)),
        )
        .filter(delegations::purposes.contains(vec![slug]));
    free(diesel::select(exists(bound)).get_result(db).await, "delegations")
}

fn free(is_used: QueryResult<bool>, by: &'static str) -> Result<(), Error> {
    if is_used? { Err(Error::InUse { by }) } else { Ok(()) }
}
