//! Reality anchors: sources of truth that ground actions.

use authority_model::{
    proto::reality::*, schema::reality_anchors, service::RealityAnchorService,
    state::RealityAnchorStatus,
};

use super::{anchor_limit, anchor_rules, anchor_verify, jwks};
use crate::flow::{
    operations::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

impl RecordRow for RealityAnchor {
    type List = ListRealityAnchorsRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListRealityAnchorsRequest) -> reality_anchors::BoxedQuery<'_, Pg> {
        let mut query = reality_anchors::table.into_boxed();
        if !by.deleted {
            query = query.filter(reality_anchors::deleted_at.is_null());
        }
        if let Some(anchor_type) = &by.anchor_type {
            query = query.filter(reality_anchors::anchor_type.eq(anchor_type));
        }
        if let Some(status) = &by.status {
            query = query.filter(reality_anchors::status.eq(status));
        }
        if let Some(q) = &by.q {
            let pattern = containing(q);
            let named = reality_anchors::display_name
                .ilike(pattern.clone())
                .or(reality_anchors::description.ilike(pattern).assume_not_null());
            query = query.filter(named);
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn searches(by: &ListRealityAnchorsRequest) -> bool {
        by.q.is_some()
    }

    fn defaults(&mut self) {
        names::or(&mut self.status, RealityAnchorStatus::Draft.as_str());
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::patterns("grounds_actions", &self.grounds_actions, found);
        anchor_rules::objects(self, found);
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        anchor_rules::references(tx.db, self, was).await?;
        self.jwk_thumbprints = jwks::keys(self).iter().filter_map(jwks::thumbprint).collect();
        if was.is_none() {
            self.version = 1;
        }
        let active = Some(RealityAnchorStatus::Active);
        let begins = self.known_state() == active && was.and_then(Self::known_state) != active;
        if begins { anchor_limit::permit(tx.db, self).await } else { Ok(()) }
    }
}

/// Returns the LIKE pattern of texts that contain `text`.
fn containing(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern + "%"
}

impl_queries!(RealityAnchor, reality_anchors);
impl_soft_delete!(RealityAnchor, reality_anchors);

impl Save for RealityAnchor {
    fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
        diesel::update(reality_anchors::table.find(&row.id))
            .filter(reality_anchors::tenant_id.eq(&row.tenant_id))
            .set((
                row,
                // Clients don't set this field; it is derived from `source`.
                reality_anchors::jwk_thumbprints.eq(&row.jwk_thumbprints),
                reality_anchors::updated_at.eq(clock_timestamp()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl RealityAnchorService for Registry {
    async fn list_reality_anchors(
        &self,
        call: Request<ListRealityAnchorsRequest>,
    ) -> Reply<ListRealityAnchorsResponse> {
        self.list(call).await
    }

    async fn create_reality_anchor(
        &self,
        call: Request<CreateRealityAnchorRequest>,
    ) -> Reply<RealityAnchor> {
        self.create(call).await
    }

    async fn get_reality_anchor(
        &self,
        call: Request<GetRealityAnchorRequest>,
    ) -> Reply<RealityAnchor> {
        self.get(call).await
    }

    async fn update_reality_anchor(
        &self,
        call: Request<UpdateRealityAnchorRequest>,
    ) -> Reply<RealityAnchor> {
        self.update(call).await
    }

    async fn delete_reality_anchor(
        &self,
        call: Request<DeleteRealityAnchorRequest>,
    ) -> Reply<DeleteRealityAnchorResponse> {
        self.soft_delete(call).await
    }

    async fn verify_reality_anchor(
        &self,
        call: Request<VerifyRealityAnchorRequest>,
    ) -> Reply<RealityAnchor> {
        anchor_verify::verify(self, call).await
    }

    async fn deprecate_reality_anchor(
        &self,
        call: Request<DeprecateRealityAnchorRequest>,
    ) -> Reply<RealityAnchor> {
        deprecate(self, call).await
    }
}

async fn deprecate(
    registry: &Registry,
    call: Request<DeprecateRealityAnchorRequest>,
) -> Reply<RealityAnchor> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let deprecated = registry.idempotent(&caller, key, async move |db| {
        let id = &request.id;
        let was = or_not_found(RealityAnchor::lock(db, within.as_ref(), id).await, id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let deprecated = diesel::update(reality_anchors::table.find(id))
            .filter(reality_anchors::tenant_id.eq(&was.tenant_id))
            .set((
                reality_anchors::status.eq(RealityAnchorStatus::Deprecated),
                reality_anchors::deprecate_reason.eq(request.reason),
                reality_anchors::updated_at.eq(clock_timestamp()),
            ))
            .returning(RealityAnchor::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(deprecated)
    });
    let deprecated = deprecated.await?;
    registry.wait_for_graph::<RealityAnchor>().await;
    Ok(tagged(deprecated.reply()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_for_the_text_itself() {
        assert_eq!(containing("a%b_c\\d"), r"%a\%b\_c\\d%");
    }
}
