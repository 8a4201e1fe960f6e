//! Domains: internet names that a tenant holds.

use authority_model::{proto::registry::*, schema::domains, service::DomainService};

use super::prelude::*;

impl Row for Domain {
    type List = ListDomainsRequest;

    fn filtered(by: &ListDomainsRequest) -> domains::BoxedQuery<'_, Pg> {
        let mut query = domains::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(domains::state.eq(state));
        }
        query
    }

    async fn before_save(
        &mut self,
        was: Option<&Self>,
        _tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        if was.is_none() {
            self.verification_token =
                Some(format!("svc-verify={}", authority_core::store::new_id()));
        }
        Ok(())
    }
}

impl_queries!(Domain, domains);

impl Entity for Domain {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(Domain, domains);
impl_end!(Domain, domains);

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
}
