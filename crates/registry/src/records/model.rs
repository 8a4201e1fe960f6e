//! The AI models that agents use.

use authority_model::{
    proto::registry::*,
    schema::{models, principals},
    service::ModelService,
    state::ModelState,
};

use crate::flow::prelude::*;
use authority_decision::{levels::RiskTier, milder::MILDER};

impl RecordRow for Model {
    type List = ListModelsRequest;
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

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        self.warnings = match was {
            Some(was) => milder(self, was, tx.db).await?,
            None => Vec::new(),
        };
        Ok(())
    }
}

/// Warns if a lower risk tier makes the requests of the model's agents count as less risky. The
/// tier of a retired model still applies.
async fn milder(model: &Model, was: &Model, db: &mut Db) -> QueryResult<Vec<String>> {
    let tier = |model: &Model| model.risk_tier.as_deref().and_then(RiskTier::from_word);
    let Some(before) = tier(was).filter(|before| tier(model) < Some(*before)) else {
        return Ok(Vec::new());
    };
    let agents: i64 = principals::table
        .filter(principals::tenant_id.eq(&model.tenant_id))
        .filter(principals::model_id.eq(&model.id))
        .count()
        .get_result(db)
        .await?;
    let now = tier(model).map_or("not declared", RiskTier::word);
    let agents = if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") };
    Ok(vec![format!("{MILDER}risk_tier {now}, was {before}: for requests of {agents}")])
}

impl_queries!(Model, models);
impl_referenced!(Model, models);

impl Entity for Model {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ModelState::Retired);
}

impl Save for Model {
    /// Also stores the list of loosened requirements, which only the server sets.
    fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
        diesel::update(models::table.find(&row.id))
            .filter(models::tenant_id.eq(&row.tenant_id))
            .set((
                row,
                models::warnings.eq(&row.warnings),
                models::updated_at.eq(clock_timestamp()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

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
