//! Creates an endpoint and its secret.

use authority_crypto::random;
use authority_keys::EndpointColumn;
use authority_model::{proto::events::*, schema::webhook_endpoints};
use authority_store as store;
use authority_webhook::signing::Secret;

use super::{WebhookEndpoints, demand, headers, holder::Holder, position, rules};
use crate::flow::{operations::admit, prelude::*, tenant};

/// The maximum number of endpoints of a tenant. Deleted endpoints do not count.
const MOST: i64 = 20;

impl WebhookEndpoints {
    pub(super) async fn create(
        &self,
        call: Request<CreateWebhookEndpointRequest>,
    ) -> Reply<CreateWebhookEndpointResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request, mut faults) = admit(call)?;
        let mut row = request.webhook_endpoint.unwrap_or_default();
        let mut given = None;
        faults.within(WebhookEndpoint::KIND, |faults| {
            row.reject_output_only(faults);
            rules::url(&mut row, &self.0.destinations.urls, faults);
            row.defaults();
            row.validate_record(faults);
            given = headers::take(&mut row, faults);
        });
        Error::unless_clean(faults)?;
        let keys = &self.0.keys;
        let id = row.new_id("").map_err(Error::from)?;
        let secret = fresh()?;
        let seal = |column, plain: &[u8]| keys.seal_endpoint(&id, column, plain);
        let sealed = seal(EndpointColumn::Secret, secret.as_bytes()).map_err(Error::from)?;
        let sealed_headers = given.map(|given| seal(EndpointColumn::Headers, &given)).transpose();
        let sealed_headers = sealed_headers.map_err(Error::from)?;
        let tenant = TenantId::parse(row.tenant_id()).ok();
        let key = key.map(|key| key.within(tenant.as_ref()).sealed(keys.clone()));
        let by = caller.clone();
        let made = self.0.idempotent(&caller, key, async move |db| {
            row.resolve_tenant(db, by.tenant()).await?;
            // A concurrent deletion of the tenant either waits for this lock and also deletes this
            // endpoint, or has already committed.
            tenant::lock(db, by.tenant(), row.tenant_id()).await?;
            let holder = Holder::of(db, &by).await?;
            if count(db, row.tenant_id()).await? >= MOST {
                return Err(Error::Refused(ErrorCode::LimitReached));
            }
            row.stamp_created(id, by.actor.clone());
            row.key_id = holder.key_id;
            let made = diesel::insert_into(webhook_endpoints::table)
                .values((
                    &row,
                    webhook_endpoints::secret.eq(sealed),
                    webhook_endpoints::sealed_headers.eq(sealed_headers),
                    webhook_endpoints::person_subject.eq(holder.person_subject),
                    webhook_endpoints::person_email.eq(holder.person_email),
                ))
                .returning(WebhookEndpoint::as_returning())
                .get_result::<WebhookEndpoint>(db)
                .await?;
            position::start(db, &made).await?;
            demand::keep(db, &made).await?;
            Ok::<_, Error>(CreateWebhookEndpointResponse {
                webhook_endpoint: Some(made),
                secret: secret.reveal(),
            })
        });
        let made = made.await?;
        self.0.shown_again(&caller, &made, made.message.webhook_endpoint.as_ref()).await?;
        self.0.wait_for_graph::<WebhookEndpoint>().await;
        Ok(made.reply())
    }
}

pub(super) fn fresh() -> Result<Secret, Error> {
    let bytes = random().map_err(|_| store::Error::Internal("no randomness".to_owned()));
    Ok(Secret::new(bytes.map_err(Error::from)?))
}

async fn count(db: &mut Db, tenant_id: &str) -> QueryResult<i64> {
    webhook_endpoints::table
        .filter(webhook_endpoints::tenant_id.eq(tenant_id))
        .filter(webhook_endpoints::deleted_at.is_null())
        .count()
        .get_result(db)
        .await
}
