//! Approval requests for the examples of the operations on them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::World;
use crate::support::asking;

/// The person of a token, as requests name who asked.
fn identity(token: &str) -> String {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&payload).unwrap();
    format!("{}|{}", claims["iss"].as_str().unwrap(), claims["sub"].as_str().unwrap())
}

impl World {
    /// The id of an approval in the state that the path's operation needs.
    pub(super) async fn held(&mut self, path: &str) -> String {
        // Each asks another question: an answered one opens no request.
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
        if path.starts_with("/api/v1/app/") && path.ends_with("/cancel") {
            let asker = identity(&self.client(path).token);
            let asked = format!(
                "UPDATE approvals SET requested_by = \
                 ARRAY[jsonb_build_object('kind', 'person', 'id', '{asker}')] WHERE id = '{id}'"
            );
            self.app.database.run(&asked).await;
        }
        id
    }
}
