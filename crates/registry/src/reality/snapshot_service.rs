//! The snapshot service, for the owner and for feeders.

use authority_api::identity::caller;
use authority_model::{proto::reality::*, service::RealitySnapshotService};
use tonic::Response;

use super::{feed::SnapshotFeed, snapshot_rules, snapshot_verify};
use crate::flow::{operations::admit, prelude::*};

/// The snapshot service.
#[derive(Clone)]
pub struct RealitySnapshots {
    pub registry: Registry,
    pub feed: SnapshotFeed,
}

#[tonic::async_trait]
impl RealitySnapshotService for RealitySnapshots {
    async fn list_reality_snapshots(
        &self,
        call: Request<ListRealitySnapshotsRequest>,
    ) -> Reply<ListRealitySnapshotsResponse> {
        self.registry.list(call).await
    }

    async fn create_reality_snapshot(
        &self,
        call: Request<CreateRealitySnapshotRequest>,
    ) -> Reply<RealitySnapshot> {
        self.registry.create(call).await
    }

    async fn feed_reality_snapshot(
        &self,
        call: Request<FeedRealitySnapshotRequest>,
    ) -> Reply<RealitySnapshot> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request, mut found) = admit(call)?;
        let row = request.reality_snapshot.unwrap_or_default();
        found.within(RealitySnapshot::KIND, |found| snapshot_rules::fed(&row, found));
        Error::unless_clean(found)?;
        self.feed.one(&self.registry, &caller, key, row).await
    }

    async fn feed_reality_snapshots(
        &self,
        call: Request<FeedRealitySnapshotsRequest>,
    ) -> Reply<FeedRealitySnapshotsResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = snapshot_rules::batch(call)?;
        self.feed.several(&self.registry, &caller, key, request.reality_snapshots).await
    }

    async fn get_reality_snapshot(
        &self,
        call: Request<GetRealitySnapshotRequest>,
    ) -> Reply<RealitySnapshot> {
        let caller = caller(&call)?;
        let found = self.registry.get(call).await?;
        self.registry.completed(&caller, found).await
    }

    async fn delete_reality_snapshot(
        &self,
        call: Request<DeleteRealitySnapshotRequest>,
    ) -> Reply<DeleteRealitySnapshotResponse> {
        let caller = caller(&call)?;
        let mut gone: Response<DeleteRealitySnapshotResponse> =
            self.registry.soft_delete(call).await?;
        if let Some(row) = &mut gone.get_mut().reality_snapshot {
            RealitySnapshot::fill_computed(&self.registry, &caller, std::slice::from_mut(row))
                .await?;
        }
        Ok(gone)
    }

    async fn verify_reality_snapshot(
        &self,
        call: Request<VerifyRealitySnapshotRequest>,
    ) -> Reply<RealitySnapshot> {
        snapshot_verify::verify(&self.registry, call).await
    }
}
