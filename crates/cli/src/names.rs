//! The names of principals, shown next to their ids to people only.

use std::collections::{BTreeMap, BTreeSet};

use authority_client::{SURFACE, Surface};
use futures_util::future::join_all;
use serde_json::Value;

use crate::{
    cells::with_short,
    narrow,
    server::Server,
    text::{self, plain},
};

/// The most names that are looked up for one output. Further ids are shown without a name.
const MOST: usize = 25;

/// Display names by id.
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Looks up the names of these principals, as far as the credential may read them.
    pub(crate) async fn of<'a>(server: &Server, ids: impl Iterator<Item = &'a str>) -> Self {
        // API keys cannot read principals, and scripts need no names.
        if server.view().json || server.opens(Surface::ApiKeys) {
            return Self(BTreeMap::new());
        }
        let ids: BTreeSet<_> = ids.filter(|id| !id.is_empty()).take(MOST).collect();
        let found = join_all(ids.into_iter().map(|id| named(server, id))).await;
        Self(found.into_iter().flatten().collect())
    }

    /// The id with the name in brackets, if it is known.
    pub(crate) fn beside(&self, id: &str) -> String {
        match self.0.get(id) {
            Some(name) => format!("{} ({name})", plain(id)),
            None => plain(id),
        }
    }

    /// A cell with the id and the name in brackets. A narrow table has only an agent's name.
    pub(crate) fn cell(&self, id: &str) -> Value {
        let whole = self.beside(id);
        with_short(&whole, narrow::named(id).unwrap_or(&whole))
    }
}

async fn named(server: &Server, id: &str) -> Option<(String, String)> {
    let path = server.path(&[SURFACE, "principals", id]);
    let found: Value = server.json(&server.get(&path, &()).await.ok()?).ok()?;
    let principal = &found["principal"];
    let names = ["display_name", "email", "name"].map(|member| text::of(principal, member));
    let name = names.into_iter().find(|name| !name.is_empty())?;
    Some((id.to_owned(), plain(name)))
}

/// The text that a person types: an agent's name, or the last part of another id.
pub(crate) fn last_part(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or(id)
}
