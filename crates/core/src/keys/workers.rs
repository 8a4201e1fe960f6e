//! What keeps a node's keys those of the installation.

use std::time::Duration;

use super::Keys;
use crate::worker::Worker;

/// How often the inventory is read again: what another node made, activated or revoked.
const REFRESH: Duration = Duration::from_secs(30);
const ROTATION: Duration = Duration::from_secs(60);

impl Keys {
    /// They read the inventory again, and take due steps of rotations. A node that cannot read the
    /// inventory might sign with a revoked key, so it is not ready.
    pub fn workers(&self) -> [Worker; 2] {
        let (refreshed, rotated) = (self.clone(), self.clone());
        let refresh = Worker::periodic("keys_refresh", REFRESH, move || {
            let keys = refreshed.clone();
            async move { keys.refresh().await }
        });
        let rotation = Worker::periodic("keys_rotation", ROTATION, move || {
            let keys = rotated.clone();
            async move { keys.rotate().await.map(drop) }
        });
        [refresh.critical(), rotation]
    }
}
