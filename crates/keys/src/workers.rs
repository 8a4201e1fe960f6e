//! Keeps the keys loaded in a node current.

use std::time::Duration;

use super::Keys;
use authority_process::worker::Worker;

/// The interval of reloading the inventory, which includes changes by other nodes.
const REFRESH: Duration = Duration::from_secs(30);
const ROTATION: Duration = Duration::from_secs(60);

impl Keys {
    /// Returns the workers that reload the inventory and take due rotation steps.
    ///
    /// A node that cannot read the inventory might sign with a revoked key. It then reports that it
    /// is not ready.
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
