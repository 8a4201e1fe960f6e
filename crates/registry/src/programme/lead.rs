//! Leads: enquiries of people who are not tenants yet.

use authority_model::{
    proto::programme::*,
    schema::{leads, tenants},
    service::LeadService,
    state::LeadStatus,
};
use serde_json::Value;

use super::standing::referred;
use crate::flow::{prelude::*, search::containing};
use authority_ids::RecordId;

/// The maximum number of campaign parameters of a lead.
const MOST_UTM: usize = 16;
/// The maximum length of a campaign parameter's name, and of its value, in characters.
const LONGEST_UTM: usize = 200;

impl RecordRow for Lead {
    type List = ListLeadsRequest;

    fn filtered(by: &ListLeadsRequest) -> leads::BoxedQuery<'_, Pg> {
        let mut query = leads::table.into_boxed();
        if let Some(status) = &by.status {
            query = query.filter(leads::status.eq(status));
        }
        if let Some(sector) = &by.sector {
            query = query.filter(leads::sector.eq(sector));
        }
        if let Some(id) = &by.assigned_consultant_id {
            query = query.filter(leads::assigned_consultant_id.eq(id));
        }
        if let Some(text) = &by.q {
            query = containing!(query, "submitter_email, submitter_name, organisation", text);
        }
        if !by.deleted {
            query = query.filter(leads::deleted_at.is_null());
        }
        query
    }

    fn searches(by: &ListLeadsRequest) -> bool {
        by.q.is_some()
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn validate_record(&self, found: &mut Violations) {
        let utm = self.utm.iter().flat_map(|utm| &utm.0);
        found.length("utm", utm.clone().count(), 0, MOST_UTM);
        for (name, value) in utm.take(MOST_UTM) {
            let fits = |text: &str| text.chars().count() <= LONGEST_UTM;
            match value {
                Value::String(text) if fits(text) && fits(name) => {}
                _ => found.add(
                    &format!("utm.{}", name.replace('\0', "\u{fffd}")),
                    format!("and its name must be texts of at most {LONGEST_UTM} characters"),
                ),
            }
        }
    }

    async fn tenant_slug(&self, _db: &mut Db, _within: Option<&TenantId>) -> Result<String, Error> {
        Ok(String::new())
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if was.is_none() && self.consent_marketing {
            self.consent_at = Some(tx.now.into());
            self.consent_source = Some(tx.caller.actor.clone());
        }
        let assigned = |lead: &Self| lead.assigned_consultant_id.clone();
        if let Some(id) = assigned(self)
            && was.and_then(assigned).as_ref() != Some(&id)
        {
            referred(tx.db, "lead.assigned_consultant_id", &id).await?;
        }
        Ok(())
    }
}

impl_queries!(Lead, leads);
impl_save!(Lead, leads);
impl_soft_delete!(Lead, leads);

impl Verb for QualifyLeadRequest {
    type Record = Lead;

    async fn apply(self, was: Lead, tx: &mut WriteTx<'_>) -> Result<Lead, Error> {
        Ok(diesel::update(leads::table.find(&was.id))
            .set((leads::status.eq(LeadStatus::Qualified), leads::updated_at.eq(clock_timestamp())))
            .returning(Lead::as_returning())
            .get_result(tx.db)
            .await?)
    }
}

impl Verb for ConvertLeadRequest {
    type Record = Lead;

    async fn apply(self, was: Lead, tx: &mut WriteTx<'_>) -> Result<Lead, Error> {
        let id = &self.converted_tenant_id;
        let known: Option<String> = tenants::table
            .find(id)
            .filter(tenants::deleted_at.is_null())
            .for_key_share()
            .select(tenants::id)
            .first(tx.db)
            .await
            .optional()?;
        let id = known.ok_or_else(|| Error::unknown("converted_tenant_id", id))?;
        Ok(diesel::update(leads::table.find(&was.id))
            .set((
                leads::status.eq(LeadStatus::Converted),
                leads::converted_tenant_id.eq(id),
                leads::updated_at.eq(clock_timestamp()),
            ))
            .returning(Lead::as_returning())
            .get_result(tx.db)
            .await?)
    }
}

#[tonic::async_trait]
impl LeadService for Registry {
    async fn list_leads(&self, call: Request<ListLeadsRequest>) -> Reply<ListLeadsResponse> {
        self.list(call).await
    }

    async fn create_lead(&self, call: Request<CreateLeadRequest>) -> Reply<Lead> {
        self.create(call).await
    }

    async fn get_lead(&self, call: Request<GetLeadRequest>) -> Reply<Lead> {
        self.get(call).await
    }

    async fn update_lead(&self, call: Request<UpdateLeadRequest>) -> Reply<Lead> {
        self.update(call).await
    }

    async fn delete_lead(&self, call: Request<DeleteLeadRequest>) -> Reply<DeleteLeadResponse> {
        self.soft_delete(call).await
    }

    async fn qualify_lead(&self, call: Request<QualifyLeadRequest>) -> Reply<Lead> {
        self.apply(call).await
    }

    async fn convert_lead(&self, call: Request<ConvertLeadRequest>) -> Reply<Lead> {
        self.apply(call).await
    }
}
