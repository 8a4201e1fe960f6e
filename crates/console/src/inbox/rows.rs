//! The rows of the inbox: requests with this person's part in them, alone or in groups of one agent
//! and action.

use authority_model::proto::approval::Approval;

use super::{
    presented::Warning,
    request::{has_acted, is_opened},
    summary::Summary,
    who_decides::other_person,
};
use crate::kit::{lists::ListAddress, prelude::*, show::Sums};

/// A request of the list.
pub(super) struct Item {
    pub(super) summary: Summary,
    /// The agent's id.
    pub(super) subject: String,
    /// The warnings about other requests, in short and in full.
    pub(super) warnings: Option<(String, Vec<&'static str>)>,
    /// Whether this session has opened it.
    pub(super) opened: bool,
    /// Whether this person has answered, and other people must still answer.
    pub(super) answered: bool,
    /// Why somebody else must decide it.
    pub(super) not_mine: Option<String>,
    /// Whether it was selected before.
    pub(super) selected: bool,
}

impl Item {
    pub(super) fn of(view: &View, query: &Pairs, approval: &Approval) -> Self {
        Self {
            summary: Summary::of(approval, view.now),
            subject: approval.subject.clone(),
            warnings: Warning::in_line(&Warning::all(approval, &[], view.now)),
            opened: is_opened(view, approval),
            answered: has_acted(view, approval),
            not_mine: other_person(approval).map(|other| other.rule),
            selected: query.all("id").any(|id| id == approval.id),
        }
    }

    /// Whether it can be selected: it was read, and waits for this person's answer.
    pub(super) fn can_be_selected(&self) -> bool {
        let is_open = self.opened && self.summary.state.is_pending;
        is_open && !self.answered && self.not_mine.is_none()
    }
}

/// Requests that stand together in the list.
pub(super) struct Group {
    /// `None` if the list is not grouped.
    pub(super) head: Option<Head>,
    pub(super) items: Vec<Item>,
}

pub(super) struct Head {
    pub(super) agent: String,
    pub(super) action: String,
    /// The sums of the group's amounts on this page.
    pub(super) sums: Vec<Amount>,
    /// The list of the agent's requests for the action, on all pages.
    pub(super) address: String,
}

impl Group {
    /// Groups the requests of a page if the list's address has groups. The groups have the order of
    /// their first requests.
    pub(super) fn of(items: Vec<Item>, list: &ListAddress) -> Vec<Self> {
        if !list.members().iter().any(|(name, _)| name == "group") {
            return vec![Self { head: None, items }];
        }
        let mut groups: Vec<Self> = Vec::new();
        for item in items {
            let is_alike = |group: &&mut Self| {
                group.items.first().is_some_and(|first| {
                    (&first.subject, &first.summary.action) == (&item.subject, &item.summary.action)
                })
            };
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.items.push(item),
                None => groups.push(Self { head: None, items: vec![item] }),
            }
        }
        for group in &mut groups {
            group.head = group.items.first().map(|first| Head::of(first, &group.items, list));
        }
        groups
    }
}

impl Head {
    fn of(first: &Item, items: &[Item], list: &ListAddress) -> Self {
        let mut sums = Sums::default();
        items.iter().filter_map(|item| item.summary.amount.as_ref()).for_each(|a| sums.add(a));
        let alike = list.with("agent", &first.subject).with("action", &first.summary.action);
        Self {
            agent: first.summary.agent.clone(),
            action: first.summary.action.clone(),
            sums: sums.amounts(),
            address: alike.with("group", "").text(),
        }
    }
}
