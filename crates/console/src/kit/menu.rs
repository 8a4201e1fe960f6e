//! The menu: the records that this person may list, by the API's own rules.

use crate::{
    kit::{kinds::KINDS, rpc, view::View},
    texts as t,
};

/// Kinds under one heading.
pub(crate) struct Group {
    pub(crate) label: &'static str,
    pub(crate) entries: Vec<Entry>,
}

pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) label: &'static str,
    pub(crate) about: &'static str,
}

impl View {
    pub(crate) fn menu(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for kind in KINDS.iter().filter(|kind| self.may(&kind.list.rpc)) {
            let path = format!("/console/records/{}", kind.path);
            let entry = Entry { path, label: &kind.many, about: &kind.about };
            match groups.last_mut() {
                Some(group) if group.label == kind.area => group.entries.push(entry),
                _ => groups.push(Group { label: kind.area, entries: vec![entry] }),
            }
        }
        // Signing keys are not a kind. Their page stands with the keys and delegations.
        let group = groups.iter_mut().find(|group| group.label == t::kit::DELEGATIONS_AND_KEYS);
        if let Some(group) = group.filter(|_| self.may(rpc::LIST_KEYS)) {
            group.entries.push(Entry {
                path: "/console/keys".to_owned(),
                label: t::kit::SIGNING_KEYS,
                about: t::kit::ABOUT_SIGNING_KEYS,
            });
        }
        groups
    }
}
