//! A chain of delegations from the root down, with the bounds of each link that differ from the
//! link above.

use authority_ids::DelegationRef;
use prost_reflect::{DynamicMessage, ReflectMessage};

use crate::{
    administration::records::{Shown, read},
    kit::{
        kinds::{Kind, Member, json, text, texts},
        prelude::*,
    },
};

/// A delegation of a chain.
pub(crate) struct Link {
    pub(crate) id: DelegationRef,
    /// The parties and bounds. `None` if the delegation was not read.
    pub(crate) terms: Option<Terms>,
    /// The reason why the delegation was not read.
    pub(crate) unread: &'static str,
}

pub(crate) struct Terms {
    pub(crate) from: Named,
    pub(crate) to: Named,
    pub(crate) state: String,
    pub(crate) actions: String,
    /// The maximum amount, if any.
    pub(crate) limit: Option<String>,
    pub(crate) until: Option<Moment>,
    /// All bounds of the first link; for any other link, the bounds that differ from the link above.
    pub(crate) bounds: Vec<Shown>,
    /// Whether there is a link above and it was read.
    pub(crate) narrows: bool,
}

/// The maximum number of links in a chain: the API's own limit, plus the root.
const MOST: usize = 17;
/// Members of a delegation that are not bounds.
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

type Read = Result<DynamicMessage, Status>;

/// The links of a chain by their ids, in the API's order: the root is last.
pub(crate) async fn of_ids(view: &View, ids: &[String]) -> Vec<Link> {
    let read = ids.iter().rev().map(async |id| {
        let id = DelegationRef::from(id.as_str());
        let read = delegation(view, &id).await;
        (id, read)
    });
    links(view, some_at_once(read).await).await
}

/// The chain that ends with a delegation, found link by link.
pub(crate) async fn up_from(view: &View, last: DynamicMessage) -> Vec<Link> {
    let mut chain = vec![(text(&last, "id").into(), Ok(last))];
    while let Some((_, Ok(link))) = chain.last()
        && chain.len() < MOST
    {
        let parent = DelegationRef::from(text(link, "parent_id"));
        if parent.is_empty() {
            break;
        }
        let above = delegation(view, &parent).await;
        chain.push((parent, above));
    }
    chain.reverse();
    links(view, chain).await
}

async fn delegation(view: &View, id: &DelegationRef) -> Read {
    Ok(read(view, Kind::known("delegations")?, id).await?.message)
}

async fn links(view: &View, chain: Vec<(DelegationRef, Read)>) -> Vec<Link> {
    let read = chain.iter().filter_map(|(_, link)| link.as_ref().ok());
    let parties = read.flat_map(|link| [text(link, "delegator_id"), text(link, "delegate_id")]);
    let names = Names::to_call(view, parties.collect()).await;
    let mut above = None;
    let mut links = Vec::new();
    for (id, link) in chain {
        let terms = link.as_ref().ok().map(|link| terms(view, link, above.as_ref(), &names));
        let unread = link.as_ref().err().map_or("", unread);
        above = link.as_ref().ok().map(json);
        links.push(Link { id, terms, unread });
    }
    links
}

/// The text that replaces an unread delegation. It distinguishes a failed read from a refusal.
fn unread(status: &Status) -> &'static str {
    if is_absent(status) { t::agents::NOT_READABLE } else { t::agents::NOT_READ }
}

fn terms(
    view: &View,
    link: &DynamicMessage,
    above: Option<&Map<String, Value>>,
    names: &Names,
) -> Terms {
    let members = json(link);
    let mut all = Member::all(&link.descriptor());
    all.retain(|member| member.is_written() && !NO_BOUNDS.contains(&member.name.as_str()));
    all.retain(|member| {
        above.is_none_or(|above| members.get(&member.name) != above.get(&member.name))
    });
    let bounds = all.iter().filter_map(|member| Shown::of(view, member, members.get(&member.name)));
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    let limit = |amount| format!("{amount} {}", word("currency").unwrap_or_default());
    let until = word("expires_at").and_then(|at| Moment::read(at, view.now));
    Terms {
        from: names.called(text(link, "delegator_id")),
        to: names.called(text(link, "delegate_id")),
        state: state_now(text(link, "state"), until.as_ref()),
        actions: texts(link, "actions").join(", "),
        limit: word("max_amount").map(|amount| limit(amount).trim_end().to_owned()),
        until,
        bounds: bounds.collect(),
        narrows: above.is_some(),
    }
}

/// The displayed state of a delegation. A stored state stays active after the end, but an ended
/// delegation permits no action.
pub(crate) fn state_now(state: String, until: Option<&Moment>) -> String {
    let is_over = state == "active" && until.is_some_and(|until| until.past);
    if is_over { "expired".to_owned() } else { state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_not_a_refusal() {
        for status in [Status::not_found("none"), Status::permission_denied("not you")] {
            assert_eq!(unread(&status), t::agents::NOT_READABLE);
        }
        for status in [
            Status::unavailable("away"),
            Status::resource_exhausted("too many"),
            Status::internal("broken"),
            Status::deadline_exceeded("late"),
        ] {
            assert_eq!(unread(&status), t::agents::NOT_READ, "{status}");
        }
    }
}
