//! Consultants.

use authority_model::{
    proto::programme::*,
    schema::{consultant_links, consultants, white_label_configs},
    service::ConsultantService,
    state::{ConsultantStatus, ConsultantTenantLinkStatus, WhiteLabelConfigStatus},
};

use super::certification::prepare;
use crate::flow::{
    operations::{admit, changeable, or_not_found},
    prelude::*,
    search::containing,
};
use authority_ids::RecordId;

impl RecordRow for Consultant {
    type List = ListConsultantsRequest;

    fn filtered(by: &ListConsultantsRequest) -> consultants::BoxedQuery<'_, Pg> {
        let mut query = consultants::table.into_boxed();
        if let Some(status) = &by.status {
            query = query.filter(consultants::status.eq(status));
        }
        if let Some(level) = &by.level {
            query = query.filter(consultants::certification_level.eq(level));
        }
        if let Some(country) = &by.country {
            query = query.filter(consultants::country.eq(country));
        }
        if let Some(text) = &by.q {
            query = containing!(query, "display_name, legal_name, email", text);
        }
        if !by.deleted {
            query = query.filter(consultants::deleted_at.is_null());
        }
        query
    }

    fn searches(by: &ListConsultantsRequest) -> bool {
        by.q.is_some()
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        self.listed.get_or_insert(true);
    }

    async fn tenant_slug(&self, _db: &mut Db, _within: Option<&TenantId>) -> Result<String, Error> {
        Ok(String::new())
    }

    fn may_begin_final() -> bool {
        true
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let is_suspended = self.known_state() == Some(ConsultantStatus::Suspended);
        let Some(was) = was else {
            self.suspended_at = is_suspended.then(|| tx.now.into());
            return Ok(());
        };
        if is_suspended == (was.known_state() == Some(ConsultantStatus::Suspended)) {
            return Ok(());
        }
        // An update never writes fields that only the server sets.
        diesel::update(consultants::table.find(&self.id))
            .set((
                consultants::suspended_at.eq(is_suspended.then_some(tx.now)),
                consultants::suspend_reason.eq(None::<String>),
            ))
            .execute(tx.db)
            .await?;
        Ok(())
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let links = consultant_links::table
            .filter(consultant_links::consultant_id.eq(&self.id))
            .filter(consultant_links::status.ne(ConsultantTenantLinkStatus::Revoked))
            .filter(consultant_links::deleted_at.is_null());
        diesel::update(links)
            .set((
                consultant_links::status.eq(ConsultantTenantLinkStatus::Revoked),
                consultant_links::revoked_at.eq(tx.now),
                consultant_links::revoke_reason.eq("the consultant was deleted"),
                consultant_links::updated_at.eq(clock_timestamp()),
            ))
            .execute(tx.db)
            .await?;
        let brands = white_label_configs::table
            .filter(white_label_configs::consultant_id.eq(&self.id))
            .filter(white_label_configs::status.ne(WhiteLabelConfigStatus::Archived))
            .filter(white_label_configs::deleted_at.is_null());
        diesel::update(brands)
            .set((
                white_label_configs::status.eq(WhiteLabelConfigStatus::Archived),
                white_label_configs::updated_at.eq(clock_timestamp()),
            ))
            .execute(tx.db)
            .await?;
        Ok(())
    }
}

impl_queries!(Consultant, consultants);
impl_save!(Consultant, consultants);
impl_soft_delete!(Consultant, consultants);

impl Verb for SuspendConsultantRequest {
    type Record = Consultant;

    async fn apply(self, was: Consultant, tx: &mut WriteTx<'_>) -> Result<Consultant, Error> {
        changeable(&was)?;
        let since = was.suspended_at.unwrap_or_else(|| tx.now.into());
        Ok(diesel::update(consultants::table.find(&was.id))
            .set((
                consultants::status.eq(ConsultantStatus::Suspended),
                consultants::suspended_at.eq(since),
                consultants::suspend_reason.eq(self.reason),
                consultants::updated_at.eq(clock_timestamp()),
            ))
            .returning(Consultant::as_returning())
            .get_result(tx.db)
            .await?)
    }
}

impl Registry {
    async fn certify(
        &self,
        call: Request<CertifyConsultantRequest>,
    ) -> Reply<CertifyConsultantResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request, faults) = admit(call)?;
        let id = request.id.clone();
        let row = prepare(self, of(request), faults, "").await?;
        let by = caller.actor.clone();
        let made = self.idempotent(&caller, key, async move |db| {
            let consultant = or_not_found(Consultant::lock(db, None, &id).await, &id)?;
            let level = row.level.clone();
            let certification = row.insert_for(db, &consultant, by, "").await?;
            let consultant = diesel::update(consultants::table.find(&id))
                .set((
                    consultants::status.eq(ConsultantStatus::Certified),
                    consultants::certification_level.eq(level),
                    consultants::updated_at.eq(clock_timestamp()),
                ))
                .returning(Consultant::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(CertifyConsultantResponse {
                certification: Some(certification),
                consultant: Some(consultant),
            })
        });
        Ok(made.await?.reply())
    }
}

/// Returns the certification described by a request.
fn of(request: CertifyConsultantRequest) -> Certification {
    Certification {
        consultant_id: request.id,
        level: request.level,
        program: request.program,
        not_before: request.not_before,
        not_after: request.not_after,
        evidence_pack_id: request.evidence_pack_id,
        signature_kid: request.signature_kid,
        signature_value_b64: request.signature_value_b64,
        ..Certification::default()
    }
}

#[tonic::async_trait]
impl ConsultantService for Registry {
    async fn list_consultants(
        &self,
        call: Request<ListConsultantsRequest>,
    ) -> Reply<ListConsultantsResponse> {
        self.list(call).await
    }

    async fn create_consultant(&self, call: Request<CreateConsultantRequest>) -> Reply<Consultant> {
        self.create(call).await
    }

    async fn get_consultant(&self, call: Request<GetConsultantRequest>) -> Reply<Consultant> {
        self.get(call).await
    }

    async fn update_consultant(&self, call: Request<UpdateConsultantRequest>) -> Reply<Consultant> {
        self.update(call).await
    }

    async fn delete_consultant(
        &self,
        call: Request<DeleteConsultantRequest>,
    ) -> Reply<DeleteConsultantResponse> {
        self.soft_delete(call).await
    }

    async fn certify_consultant(
        &self,
        call: Request<CertifyConsultantRequest>,
    ) -> Reply<CertifyConsultantResponse> {
        self.certify(call).await
    }

    async fn suspend_consultant(
        &self,
        call: Request<SuspendConsultantRequest>,
    ) -> Reply<Consultant> {
        self.apply(call).await
    }
}
