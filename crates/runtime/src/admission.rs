//! Checks whether a purpose is admitted, without making a decision.

use std::sync::Arc;

use authority_ids::TenantRef;
use authority_model::proto::runtime::{AdmitPurposeRequest, AdmitPurposeResponse};

use super::{
    facts::FactSource,
    normalize::{self, IntoDraft},
};
use authority_api::{error::ApiError, identity::Caller};
use authority_decision::{Draft, Facts, Reason};
use authority_process::clock::Clock;

pub(super) struct PurposeAdmission {
    pub(super) clock: Clock,
    pub(super) facts: FactSource,
}

impl PurposeAdmission {
    pub(super) async fn admit(
        &self,
        caller: &Caller,
        asked: AdmitPurposeRequest,
    ) -> Result<AdmitPurposeResponse, ApiError> {
        self.facts.store.confirm(&caller.scope()).await?;
        let request = normalize::normalize(caller, asked)?;
        let handle = self.facts.graph.tenant(request.tenant())?;
        let (facts, _) = self.facts.gather(handle.as_ref(), &request)?;
        let facts = Facts::new(Arc::clone(&facts.gathered));
        let (admission, reason) = authority_decision::admit(&request, &facts, self.clock.now());
        Ok(AdmitPurposeResponse {
            verdict: admission.word().to_owned(),
            reason_code: reason.unwrap_or(Reason::PermissionGranted).word().to_owned(),
            purpose_id: facts.gathered.purpose.as_ref().map(|purpose| purpose.id.clone().into()),
        })
    }
}

impl IntoDraft for AdmitPurposeRequest {
    fn subject(&self) -> &str {
        &self.subject
    }

    fn into_draft(self, tenant_id: TenantRef) -> Draft {
        Draft {
            tenant_id,
            subject: self.subject.into(),
            action: self.action,
            purpose: Some(self.purpose),
            context: self.context.map(|json| json.0).unwrap_or_default(),
            ..Draft::default()
        }
    }
}
