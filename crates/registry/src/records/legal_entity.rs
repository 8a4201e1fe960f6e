//! Legal entities: the companies and bodies behind a tenant.

use authority_model::{proto::registry::*, schema::legal_entities, service::LegalEntityService};

use crate::flow::prelude::*;

impl RecordRow for LegalEntity {
    type List = ListLegalEntitiesRequest;

    fn filtered(by: &ListLegalEntitiesRequest) -> legal_entities::BoxedQuery<'_, Pg> {
        let mut query = legal_entities::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(legal_entities::state.eq(state));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if self.parent_legal_entity_id.as_ref().is_some_and(|parent| *parent == self.id) {
            found.add("parent_legal_entity_id", "must not be the record itself");
        }
    }

    async fn validate_with_store(
        &self,
        _: &Registry,
        _: &Caller,
        patched: Option<&str>,
    ) -> Result<Violations, Error> {
        let mut found = Violations::default();
        if patched.is_none() || !self.country_code.is_empty() {
            rules::country("country_code", &self.country_code, &mut found);
        }
        Ok(found)
    }
}

impl_queries!(LegalEntity, legal_entities);

impl Entity for LegalEntity {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(LegalEntity, legal_entities);
impl_end!(LegalEntity, legal_entities);

#[tonic::async_trait]
impl LegalEntityService for Registry {
    async fn list_legal_entities(
        &self,
        call: Request<ListLegalEntitiesRequest>,
    ) -> Reply<ListLegalEntitiesResponse> {
        self.list(call).await
    }

    async fn create_legal_entity(
        &self,
        call: Request<CreateLegalEntityRequest>,
    ) -> Reply<LegalEntity> {
        self.create(call).await
    }

    async fn get_legal_entity(&self, call: Request<GetLegalEntityRequest>) -> Reply<LegalEntity> {
        self.get(call).await
    }

    async fn update_legal_entity(
        &self,
        call: Request<UpdateLegalEntityRequest>,
    ) -> Reply<LegalEntity> {
        self.update(call).await
    }

    async fn delete_legal_entity(
        &self,
        call: Request<DeleteLegalEntityRequest>,
    ) -> Reply<DeleteLegalEntityResponse> {
        self.delete(call).await
    }
}
