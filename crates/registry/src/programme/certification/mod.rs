//! Certifications of consultants, signed by this service or by a trusted issuer.

mod change;
mod lapse;
mod signed;

pub use lapse::expire;

use authority_evidence::pack::decision_of;
use authority_model::{
    proto::programme::*,
    schema::{certifications, evidence_packs},
    service::CertificationService,
};

use super::standing::{in_good_standing, referred};
use crate::flow::{operations::admit, prelude::*, version::tagged};
use authority_ids::{EvidenceId, RecordId};

impl RecordRow for Certification {
    type List = ListCertificationsRequest;

    fn filtered(by: &ListCertificationsRequest) -> certifications::BoxedQuery<'_, Pg> {
        let mut query = certifications::table.into_boxed();
        if let Some(id) = &by.consultant_id {
            query = query.filter(certifications::consultant_id.eq(id));
        }
        if let Some(level) = &by.level {
            query = query.filter(certifications::level.eq(level));
        }
        if let Some(program) = &by.program {
            query = query.filter(certifications::program.eq(program));
        }
        if !by.deleted {
            query = query.filter(certifications::deleted_at.is_null());
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        Ok(lapse::check(tx.db, &self.consultant_id, Some(&self.id), tx.now).await?)
    }
}

impl_queries!(Certification, certifications);
impl_soft_delete!(Certification, certifications);

/// A certification that is ready to be stored.
pub(super) struct Prepared(Certification);

impl std::ops::Deref for Prepared {
    type Target = Certification;

    fn deref(&self) -> &Certification {
        &self.0
    }
}

/// Checks a new certification and either verifies its signature or signs it. `field` is the path
/// prefix of its fields, including the dot.
pub(super) async fn prepare(
    registry: &Registry,
    mut row: Certification,
    mut faults: Violations,
    field: &str,
) -> Result<Prepared, Error> {
    let mut found = Violations::default();
    rules::span(("not_before", row.not_before), ("not_after", row.not_after), &mut found);
    if let Some(id) = &row.evidence_pack_id
        && let Err(why) = EvidenceId::check(id)
    {
        found.add("evidence_pack_id", why.to_string());
    }
    for fault in found.list {
        faults.add(&format!("{field}{}", fault.field), fault.problem);
    }
    Error::unless_clean(faults)?;
    signed::sign_or_verify(registry, &mut row, field).await?;
    Ok(Prepared(row))
}

impl Prepared {
    /// Stores the certification for `consultant`.
    pub(super) async fn insert_for(
        self,
        db: &mut Db,
        consultant: &Consultant,
        by: String,
        field: &str,
    ) -> Result<Certification, Error> {
        let Self(mut row) = self;
        in_good_standing(consultant)?;
        if let Some(id) = &row.evidence_pack_id {
            let decision = decision_of(id).map(|id| id.to_string()).unwrap_or_default();
            let packs = evidence_packs::table.find(decision).select(evidence_packs::decision_id);
            let found: Option<String> = packs.first(db).await.optional()?;
            found.ok_or_else(|| Error::unknown(&format!("{field}evidence_pack_id"), id))?;
        }
        row.stamp_created(RecordId::new(Certification::KIND, new_id()).into(), by);
        Ok(Certification::insert(db, &row).await?)
    }
}

impl Registry {
    async fn make_certification(
        &self,
        call: Request<CreateCertificationRequest>,
    ) -> Reply<Certification> {
        const FIELD: &str = "certification.";
        let key = IdempotencyKey::of(&call)?;
        let (caller, request, mut faults) = admit(call)?;
        let row = request.certification.unwrap_or_default();
        faults.within(Certification::KIND, |faults| row.reject_output_only(faults));
        let row = prepare(self, row, faults, FIELD).await?;
        let by = caller.actor.clone();
        let made = self.idempotent(&caller, key, async move |db| {
            let member = format!("{FIELD}consultant_id");
            let consultant = referred(db, &member, &row.consultant_id).await?;
            row.insert_for(db, &consultant, by, FIELD).await
        });
        Ok(tagged(made.await?.reply()))
    }
}

#[tonic::async_trait]
impl CertificationService for Registry {
    async fn list_certifications(
        &self,
        call: Request<ListCertificationsRequest>,
    ) -> Reply<ListCertificationsResponse> {
        self.list(call).await
    }

    async fn create_certification(
        &self,
        call: Request<CreateCertificationRequest>,
    ) -> Reply<Certification> {
        self.make_certification(call).await
    }

    async fn get_certification(
        &self,
        call: Request<GetCertificationRequest>,
    ) -> Reply<Certification> {
        self.get(call).await
    }

    async fn update_certification(
        &self,
        call: Request<UpdateCertificationRequest>,
    ) -> Reply<Certification> {
        self.change_certification(call).await
    }

    async fn delete_certification(
        &self,
        call: Request<DeleteCertificationRequest>,
    ) -> Reply<DeleteCertificationResponse> {
        self.soft_delete(call).await
    }
}
