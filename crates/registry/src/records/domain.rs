//! Domains: internet domain names that a tenant owns.

use authority_api::error::ApiError;
use authority_model::{proto::registry::*, schema::domains, service::DomainService, wire::Time};

use crate::{
    flow::{dns::Unanswered, operations::or_not_found, prelude::*, version::tagged},
    programme::unless_branded,
};

impl RecordRow for Domain {
    type List = ListDomainsRequest;

    fn filtered(by: &ListDomainsRequest) -> domains::BoxedQuery<'_, Pg> {
        let mut query = domains::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(domains::state.eq(state));
        }
        query
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let Some(was) = was else {
            self.verification_token = Some(fresh_token());
            return Ok(());
        };
        if was.fqdn == self.fqdn {
            return Ok(());
        }
        unless_branded(tx.db, &was.fqdn).await?;
        // An update never writes fields that only the server sets.
        diesel::update(domains::table.find(&self.id))
            .set((
                domains::verification_token.eq(fresh_token()),
                domains::verified_at.eq(None::<Time>),
            ))
            .execute(tx.db)
            .await?;
        Ok(())
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        unless_branded(tx.db, &self.fqdn).await
    }
}

impl_queries!(Domain, domains);

impl Entity for Domain {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(Domain, domains);
impl_end!(Domain, domains);

fn fresh_token() -> String {
    format!("svc-verify={}", new_id())
}

impl Registry {
    /// Verifies a domain. The token is looked up outside a transaction. The result is stored unless
    /// the record has changed since.
    async fn verify(&self, call: Request<VerifyDomainRequest>) -> Reply<Domain> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let (id, whose) = (request.id, caller.scope());
        let (read, within) = (id.clone(), caller.tenant().cloned());
        let domain = self.store.read_tx(&whose, async move |db| {
            or_not_found(Domain::find(db, within.as_ref(), &read, false).await, &read)
        });
        let domain = domain.await?;
        let token = domain.verification_token.clone().unwrap_or_default();
        let texts = self.dns.texts(&format!("_svc-challenge.{}", domain.fqdn)).await;
        let is_proved =
            !token.is_empty() && texts.iter().flatten().any(|text| text == token.as_bytes());
        let found = texts.map(|texts| texts.len());
        let now = self.clock.now();
        let verified = self.idempotent(&caller, key, async move |db| {
            if !is_proved {
                return Err(unproved(&domain.fqdn, found));
            }
            let same = domains::table
                .find(&id)
                .filter(domains::fqdn.eq(&domain.fqdn))
                .filter(domains::verification_token.eq(&token));
            let verified: Option<Domain> = diesel::update(same)
                .set((domains::verified_at.eq(now), domains::updated_at.eq(clock_timestamp())))
                .returning(Domain::as_returning())
                .get_result(db)
                .await
                .optional()?;
            verified.ok_or(Error::Refused(ErrorCode::DomainNotVerified))
        });
        Ok(tagged(verified.await?.reply()))
    }
}

#[tonic::async_trait]
impl DomainService for Registry {
    async fn list_domains(&self, call: Request<ListDomainsRequest>) -> Reply<ListDomainsResponse> {
        self.list(call).await
    }

    async fn create_domain(&self, call: Request<CreateDomainRequest>) -> Reply<Domain> {
        self.create(call).await
    }

    async fn get_domain(&self, call: Request<GetDomainRequest>) -> Reply<Domain> {
        self.get(call).await
    }

    async fn update_domain(&self, call: Request<UpdateDomainRequest>) -> Reply<Domain> {
        self.update(call).await
    }

    async fn delete_domain(
        &self,
        call: Request<DeleteDomainRequest>,
    ) -> Reply<DeleteDomainResponse> {
        self.delete(call).await
    }

    async fn verify_domain(&self, call: Request<VerifyDomainRequest>) -> Reply<Domain> {
        self.verify(call).await
    }
}

/// The time until the next attempt if no DNS server answered, in seconds.
const RETRY_AFTER: &str = "30";

/// The error for an unproved domain. `found` is the number of other TXT records at the name.
fn unproved(fqdn: &str, found: Result<usize, Unanswered>) -> Error {
    let name = format!("_svc-challenge.{fqdn}");
    let refused = |text| ApiError::new(ErrorCode::DomainNotVerified, text);
    let text = match found {
        Err(Unanswered) => {
            let text = format!(
                "no DNS server answered whether there is a TXT record at `{name}`, which may be \
                 temporary: try again, or see the setting `dns.servers`"
            );
            return refused(text).with("retry_after", RETRY_AFTER).into();
        }
        Ok(0) => format!(
            "no TXT record was found at `{name}`: publish the domain's `verification_token` there"
        ),
        Ok(_) => format!(
            "no TXT record at `{name}` is the domain's `verification_token`: publish it there"
        ),
    };
    refused(text).into()
}
