//! Reality snapshots: dated observations. They never change. Database triggers determine the newest
//! snapshot that counts.

use authority_ids::RecordId;
use authority_model::{
    proto::reality::*,
    schema::{reality_anchors, reality_snapshots},
};
use diesel::dsl::{not, sql};

use super::{freshness, snapshot_rules};
use crate::flow::prelude::*;

/// The name of the kind in IDs of snapshots.
const ID_KIND: &str = "snapshot";

/// [`freshness::is_stale`] as an SQL condition.
const IS_STALE: &str = "(coalesce(reality_snapshots.valid_until <= clock_timestamp(), false) OR EXISTS (\
     SELECT FROM reality_anchors a WHERE a.id = reality_snapshots.anchor_id \
     AND reality_snapshots.sampled_at + make_interval(secs => \
         (a.freshness_contract ->> 'max_staleness_seconds')::double precision) \
         <= clock_timestamp()))";

impl RecordRow for RealitySnapshot {
    type List = ListRealitySnapshotsRequest;
    /// Decisions depend on the newest snapshot of each anchor.
    const AUTHORITY: bool = true;

    fn filtered(by: &ListRealitySnapshotsRequest) -> reality_snapshots::BoxedQuery<'_, Pg> {
        let mut query = reality_snapshots::table.into_boxed();
        if !by.deleted {
            query = query.filter(reality_snapshots::deleted_at.is_null());
        }
        if let Some(anchor_id) = &by.anchor_id {
            query = query.filter(reality_snapshots::anchor_id.eq(anchor_id));
        }
        if let Some(since) = by.since {
            query = query.filter(reality_snapshots::sampled_at.ge(since));
        }
        match by.is_stale.as_deref() {
            Some("true") => query.filter(sql::<Bool>(IS_STALE)),
            Some(_) => query.filter(not(sql::<Bool>(IS_STALE))),
            None => query,
        }
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn validate_record(&self, found: &mut Violations) {
        snapshot_rules::objects(self, found);
    }

    async fn resolve_tenant(
        &mut self,
        _db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        references::own_tenant(&mut self.tenant_id, Self::KIND, within)
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(ID_KIND, new_id()).into())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let anchor: Option<RealityAnchor> = reality_anchors::table
            .filter(reality_anchors::id.eq(&self.anchor_id))
            .filter(reality_anchors::tenant_id.eq(self.tenant_id()))
            .filter(reality_anchors::deleted_at.is_null())
            .select(RealityAnchor::as_select())
            .first(tx.db)
            .await
            .optional()?;
        let anchor =
            anchor.ok_or_else(|| Error::unknown("reality_snapshot.anchor_id", &self.anchor_id))?;
        let now = freshness::moment(freshness::database_now(tx.db).await?);
        snapshot_rules::complete(self, &anchor, now)
    }

    async fn after_insert(&self, made: &mut Self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        freshness::fill(tx.db, std::slice::from_mut(made)).await
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        let mut filled = rows.to_vec();
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            freshness::fill(db, &mut filled).await?;
            Ok::<_, Error>(filled)
        });
        rows.clone_from_slice(&read.await?);
        Ok(())
    }
}

impl_queries!(RealitySnapshot, reality_snapshots, newest first);
impl_soft_delete!(RealitySnapshot, reality_snapshots);
