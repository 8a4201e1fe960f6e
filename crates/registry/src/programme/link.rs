//! Links of consultants to tenants. A link grants no authority.

use authority_model::{
    proto::programme::*, schema::consultant_links, service::ConsultantTenantLinkService,
    state::ConsultantTenantLinkStatus as Status, validate::Validate, wire,
};
use chrono::{DateTime, Utc};

use super::standing::{in_good_standing, referred};
use crate::flow::{operations::changeable, prelude::*};
use authority_ids::RecordId;

/// The default scope of a link.
const SCOPE: &str = "view_only";

impl RecordRow for ConsultantTenantLink {
    type List = ListConsultantTenantLinksRequest;

    fn filtered(by: &ListConsultantTenantLinksRequest) -> consultant_links::BoxedQuery<'_, Pg> {
        let mut query = consultant_links::table.into_boxed();
        if let Some(id) = &by.consultant_id {
            query = query.filter(consultant_links::consultant_id.eq(id));
        }
        if let Some(status) = &by.status {
            query = query.filter(consultant_links::status.eq(status));
        }
        if !by.deleted {
            query = query.filter(consultant_links::deleted_at.is_null());
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        names::or(&mut self.scope, SCOPE);
        names::or(&mut self.status, Status::Invited.as_str());
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        in_good_standing(&referred(tx.db, "link.consultant_id", &self.consultant_id).await?)?;
        if self.known_state() == Some(Status::Active) {
            self.accepted_at = Some(tx.now.into());
        }
        Ok(())
    }
}

impl_queries!(ConsultantTenantLink, consultant_links);

impl SoftDelete for ConsultantTenantLink {
    /// A deleted link is also revoked.
    fn soft_delete<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
        let revoked = diesel::dsl::sql::<diesel::sql_types::Nullable<diesel::sql_types::Timestamptz>>(
            "coalesce(revoked_at, clock_timestamp())",
        );
        diesel::update(consultant_links::table.find(&row.id))
            .set((
                consultant_links::status.eq(Status::Revoked),
                consultant_links::revoked_at.eq(revoked),
                consultant_links::deleted_at.eq(clock_timestamp().nullable()),
                consultant_links::updated_at.eq(clock_timestamp()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

impl Verb for UpdateConsultantTenantLinkRequest {
    type Record = ConsultantTenantLink;

    fn examine(&self, found: &mut Violations) {
        found.within("change", |found| {
            let change = self.change.clone().unwrap_or_default();
            change.validate(found);
            for path in self.update_mask.iter().flat_map(|mask| &mask.paths) {
                match path.as_str() {
                    "accept" if change.accept == Some(true) => {}
                    "accept" => found.add("accept", "must be true; `/revoke` revokes a link"),
                    "scope" => {}
                    other => found.add(other, "can't be changed"),
                }
            }
        });
    }

    async fn apply(
        self,
        was: ConsultantTenantLink,
        tx: &mut WriteTx<'_>,
    ) -> Result<ConsultantTenantLink, Error> {
        changeable(&was)?;
        let (mask, change) =
            (self.update_mask.unwrap_or_default(), self.change.unwrap_or_default());
        let names = |member: &str| mask.paths.iter().any(|path| path == member);
        let accepts = names("accept") && was.known_state() == Some(Status::Invited);
        let scope = if names("scope") {
            change.scope.unwrap_or_else(|| SCOPE.to_owned())
        } else {
            was.scope.clone().unwrap_or_default()
        };
        if !accepts && was.scope.as_ref() == Some(&scope) {
            return Ok(was);
        }
        if accepts {
            in_good_standing(&referred(tx.db, "consultant_id", &was.consultant_id).await?)?;
        }
        let accepted: Option<DateTime<Utc>> =
            if accepts { Some(tx.now) } else { was.accepted_at.and_then(wire::Time::moment) };
        let status =
            if accepts { Status::Active } else { was.known_state().unwrap_or(Status::Invited) };
        Ok(diesel::update(consultant_links::table.find(&was.id))
            .set((
                consultant_links::status.eq(status),
                consultant_links::accepted_at.eq(accepted),
                consultant_links::scope.eq(scope),
                consultant_links::updated_at.eq(clock_timestamp()),
            ))
            .returning(ConsultantTenantLink::as_returning())
            .get_result(tx.db)
            .await?)
    }
}

impl Verb for RevokeConsultantTenantLinkRequest {
    type Record = ConsultantTenantLink;

    async fn apply(
        self,
        was: ConsultantTenantLink,
        tx: &mut WriteTx<'_>,
    ) -> Result<ConsultantTenantLink, Error> {
        changeable(&was)?;
        Ok(diesel::update(consultant_links::table.find(&was.id))
            .set((
                consultant_links::status.eq(Status::Revoked),
                consultant_links::revoked_at.eq(tx.now),
                consultant_links::revoke_reason.eq(self.reason),
                consultant_links::updated_at.eq(clock_timestamp()),
            ))
            .returning(ConsultantTenantLink::as_returning())
            .get_result(tx.db)
            .await?)
    }
}

#[tonic::async_trait]
impl ConsultantTenantLinkService for Registry {
    async fn list_consultant_tenant_links(
        &self,
        call: Request<ListConsultantTenantLinksRequest>,
    ) -> Reply<ListConsultantTenantLinksResponse> {
        self.list(call).await
    }

    async fn create_consultant_tenant_link(
        &self,
        call: Request<CreateConsultantTenantLinkRequest>,
    ) -> Reply<ConsultantTenantLink> {
        self.create(call).await
    }

    async fn get_consultant_tenant_link(
        &self,
        call: Request<GetConsultantTenantLinkRequest>,
    ) -> Reply<ConsultantTenantLink> {
        self.get(call).await
    }

    async fn update_consultant_tenant_link(
        &self,
        call: Request<UpdateConsultantTenantLinkRequest>,
    ) -> Reply<ConsultantTenantLink> {
        self.apply(call).await
    }

    async fn delete_consultant_tenant_link(
        &self,
        call: Request<DeleteConsultantTenantLinkRequest>,
    ) -> Reply<DeleteConsultantTenantLinkResponse> {
        self.soft_delete(call).await
    }

    async fn revoke_consultant_tenant_link(
        &self,
        call: Request<RevokeConsultantTenantLinkRequest>,
    ) -> Reply<ConsultantTenantLink> {
        self.apply(call).await
    }
}
