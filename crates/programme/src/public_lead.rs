//! Enquiries from the public. The response does not reveal whether the e-mail address is known: the
//! address is not looked up and no mail is sent.

use std::net::IpAddr;

use authority_api::{
    error::ApiError,
    idempotency::{self, Done, IdempotencyKey},
    identity::{Caller, checked, client_address, idempotency_key},
    rate_limit::AppliedLimits,
};
use authority_ids::{ConsultantRef, RecordId};
use authority_model::{
    proto::programme::{
        CaptureLeadRequest, CaptureLeadResponse, CountLeadsRequest, CountLeadsResponse,
    },
    record::RpcRequest,
    service::{PublicLeadService, Reply},
    state::LeadStatus,
};
use authority_store::{self as store, Db, RunQueryDsl, new_id};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Bytea, Nullable, Text, Timestamptz};
use prost::Message;
use tonic::{Request, Response};

use super::{Programme, limits::LEADS, sweep::KEPT};

/// The prefix of an enquiry's source if it comes from a brand's form. The brand's ID follows.
pub const BRAND_SOURCE: &str = "widget:";
/// The stored place of consent, for enquiries from the public.
const CONSENT_SOURCE: &str = "public";

/// Stores an enquiry, unless the same enquiry was stored within the last day.
const INSERT: &str = "
    WITH fresh AS (
        INSERT INTO lead_repeats AS r (digest, at) VALUES ($1, $2)
        ON CONFLICT (digest) DO UPDATE SET at = EXCLUDED.at WHERE r.at <= $3
        RETURNING digest
    )
    INSERT INTO leads (id, status, submitter_email, submitter_name, organisation, sector, country,
                       message, consent_marketing, consent_at, consent_source, source, created_by,
                       assigned_consultant_id)
    SELECT $4, $5, $6, $7, $8, $9, $10, $11, $12, CASE WHEN $12 THEN $2 END,
           CASE WHEN $12 THEN $13 END, $14, $15, $16
    FROM fresh";

impl Programme {
    /// Stores a client's enquiry, once for each pair of client address and idempotency key.
    /// `assigned` is the consultant that the enquiry is for. Also returns the client's limit.
    ///
    /// # Errors
    /// The client's limit is reached, or the enquiry is invalid. An invalid enquiry also counts.
    pub async fn capture(
        &self,
        client: Option<IpAddr>,
        key: Option<String>,
        request: CaptureLeadRequest,
        assigned: Option<ConsultantRef>,
    ) -> Result<(Done<CaptureLeadResponse>, AppliedLimits), ApiError> {
        let (code, left) = self.count(&LEADS, client).await?;
        checked(&request)?;
        unless_a_widgets(&request, assigned.as_ref())?;
        let caller = Caller::anonymous();
        let key = key.map(|key| {
            let bytes = request.encode_to_vec();
            IdempotencyKey::new(&caller, CaptureLeadRequest::METHOD, key, &bytes)
                .of_address(&hex::encode(code))
        });
        let (now, digest) = (self.0.clock.now(), self.digest(&request, assigned.as_ref()));
        let _turn = self.turn().await?;
        let (by, scope) = (caller.actor.clone(), caller.scope());
        let done = idempotency::execute(&self.0.store, &scope, now, key, async move |db| {
            insert(db, request, assigned, digest, now, by).await?;
            let status = LeadStatus::Captured.to_string();
            Ok::<_, ApiError>(CaptureLeadResponse { status })
        });
        Ok((done.await?, left.into()))
    }

    /// The digest that identifies repeated enquiries. It includes the consultant: enquiries to
    /// different consultants are distinct.
    fn digest(&self, request: &CaptureLeadRequest, assigned: Option<&ConsultantRef>) -> Vec<u8> {
        let (email, to) =
            (request.email.to_lowercase(), assigned.map_or("", ConsultantRef::as_str));
        let message = request.message.as_deref().unwrap_or_default();
        self.0.keys.mac("lead", format!("{to}\n{email}\n{message}").as_bytes()).to_vec()
    }
}

/// Refuses a brand's source for an enquiry that does not come from a brand's form.
fn unless_a_widgets(
    request: &CaptureLeadRequest,
    assigned: Option<&ConsultantRef>,
) -> Result<(), ApiError> {
    let source = request.source.as_deref().unwrap_or_default();
    if assigned.is_none() && source.starts_with(BRAND_SOURCE) {
        let problem = format!(
            "must not begin with `{BRAND_SOURCE}`, which is reserved for the widgets of brands"
        );
        return Err(ApiError::field("source", problem));
    }
    Ok(())
}

async fn insert(
    db: &mut Db,
    lead: CaptureLeadRequest,
    assigned: Option<ConsultantRef>,
    digest: Vec<u8>,
    now: DateTime<Utc>,
    by: String,
) -> Result<(), store::Error> {
    diesel::sql_query(INSERT)
        .bind::<Bytea, _>(digest)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now - KEPT)
        .bind::<Text, _>(RecordId::new("lead", new_id()).to_string())
        .bind::<Text, _>(LeadStatus::Captured.as_str())
        .bind::<Text, _>(lead.email)
        .bind::<Nullable<Text>, _>(lead.name)
        .bind::<Nullable<Text>, _>(lead.organisation)
        .bind::<Nullable<Text>, _>(lead.sector)
        .bind::<Nullable<Text>, _>(lead.country)
        .bind::<Nullable<Text>, _>(lead.message)
        .bind::<Bool, _>(lead.consent_marketing)
        .bind::<Text, _>(CONSENT_SOURCE)
        .bind::<Nullable<Text>, _>(lead.source)
        .bind::<Text, _>(by)
        .bind::<Nullable<Text>, _>(assigned.map(String::from))
        .execute(db)
        .await?;
    Ok(())
}

#[tonic::async_trait]
impl PublicLeadService for Programme {
    async fn count_leads(&self, _: Request<CountLeadsRequest>) -> Reply<CountLeadsResponse> {
        let (_turn, now) = (self.turn().await?, self.0.clock.now());
        Ok(Response::new(self.0.counter.count(&self.0.store, now).await?))
    }

    async fn capture_lead(&self, call: Request<CaptureLeadRequest>) -> Reply<CaptureLeadResponse> {
        let key = idempotency_key(call.metadata())?;
        let client = client_address(&call);
        let (done, limits) = self.capture(client, key, call.into_inner(), None).await?;
        Ok(limits.shown_in(done.reply()))
    }
}
