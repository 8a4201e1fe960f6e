//! The names of principals, as far as the caller may read them.

use std::collections::HashMap;

use authority_ids::IdParts;
use authority_model::proto::registry::GetPrincipalRequest;

use crate::kit::{calls::some_at_once, rpc, show::short, view::View};

/// The maximum number of names read for a page. Further principals are shown by their ids.
const MOST: usize = 60;

/// A principal's name, and its id.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) id: String,
}

/// The display names of principals, by their ids.
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    pub(crate) async fn of(view: &View, mut ids: Vec<String>) -> Self {
        ids.sort();
        ids.dedup();
        ids.truncate(MOST);
        if !view.may(rpc::GET_PRINCIPAL) {
            return Self(HashMap::new());
        }
        let read = ids.into_iter().filter(|id| !id.is_empty()).map(|id| async move {
            let request = GetPrincipalRequest { id: id.clone(), ..GetPrincipalRequest::default() };
            let read = view.calls.call(&request).await;
            Some((id, read.ok()?.display_name))
        });
        Self(some_at_once(read).await.into_iter().flatten().collect())
    }

    /// Reads the names that [`Self::called`] needs. An agent's name is in its id.
    pub(crate) async fn to_call(view: &View, mut ids: Vec<String>) -> Self {
        ids.retain(|id| !is_agent(id));
        Self::of(view, ids).await
    }

    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    /// The name of a principal: for an agent the name in its id, for others the display name.
    pub(crate) fn called(&self, id: impl Into<String>) -> Named {
        let id = id.into();
        Named { name: called(&id, self.get(&id).unwrap_or_else(|| short(&id))).to_owned(), id }
    }
}

/// The name of a principal: for an agent the name in its id, for others the display name.
pub(crate) fn called<'a>(id: &'a str, display_name: &'a str) -> &'a str {
    if is_agent(id) { short(id) } else { display_name }
}

pub(crate) fn is_agent(id: &str) -> bool {
    IdParts::is(id, "agent")
}
