//! Models: what agents run on.

use authority_model::{
    proto::registry::*, schema::models, service::ModelService, state::ModelState,
};

use super::prelude::*;

impl Row for Model {
    type List = ListModelsRequest;
    const FINAL: &'static [Self::State] = &[ModelState::Retired];
    const AUTHORITY: bool = true;

    fn filtered(by: &ListModelsRequest) -> models::BoxedQuery<'_, Pg> {
        let mut query = models::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(models::state.eq(state));
        }
        if let Some(risk_tier) = &by.risk_tier {
            query = query.filter(models::risk_tier.eq(risk_tier));
        }
        query
    }
}

impl_queries!(Model, models);
impl_referenced!(Model, models);

impl Entity for Model {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ModelState::Retired);
}

impl_save!(Model, models);
impl_end!(Model, models);

#[tonic::async_trait]
impl ModelService for Registry {
    async fn list_models(&self, call: Request<ListModelsRequest>) -> Reply<ListModelsResponse> {
        self.list(call).await
    }

    async fn create_model(&self, call: Request<CreateModelRequest>) -> Reply<Model> {
        self.create(call).await
    }

    async fn get_model(&self, call: Request<GetModelRequest>) -> Reply<Model> {
        self.get(call).await
    }

    async fn update_model(&self, call: Request<UpdateModelRequest>) -> Reply<Model> {
        self.update(call).await
    }

    async fn delete_model(&self, call: Request<DeleteModelRequest>) -> Reply<DeleteModelResponse> {
        self.delete(call).await
    }
}
