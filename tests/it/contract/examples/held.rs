//! Approval requests for the examples of the operations on them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::json;

use super::World;
use crate::support::asking;

impl World {
    /// Returns the id of an approval in a state that permits the path's operation.
    pub(super) async fn held(&mut self, path: &str) -> String {
        // Each request must differ, because a repeated request opens no other approval.
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let hold = asking(25_000.0 + f64::from(ASKED.fetch_add(1, Relaxed)), "DE");
        let (_, held) = self.key.post("/api/v1/runtime/evaluate", hold).await;
        let id = held["approval_id"].as_str().unwrap().to_owned();
        if path.ends_with("/withdraw") {
            let approve = format!("/api/v1/approvals/{id}/approve");
            assert_eq!(self.app.owner().post(&approve, json!({})).await.0, 200);
        }
        if path.ends_with("/reopen") {
            let decline = format!("/api/v1/approvals/{id}/decline");
            assert_eq!(self.app.owner().post(&decline, json!({"reason": "x"})).await.0, 200);
        }
        id
    }
}
