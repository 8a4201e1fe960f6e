//! Whether what was permitted still stands: asked before an allow is repeated, and by who watches.

use std::sync::Arc;

use serde_json::Value;

use super::Runtime;
use authority_engine::{
    decision::{Draft, Facts, Request, Standing},
    error::{ErrorCode, Refusal},
    graph::Cell,
};

impl Runtime {
    /// What has become of a permission by now, and the revision of the tenant that tells it. A
    /// tenant that is not there permits nothing. From memory alone.
    pub(super) fn standing(&self, cell: Option<&Cell>, permitted: &Request) -> (i64, Standing) {
        let gathered = cell.map(|cell| cell.read().gather(permitted)).unwrap_or_default();
        let revision = gathered.revision;
        let facts = Facts::new(Arc::new(gathered));
        (revision, Standing::judge(permitted, &facts, self.0.clock.now()))
    }
}

/// The request of a permitted decision, bound to the delegation that it was permitted under: that
/// another would permit it now does not keep the first in force.
pub(super) fn permitted(request: Request, record: &[u8]) -> Result<Request, Refusal> {
    let delegation_id = delegation_of(record).or_else(|| request.delegation_id.clone());
    let bound = Draft { delegation_id, ..request.into_draft() };
    Request::new(bound).map_err(|_| Refusal::plain(ErrorCode::Internal))
}

fn delegation_of(record: &[u8]) -> Option<String> {
    let record: Value = serde_json::from_slice(record).ok()?;
    let authority = &record["verdict"]["authority"];
    let is_delegation = authority["kind"] == "delegation";
    is_delegation.then(|| authority["id"].as_str().map(str::to_owned)).flatten()
}
