//! The menu: the records that this person may list, by the API's own rules.

use crate::kit::{kinds::KINDS, rpc, view::View};

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

/// A page of records without a kind.
struct OwnPage {
    /// The heading of similar kinds.
    heading: &'static str,
    path: &'static str,
    label: &'static str,
    about: &'static str,
    /// The operation that the page calls.
    needs: &'static str,
}

const KEYS: OwnPage = OwnPage {
    heading: "Delegations and keys",
    path: "/console/keys",
    label: "Signing keys",
    about: "The installation's signing keys and their replacement.",
    needs: rpc::LIST_KEYS,
};

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
        let group = groups.iter_mut().find(|group| group.label == KEYS.heading);
        if let Some(group) = group.filter(|_| self.may(KEYS.needs)) {
            let OwnPage { path, label, about, .. } = KEYS;
            group.entries.push(Entry { path: path.to_owned(), label, about });
        }
        groups
    }
}
