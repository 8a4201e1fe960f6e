//! A chain of delegations, from the root down: at each link what it bounds otherwise than the one above.

use futures_util::future::join_all;
use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::{Map, Value};

use crate::{
    kinds::{Kind, Member, json, text},
    names::{Named, Names},
    records::{Shown, read},
    view::View,
};

/// A delegation of a chain.
pub(super) struct Link {
    pub(super) id: String,
    /// Who lets whom; none if it cannot be read.
    pub(super) terms: Option<Terms>,
}

pub(super) struct Terms {
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) state: String,
    /// The bounds of the first link, and of each other one what differs from the link above.
    pub(super) bounds: Vec<Shown>,
}

/// The most links of a chain: the API's own limit, and the root.
const MOST: usize = 17;
/// Members of a delegation that bound nothing.
const NO_BOUNDS: [&str; 10] = [
    "tenant_id",
    "delegator_id",
    "delegate_id",
    "parent_id",
    "notes",
    "tags",
    "metadata",
    "state",
    "id",
    "needs_standing_approval",
];

/// The links of a chain whose ids are known, as the API gives them: the last is the root.
pub(super) async fn of_ids(view: &View, ids: &[String]) -> Vec<Link> {
    let read = ids.iter().rev().map(|id| async move { (id.clone(), delegation(view, id).await) });
    links(view, join_all(read).await).await
}

/// The chain that ends with a delegation, found link by link.
pub(super) async fn up_from(view: &View, last: DynamicMessage) -> Vec<Link> {
    let mut chain = vec![(text(&last, "id"), Some(last))];
    while let Some((_, Some(link))) = chain.last()
        && chain.len() < MOST
    {
        let parent = text(link, "parent_id");
        if parent.is_empty() {
            break;
        }
        let above = delegation(view, &parent).await;
        chain.push((parent, above));
    }
    chain.reverse();
    links(view, chain).await
}

async fn delegation(view: &View, id: &str) -> Option<DynamicMessage> {
    Some(read(view, Kind::at("delegations")?, id).await.ok()?.message)
}

async fn links(view: &View, chain: Vec<(String, Option<DynamicMessage>)>) -> Vec<Link> {
    let read = chain.iter().filter_map(|(_, link)| link.as_ref());
    let parties = read.flat_map(|link| [text(link, "delegator_id"), text(link, "delegate_id")]);
    let names = Names::of(view, parties.collect()).await;
    let mut above = Map::new();
    let mut links = Vec::new();
    for (id, link) in chain {
        let terms = link.as_ref().map(|link| terms(view, link, &above, &names));
        above = link.as_ref().map(json).unwrap_or_default();
        links.push(Link { id, terms });
    }
    links
}

fn terms(view: &View, link: &DynamicMessage, above: &Map<String, Value>, names: &Names) -> Terms {
    let members = json(link);
    let mut all = Member::all(&link.descriptor());
    all.retain(|member| member.is_written() && !NO_BOUNDS.contains(&member.name.as_str()));
    all.retain(|member| members.get(&member.name) != above.get(&member.name));
    let bounds = all.iter().filter_map(|member| Shown::of(view, member, members.get(&member.name)));
    Terms {
        from: names.named(text(link, "delegator_id")),
        to: names.named(text(link, "delegate_id")),
        state: text(link, "state"),
        bounds: bounds.collect(),
    }
}
