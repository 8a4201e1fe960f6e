//! The delegations of a chain, with delegator and delegate, for output to people.

use std::collections::BTreeMap;

use authority_client::SURFACE;
use authority_ids::{DelegationRef, IdParts, PrincipalRef};
use futures_util::future::join_all;
use serde_json::Value;

use crate::{names::Names, server::Server, text};

/// The most delegations that are read, starting at the root.
const MOST: usize = 10;

/// Delegator and delegate, by a delegation's id.
pub(crate) struct Links(BTreeMap<DelegationRef, (PrincipalRef, PrincipalRef)>);

impl Links {
    /// Reads an authority and its chain, as far as the credential may read them.
    pub(super) async fn of(server: &Server, authority: &Value) -> Self {
        if server.view().json {
            return Self(BTreeMap::new());
        }
        let chain = authority["chain"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let own = Some(text::of(authority, "id"));
        let ids = chain.take(MOST).chain(own).filter(|id| IdParts::is(id, "delegation"));
        let mut ids: Vec<&str> = ids.collect();
        ids.dedup();
        let read = join_all(ids.into_iter().map(|id| read(server, id))).await;
        Self(read.into_iter().flatten().collect())
    }

    /// All delegators and delegates.
    pub(super) fn people(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(|(from, to)| [from.as_str(), to.as_str()])
    }

    /// Returns `by … to …`; `None` if the delegation was not read.
    pub(super) fn parties(&self, id: &str, names: &Names) -> Option<String> {
        let (from, to) = self.0.get(id)?;
        let to = names.beside(to);
        match from.as_str() {
            "" => Some(format!("to {to}")),
            from => Some(format!("by {} to {to}", names.beside(from))),
        }
    }
}

async fn read(server: &Server, id: &str) -> Option<(DelegationRef, (PrincipalRef, PrincipalRef))> {
    let path = server.path(&[SURFACE, "delegations", id]);
    let found: Value = server.json(&server.get(&path, &()).await.ok()?).ok()?;
    let party = |member: &str| text::of(&found["delegation"], member).into();
    Some((id.into(), (party("delegator_id"), party("delegate_id"))))
}
