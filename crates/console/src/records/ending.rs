//! What a person is told and types before a delegation is revoked: whom it lets do what, and what ends with it.

use authority_model::proto::delegation::{BlastRadius, GetBlastRadiusRequest};
use prost_reflect::DynamicMessage;

use crate::{
    kinds::{Kind, json, plain, text},
    names::{Named, Names},
    rpc,
    show::{counted, short},
    view::View,
};

/// A delegation that would be revoked, and what depends on it.
pub(super) struct Ending {
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) actions: String,
    /// `3 delegations and 2 agents`, or that nothing else ends; `None` if that could not be read.
    pub(super) with_it: Option<String>,
    /// Who acts under it and below.
    pub(super) agents: Vec<Named>,
    /// What is typed to confirm it.
    pub(super) typed: String,
}

/// The most names of agents on the page.
const NAMED: usize = 20;
/// What the form calls the field with the typed name.
pub(super) const NAME: &str = "name";

impl Ending {
    /// `None` for any other operation.
    pub(super) async fn of(
        view: &View,
        kind: &Kind,
        word: &str,
        record: &DynamicMessage,
    ) -> Option<Self> {
        if kind.singular != "delegation" || word != "revoke" {
            return None;
        }
        let (from, to) = (text(record, "delegator_id"), text(record, "delegate_id"));
        let radius = radius(view, &text(record, "id")).await;
        let mut agents = radius.as_ref().map(|radius| radius.agents.clone()).unwrap_or_default();
        agents.truncate(NAMED);
        let all = agents.iter().chain([&from, &to]).cloned();
        let names = Names::to_call(view, all.collect()).await;
        let actions = json(record).get("actions").and_then(|actions| actions.as_array().cloned());
        let actions: Vec<_> = actions.unwrap_or_default().iter().map(plain).collect();
        Some(Self {
            typed: short(&to).to_owned(),
            from: names.called(from),
            to: names.called(to),
            actions: actions.join(", "),
            with_it: radius.as_ref().map(with_it),
            agents: agents.into_iter().map(|id| names.called(id)).collect(),
        })
    }

    /// What is wrong with what was typed.
    pub(super) fn problem(&self, typed: &str) -> Option<String> {
        let wrong = || format!("Nothing was revoked. Type {} exactly, to confirm.", self.typed);
        (typed.trim() != self.typed).then(wrong)
    }
}

async fn radius(view: &View, id: &str) -> Option<BlastRadius> {
    if !view.may(rpc::GET_BLAST_RADIUS) {
        return None;
    }
    let request = GetBlastRadiusRequest { id: id.to_owned() };
    view.calls.call(rpc::GET_BLAST_RADIUS, &request).await.ok()
}

/// What ends, without the delegation itself.
fn with_it(radius: &BlastRadius) -> String {
    let number = |total: i32| usize::try_from(total).unwrap_or_default();
    let below = number(radius.delegation_total).saturating_sub(1);
    let agents = counted(number(radius.agent_total), "agent acts", "agents act");
    match below {
        0 => format!("No delegation is below it. {agents} under it."),
        below => {
            let below = counted(below, "delegation below it ends", "delegations below it end");
            format!("{below} too. {agents} under them.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_with_a_delegation_is_counted_without_it() {
        let of = |delegation_total, agent_total| {
            with_it(&BlastRadius { delegation_total, agent_total, ..BlastRadius::default() })
        };
        assert_eq!(of(1, 1), "No delegation is below it. 1 agent acts under it.");
        assert_eq!(of(4, 2), "3 delegations below it end too. 2 agents act under them.");
    }
}
